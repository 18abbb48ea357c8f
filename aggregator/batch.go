package aggregator

import (
	"fmt"
	"strings"
)

// Batch is a part of one shard of a table's stream that the caller has read, as AWS Lambda does.
type Batch struct {
	// Label is the label of the stream, and Shard the ID of its shard.
	Label, Shard string
	// Records are in the order of the shard.
	Records []*Record
	// Writes has the writes of items in the batches before, and gets those of this one, so that another
	// process can go on with it. Default: what this process knows of the shard.
	Writes *Writes
	// Isolate is called for each record, and each limit of a record, that cannot be counted. To read
	// the batch again would not help. Default: they are only logged.
	Isolate func(*Record, *Fault)
}

// UnfinishedError is the error for a batch of which some records are not counted.
type UnfinishedError struct {
	// First is the first record that is not counted. Records after it may be counted: they are
	// recognized if they are read again.
	First *Record
	Err   error
}

// Error names the record and the cause.
func (e *UnfinishedError) Error() string {
	return "not counted from record " + e.First.Sequence + " on: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// StreamLabel returns the label in the ARN of a table's stream.
func StreamLabel(arn string) (string, error) {
	table, label, ok := strings.Cut(arn, "/stream/")
	if !ok || label == "" || !strings.HasPrefix(table, "arn:") || !strings.Contains(table, ":table/") {
		return "", fmt.Errorf("%.128q is not the ARN of a table's stream", arn)
	}
	return label, nil
}
