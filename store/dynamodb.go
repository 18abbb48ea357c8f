package store

import (
	"context"
	"strings"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb"
)

const dynamoDBScheme = "dynamodb:"

// openDynamoDB opens a store from the part of its URL after "dynamodb:". The configuration is on
// the table, so definitions are refused.
func openDynamoDB(ctx context.Context, rest string, o *Options) (driver.Store, error) {
	if o.Definitions != nil {
		return nil, invalid("store", dynamoDBScheme,
			"cannot be opened with definitions: the configuration is on the table, and is changed there")
	}
	table, err := parseDynamoDB(rest)
	if err != nil {
		return nil, err
	}
	table.Options.ReadOnly, table.Options.OnError = o.ReadOnly, o.OnError
	table.Options.WriteTimeout = 2 * o.Timeout // zero is the store's default
	return asStore(dynamodb.Open(ctx, table.Name, table.Options))
}

// Table returns the table that a dynamodb: URL names, for administration. It makes no request to
// AWS. For any other URL, and for a mistake in this one, the error is as of [Open].
func Table(rawURL string) (*dynamodb.Table, error) {
	scheme, rest, _ := strings.Cut(rawURL, ":")
	if scheme += ":"; scheme != dynamoDBScheme {
		return nil, invalid("store", scheme,
			"is not a DynamoDB table: name one with dynamodb://TABLE")
	}
	return parseDynamoDB(rest)
}

// parseDynamoDB parses the part of a URL after "dynamodb:".
func parseDynamoDB(rest string) (*dynamodb.Table, error) {
	name, query, _ := strings.Cut(rest, "?")
	name, ok := strings.CutPrefix(name, "//")
	if !ok || name == "" || strings.ContainsAny(name, "@/:#") {
		// The error does not show this part, because it may contain a password.
		return nil, invalid("store", dynamoDBScheme,
			"must be dynamodb://TABLE, with or without ?NAME=VALUE after it: "+
				"credentials come from the AWS SDK's default chain")
	}
	q, err := parseQuery(query, "region", "endpoint", "namespace", "leases", "writes", "speculative")
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"region", "endpoint", "namespace"} {
		if value, given := q[key]; given && value == "" {
			return nil, invalid("store."+key, "", "must not be empty")
		}
	}
	if region := q["region"]; strings.Trim(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, invalid("store.region", region, "must be a region like eu-central-1")
	}
	options := &dynamodb.Options{
		Region: q["region"], Endpoint: q["endpoint"], Namespace: q["namespace"],
	}
	if options.Transactional, err = parseChoice(q, "writes", "transactional", "plain"); err != nil {
		return nil, err
	}
	if options.ProcessLeases, err = parseChoice(q, "leases", "process", "table"); err != nil {
		return nil, err
	}
	if options.NoSpeculation, err = parseChoice(q, "speculative", "off", "on"); err != nil {
		return nil, err
	}
	return &dynamodb.Table{Name: name, Options: options}, nil
}

// parseChoice reports whether a key has the first of two values. A missing key has the second.
func parseChoice(q map[string]string, key, first, second string) (bool, error) {
	switch value, given := q[key]; {
	case !given || value == second:
		return false, nil
	case value == first:
		return true, nil
	default:
		return false, invalid("store."+key, value, "must be "+first+" or "+second)
	}
}
