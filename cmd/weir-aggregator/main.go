// Command weir-aggregator is an AWS Lambda function that counts the usage of a DynamoDB table from
// its stream. docs/aggregator.md says how to build it and what it needs.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/weir-limiter/weir/internal/function"
)

func main() {
	f, err := function.New(context.Background(), os.Getenv, os.Stdout, nil)
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).Error("the function cannot start", "error", err)
		os.Exit(1)
	}
	lambda.Start(f.Handle)
}
