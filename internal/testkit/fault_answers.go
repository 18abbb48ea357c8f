package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// reason is the cancellation reason of one item of a transaction.
type reason struct {
	Code    string `json:"Code"`              //nolint:tagliatelle // As on DynamoDB's wire.
	Message string `json:"Message,omitempty"` //nolint:tagliatelle // As on DynamoDB's wire.
}

// failure is an answer that names an error.
func (h *hit) failure(status int, code string, reasons []reason) *http.Response {
	message := "injected: " + code
	if reasons != nil {
		codes := make([]string, len(reasons))
		for i, r := range reasons {
			codes[i] = r.Code
		}
		message = "injected: transaction cancelled [" + strings.Join(codes, ", ") + "]"
	}
	fields := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": message}
	if reasons != nil {
		fields["CancellationReasons"] = reasons
		fields["Message"] = message // the spelling in answers to transactions
	}
	return h.answer(status, ownHeader(), encode(fields))
}

// ownHeader returns the header of an answer that does not come from the server.
func ownHeader() http.Header {
	return http.Header{
		"Content-Type":     {"application/x-amz-json-1.0"},
		"Date":             {time.Now().UTC().Format(http.TimeFormat)},
		"X-Amzn-Requestid": {"INJECTED"},
	}
}

// reasons returns the reason of each item of the transaction.
func (h *hit) reasons() ([]reason, error) {
	var sent struct {
		//nolint:tagliatelle // As on DynamoDB's wire.
		TransactItems []json.RawMessage `json:"TransactItems"`
	}
	if err := json.Unmarshal(h.r.Body, &sent); err != nil {
		return nil, fmt.Errorf("testkit: %s: %w", h.r.Operation, err)
	}
	codes := h.rule.Reasons
	if codes == nil {
		codes = []string{"TransactionConflict"}
	}
	out := make([]reason, len(sent.TransactItems))
	for i := range out {
		out[i] = reason{Code: "None"}
		if i < len(codes) && codes[i] != "" && codes[i] != "None" {
			out[i] = reason{codes[i], "injected"}
		}
	}
	return out, nil
}

// batch is the body of a request or an answer of a batch, by field.
type batch = map[string]json.RawMessage

// half lets the server perform the first half of a batch, for each table, and returns the rest as
// unprocessed.
func (h *hit) half() (*http.Response, error) {
	var sent batch
	var tables map[string]json.RawMessage
	if err := json.Unmarshal(h.r.Body, &sent); err != nil {
		return nil, fmt.Errorf("testkit: %s: %w", h.r.Operation, err)
	}
	if err := json.Unmarshal(sent["RequestItems"], &tables); err != nil {
		return nil, fmt.Errorf("testkit: %s: %w", h.r.Operation, err)
	}
	done, left := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for name, items := range tables {
		first, second, err := split(items)
		if err != nil {
			return nil, fmt.Errorf("testkit: %s: %w", h.r.Operation, err)
		}
		if first != nil {
			done[name] = first
		}
		if second != nil {
			left[name] = second
		}
	}
	field := "UnprocessedKeys"
	if h.r.Operation == "BatchWriteItem" {
		field = "UnprocessedItems"
	}
	if len(done) == 0 {
		return h.merge(nil, batch{"Responses": []byte("{}"), field: encode(left)})
	}
	sent["RequestItems"] = encode(done)
	resp, err := h.f.send(h.req, encode(sent))
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	return h.merge(resp, batch{field: encode(left)})
}

// split cuts one table's part of a batch in two: an array of writes, or an object with an array of
// keys. A part that would be empty is nil.
func split(items json.RawMessage) (first, second json.RawMessage, err error) {
	var writes []json.RawMessage
	if bytes.HasPrefix(bytes.TrimSpace(items), []byte("[")) {
		err = json.Unmarshal(items, &writes)
		wrap := func(part []json.RawMessage) json.RawMessage { return encode(part) }
		first, second = cutInTwo(writes, wrap)
		return first, second, err
	}
	var table batch
	if err := json.Unmarshal(items, &table); err != nil {
		return nil, nil, err
	}
	var keys []json.RawMessage
	err = json.Unmarshal(table["Keys"], &keys)
	wrap := func(part []json.RawMessage) json.RawMessage {
		table["Keys"] = encode(part)
		return encode(table)
	}
	first, second = cutInTwo(keys, wrap)
	return first, second, err
}

func cutInTwo(
	all []json.RawMessage, wrap func([]json.RawMessage) json.RawMessage,
) (first, second json.RawMessage) {
	middle := len(all) / 2
	if middle > 0 {
		first = wrap(slices.Clone(all[:middle]))
	}
	if middle < len(all) {
		second = wrap(slices.Clone(all[middle:]))
	}
	return first, second
}

// merge puts fields into the server's answer, or into an empty one.
func (h *hit) merge(resp *http.Response, fields batch) (*http.Response, error) {
	header := ownHeader()
	out := batch{}
	if resp != nil {
		header = resp.Header
		body, err := io.ReadAll(resp.Body)
		if err := resp.Body.Close(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &out); err != nil {
			return nil, fmt.Errorf("testkit: %s: %w", h.r.Operation, err)
		}
	}
	maps.Copy(out, fields)
	return h.answer(http.StatusOK, header, encode(out)), nil
}

// shortPage lets the server return a page of one item.
func (h *hit) shortPage() (*http.Response, error) {
	var sent batch
	if err := json.Unmarshal(h.r.Body, &sent); err != nil {
		return nil, fmt.Errorf("testkit: %s: %w", h.r.Operation, err)
	}
	sent["Limit"] = []byte("1")
	return h.f.send(h.req, encode(sent))
}

// encode writes strings, and values that are JSON already.
func encode(v any) json.RawMessage {
	b, _ := json.Marshal(v) //nolint:errchkjson // These always can be written.
	return b
}
