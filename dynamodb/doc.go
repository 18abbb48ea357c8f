// Package dynamodb keeps limits, entities and balances on one DynamoDB table, which it may share
// with programs that use the Python library zae-limiter.
package dynamodb
