package aggregator

import (
	"fmt"
	"strings"
)

// Position is the place of a record in a table's stream: the stream's label, and the record's
// sequence number with leading zeros. Positions of one bucket item compare as strings in the order
// of its changes: a later stream has a later label, and the shards of a stream into which the
// changes of one item go, a parent before its children, continue the numbers. Positions of
// different items do not compare.
type Position string

// sequenceDigits is the largest number of digits of a sequence number.
const sequenceDigits = 40

// NewPosition returns the position of a record.
func NewPosition(label, sequence string) (Position, error) {
	if label == "" || strings.Contains(label, "#") {
		return "", fmt.Errorf("the stream's label %.64q is not one", label)
	}
	if sequence == "" || len(sequence) > sequenceDigits || strings.Trim(sequence, "0123456789") != "" {
		return "", fmt.Errorf("the sequence number %.64q is not one of 1 to %d digits", sequence, sequenceDigits)
	}
	return Position(label + "#" + strings.Repeat("0", sequenceDigits-len(sequence)) + sequence), nil
}
