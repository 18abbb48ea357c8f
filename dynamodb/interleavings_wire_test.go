package dynamodb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// The items that a request of an explored server is about.
const (
	firstBucket  = 'b'
	secondBucket = 'c'
	recordItem   = 'r'
	otherItem    = 'o'
)

// heldRequest is a request to the table that waits until the scheduler executes it.
type heldRequest struct {
	server    int
	operation string
	item      byte
	write     bool
	header    http.Header
	url       string
	body      []byte
	answer    chan *tableAnswer // has room for one
}

// tableAnswer is an answer of the table.
type tableAnswer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// response returns the answer to a request. It has no Date, because the clock of a bubble is not
// that of the table.
func (a *tableAnswer) response(r *http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	header := a.header.Clone()
	header.Del("Date")
	return &http.Response{
		StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

// tableLine sends requests to the table, one at a time, in a goroutine outside of every bubble of
// [testing/synctest]. A goroutine that waits for it is not durably blocked, so that the time of its
// bubble stands still.
type tableLine struct {
	mu       sync.Mutex
	requests chan *heldRequest
	answers  chan *tableAnswer
}

// newTableLine returns a line that ends with the test.
func newTableLine(t *testing.T) *tableLine {
	t.Helper()
	l := &tableLine{requests: make(chan *heldRequest), answers: make(chan *tableAnswer)}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	go func() {
		defer transport.CloseIdleConnections()
		for r := range l.requests {
			l.answers <- r.send(transport)
		}
	}()
	t.Cleanup(func() { close(l.requests) })
	return l
}

// do sends a request and waits for the answer.
func (l *tableLine) do(r *heldRequest) *tableAnswer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests <- r
	return <-l.answers
}

func (r *heldRequest) send(transport http.RoundTripper) *tableAnswer {
	out, err := http.NewRequestWithContext(context.Background(), http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return &tableAnswer{err: err}
	}
	out.Header = r.header
	resp, err := transport.RoundTrip(out)
	if err != nil {
		return &tableAnswer{err: err}
	}
	body, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	return &tableAnswer{status: resp.StatusCode, header: resp.Header, body: body, err: err}
}

// gate is the transport of one server. Until it is shut, requests go to the table at once. Then
// each waits for the scheduler. Once dead is closed, requests fail and nothing reaches the table.
type gate struct {
	server int
	line   *tableLine
	dead   chan struct{}
	// rewrite changes requests that wait; nil for none.
	rewrite func(q *heldRequest)

	mu   sync.Mutex // guards the fields below
	shut bool
	held []*heldRequest
}

var errServerDead = errors.New("the server was killed")

// RoundTrip sends a request, or waits until the scheduler has.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	q := newHeldRequest(r, body)
	q.server = g.server
	g.mu.Lock()
	shut := g.shut
	if shut {
		if g.rewrite != nil {
			g.rewrite(q)
		}
		g.held = append(g.held, q)
	}
	g.mu.Unlock()
	if !shut {
		return g.line.do(q).response(r)
	}
	select {
	case a := <-q.answer:
		return a.response(r)
	case <-r.Context().Done():
		g.remove(q)
		return nil, r.Context().Err()
	case <-g.dead:
		return nil, errServerDead
	}
}

func newHeldRequest(r *http.Request, body []byte) *heldRequest {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	q := &heldRequest{
		operation: operation, item: otherItem, write: true, header: r.Header.Clone(), url: r.URL.String(),
		body: body, answer: make(chan *tableAnswer, 1),
	}
	switch operation {
	case "GetItem", "BatchGetItem", "Query":
		q.write = false
	}
	var of struct {
		Key struct{ PK, SK struct{ S string } }
	}
	if err := json.Unmarshal(body, &of); err != nil {
		return q
	}
	if b, err := schema.ParseBucketPK(of.Key.PK.S); err == nil {
		q.item = firstBucket
		if strings.HasPrefix(b.Entity, secondEntity) {
			q.item = secondBucket
		}
	} else if strings.Contains(of.Key.PK.S, "/LEASES#") {
		q.item = recordItem
	}
	return q
}

// remove takes a request out of those that wait.
func (g *gate) remove(q *heldRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.held {
		if g.held[i] == q {
			g.held = append(g.held[:i:i], g.held[i+1:]...)
			return
		}
	}
}

// waiting returns the requests that wait.
func (g *gate) waiting() []*heldRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*heldRequest(nil), g.held...)
}

// shutNow makes all later requests wait.
func (g *gate) shutNow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// consumedAfter returns the milli-units that a bucket item counts for a limit after a write of it,
// by the answer; ok is false if the answer does not tell.
func (a *tableAnswer) consumedAfter(limit string) (milli int64, ok bool) {
	var got struct {
		Attributes map[string]struct{ N json.Number }
	}
	if a.status != http.StatusOK || json.Unmarshal(a.body, &got) != nil {
		return 0, false
	}
	v, ok := got.Attributes[schema.BucketAttribute(limit, schema.FieldConsumed)]
	if !ok {
		return 0, false
	}
	milli, err := v.N.Int64()
	return milli, err == nil
}

// slotAfter returns what the slot of a lease holds after a write of its record that was applied;
// nil if it is empty.
func (r *heldRequest) slotAfter(id weir.LeaseID) (*schema.Lease, error) {
	var in struct {
		ExpressionAttributeValues map[string]struct{ B []byte }
	}
	if err := json.Unmarshal(r.body, &in); err != nil {
		return nil, err
	}
	for _, v := range in.ExpressionAttributeValues {
		if len(v.B) > len(schema.LeaseVersion(0)) {
			key, slot := schema.LeaseRecordKey("", id)
			item := key.Item()
			item[schema.LeaseAttribute(slot)] = &types.AttributeValueMemberB{Value: v.B}
			return schema.ParseLease(item, id)
		}
	}
	return nil, nil
}
