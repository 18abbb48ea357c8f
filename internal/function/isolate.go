package function

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
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

// report logs the records that cannot be counted, and keeps them in the archive if there is one.
func (f *Function) report(ctx context.Context, i *isolation) error {
	for _, r := range i.records {
		reason := strings.Join(r.reasons, "; ")
		f.log.Error("record isolated: it cannot be counted", "shard", i.shard, "sequence", r.sequence,
			"reason", reason, "record", r.raw)
		if f.options.Archive == nil {
			continue
		}
		body, err := isolatedObject(reason, r.raw)
		if err != nil {
			return err
		}
		key := fmt.Sprintf("isolated/%s-%s.json.gz", i.shard, r.sequence)
		if err := f.options.Archive.Put(ctx, key, body); err != nil {
			return fmt.Errorf("keep the record that cannot be counted: %w", err)
		}
	}
	return nil
}

// isolatedObject returns the object of a record that cannot be counted: its reason, and the record
// as Lambda sent it.
func isolatedObject(reason string, record json.RawMessage) ([]byte, error) {
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	err := json.NewEncoder(z).Encode(struct {
		Reason string          `json:"reason"`
		Record json.RawMessage `json:"record"`
	}{reason, record})
	if err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}
