// Package schema knows the items of the DynamoDB table that weir shares with the Python library
// zae-limiter: their keys, their attributes and how long they live. It reads and writes nothing;
// time and random numbers are arguments. What an item holds besides what a type here stands for
// travels in the type's Extra, as it was read, and is written again.
package schema
