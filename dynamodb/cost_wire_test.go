package dynamodb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// wire is the HTTP transport of one process. It sees every request before it is sent, and can hold
// it.
type wire struct {
	base http.RoundTripper

	mu   sync.Mutex
	seen []sentRequest
	gate func(sentRequest) // returns when the request can be sent
}

// sentRequest is the part of a request that these tests look at.
type sentRequest struct {
	operation string
	// entity is the entity of the bucket item written; empty for other items and for batches.
	entity string
	// redefines is true if the request writes the definition of a limit to an existing item.
	redefines bool
	// items is the number of items that a transaction writes, and buckets that of bucket items.
	items, buckets int64
}

func newWire(t *testing.T) *wire {
	t.Helper()
	base := &http.Transport{MaxIdleConnsPerHost: client.IdleConnections}
	t.Cleanup(base.CloseIdleConnections)
	return &wire{base: base}
}

// hold makes every request pass through gate before it is sent; nil removes the gate.
func (w *wire) hold(gate func(sentRequest)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = gate
}

// count returns the number of selected requests after the last reset.
func (w *wire) count(which func(sentRequest) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.seen {
		if which(r) {
			n++
		}
	}
	return n
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
}

// RoundTrip records a request, waits at the gate, and sends it.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	sent, err := parseSent(req.Header.Get("X-Amz-Target"), body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.seen = append(w.seen, sent)
	gate := w.gate
	w.mu.Unlock()
	if gate != nil {
		gate(sent)
	}
	return w.base.RoundTrip(req)
}

// parseSent parses a request in DynamoDB's JSON.
func parseSent(target string, body []byte) (sentRequest, error) {
	type key struct {
		PK struct{ S string }
	}
	var in struct {
		Key, Item                key
		UpdateExpression         string
		TransactItems            []map[string]struct{ Key, Item key }
		ExpressionAttributeNames map[string]string
	}
	_, operation, _ := strings.Cut(target, ".")
	if err := json.Unmarshal(body, &in); err != nil {
		return sentRequest{}, fmt.Errorf("read %s: %w", operation, err)
	}
	out := sentRequest{operation: operation, items: int64(len(in.TransactItems))}
	if id, err := schema.ParseBucketPK(in.Key.PK.S + in.Item.PK.S); err == nil {
		out.entity = id.Entity
	}
	for _, item := range in.TransactItems {
		for _, w := range item { // one
			if _, err := schema.ParseBucketPK(w.Key.PK.S + w.Item.PK.S); err == nil {
				out.buckets++
			}
		}
	}
	for alias, name := range in.ExpressionAttributeNames {
		_, field, ok := schema.ParseBucketAttribute(name)
		if ok && field == schema.FieldCapacity && strings.Contains(in.UpdateExpression, alias+" = ") {
			out.redefines = true
		}
	}
	return out, nil
}
