package function

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/aggregator"
)

// isolation collects the records that cannot be counted.
type isolation struct {
	shard   string
	raw     map[string]json.RawMessage // by sequence number
	reasons map[string]string          // why a record could not be decoded
	records []*isolated
}

// isolated is a record that cannot be counted, as Lambda sent it.
type isolated struct {
	sequence string
	reasons  []string
	raw      json.RawMessage
}

// add adds a record, or one more of its limits.
func (i *isolation) add(r *aggregator.Record, fault *aggregator.Fault) {
	reason := fault.Error()
	if why := i.reasons[r.Sequence]; why != "" {
		reason = why
	}
	if n := len(i.records); n > 0 && i.records[n-1].sequence == r.Sequence {
		i.records[n-1].reasons = append(i.records[n-1].reasons, reason)
		return
	}
	i.records = append(i.records, &isolated{r.Sequence, []string{reason}, i.raw[r.Sequence]})
}

// report logs the records that cannot be counted, and keeps them in the archive if there is one: all
// of a batch in one object, because a bucket may have a limit that no record of it can be counted of.
func (f *Function) report(ctx context.Context, i *isolation) error {
	for _, r := range i.records {
		f.log.Error("record isolated: it cannot be counted", "shard", i.shard, "sequence", r.sequence,
			"reason", r.reason(), "record", r.raw)
	}
	if f.options.Archive == nil || len(i.records) == 0 {
		return nil
	}
	key := i.key()
	body, err := i.object()
	if err != nil {
		return err
	}
	if err := f.options.Archive.Put(ctx, key, body); err != nil {
		return fmt.Errorf("keep the records that cannot be counted: %w", err)
	}
	return nil
}

// reason returns why a record cannot be counted.
func (r *isolated) reason() string { return strings.Join(r.reasons, "; ") }

// key puts the records in the order of the shard, and returns the key of the object with them. A
// batch that comes again with other borders does not replace an object by one that has less.
func (i *isolation) key() string {
	slices.SortStableFunc(i.records, func(a, b *isolated) int {
		return cmp.Or(cmp.Compare(len(a.sequence), len(b.sequence)), cmp.Compare(a.sequence, b.sequence))
	})
	return fmt.Sprintf("isolated/%s-%s-%s.jsonl.gz", i.shard, i.records[0].sequence,
		i.records[len(i.records)-1].sequence)
}

// object returns the object with the records: a line for each, with its reason, and the record as
// Lambda sent it.
func (i *isolation) object() ([]byte, error) {
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	lines := json.NewEncoder(z)
	for _, r := range i.records {
		err := lines.Encode(struct {
			Reason string          `json:"reason"`
			Record json.RawMessage `json:"record"`
		}{r.reason(), r.raw})
		if err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}
