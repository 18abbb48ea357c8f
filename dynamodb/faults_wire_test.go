package dynamodb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weir-limiter/weir/internal/schema"
)

// faultWire has a layer on each side of the faults of one process. The layer above is the last
// middleware of the SDK, and sees the outcome of each attempt that the process gets. The layer
// below sees what the server did. From both, the over-charge can be computed without asking the
// process.
type faultWire struct {
	mu     sync.Mutex
	writes map[string]*wireWrite
	number int
	going  sync.WaitGroup
	err    error // the first request that cannot be read
}

// wireWrite is one write: one request, or all attempts of one transaction.
type wireWrite struct {
	milli    int64 // the units taken from all limits, less the refunds
	applied  bool
	told     bool // the process got a definite outcome
	doubtful bool // an attempt had no answer
}

// wireKey is the context key of a request's write.
type wireKey struct{}

// wirePatience bounds the server's time for a request whose caller may have left.
const wirePatience = 30 * time.Second

// wireLayer is the transport below the faults.
type wireLayer struct {
	wire *faultWire
	next http.RoundTripper
}

func newFaultWire() *faultWire { return &faultWire{writes: make(map[string]*wireWrite)} }

// RoundTrip sends a request and notes its outcome.
func (l *wireLayer) RoundTrip(r *http.Request) (*http.Response, error) {
	return l.wire.perform(r, l.next)
}

// install puts the layer above the faults into the SDK's client. A transport would not do: if the
// context ends just after the transport has returned an error, the process gets another one.
func (w *faultWire) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(
			middleware.DeserializeMiddlewareFunc("test:wire", w.ask), middleware.After)
	})
}

// ask notes the outcome that the process gets.
func (w *faultWire) ask(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	switch middleware.GetOperationName(ctx) {
	case "UpdateItem", "PutItem", "TransactWriteItems":
	default:
		return next.HandleDeserialize(ctx, in)
	}
	r := in.Request.(*smithyhttp.Request)
	body, err := io.ReadAll(r.GetStream())
	if err = errors.Join(err, r.RewindStream()); err != nil {
		return middleware.DeserializeOutput{}, middleware.Metadata{}, err
	}
	of := w.write(body)
	out, metadata, err := next.HandleDeserialize(context.WithValue(ctx, wireKey{}, of), in)
	resp, _ := out.RawResponse.(*smithyhttp.Response) // not nil unless there is an error
	var answer []byte
	if err == nil {
		answer, err = swallow(resp.Response)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	dial, ok := errors.AsType[*net.OpError](err)
	switch {
	case ok && dial.Op == "dial":
	case err != nil || resp.StatusCode >= http.StatusInternalServerError:
		of.doubtful = true
	case resp.StatusCode == http.StatusOK, bytes.Contains(answer, []byte("ConditionalCheckFailed")):
		of.told = true
	}
	return out, metadata, err
}

// perform sends the request to the server, whether or not the caller still waits, and notes whether
// the server applied it. It hides the connection from the caller, so that no request counts as
// certainly not sent.
func (w *faultWire) perform(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	of, ok := r.Context().Value(wireKey{}).(*wireWrite)
	if !ok {
		return next.RoundTrip(r)
	}
	type result struct {
		resp *http.Response
		err  error
	}
	done := make(chan result, 1)
	w.going.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), wirePatience)
		defer cancel()
		resp, err := next.RoundTrip(r.Clone(ctx))
		if err == nil {
			_, err = swallow(resp)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		of.applied = of.applied || err == nil && resp.StatusCode == http.StatusOK
		done <- result{resp, err}
	})
	select {
	case got := <-done:
		return got.resp, got.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// swallow reads an answer to its end, so that passing it on cannot fail.
func swallow(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// write returns the write in a request, creating it if needed.
func (w *faultWire) write(body []byte) *wireWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	var in struct {
		wireItem

		TransactItems []struct {
			Put, Update wireItem
		}
		ClientRequestToken string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		w.err = errors.Join(w.err, err)
	}
	key := in.ClientRequestToken
	if key == "" {
		w.number++
		key = strconv.Itoa(w.number)
	}
	if w.writes[key] == nil {
		of := &wireWrite{milli: w.taken(&in.wireItem)}
		for i := range in.TransactItems {
			of.milli += w.taken(&in.TransactItems[i].Put) + w.taken(&in.TransactItems[i].Update)
		}
		w.writes[key] = of
	}
	return w.writes[key]
}

// wireNumber is a number in DynamoDB's JSON. Other values decode as an empty string.
type wireNumber struct{ N string }

// wireItem is the part of a write about one item.
type wireItem struct {
	Item                      map[string]wireNumber
	UpdateExpression          string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]wireNumber
}

// wireChange matches a term of an update expression that sets an attribute or adds to it.
var wireChange = regexp.MustCompile(`(#n\d+) (?:= )?(:v\d+)`)

// taken returns the change of the consumed units (tc) by a write, without the limit that counts
// writes.
func (w *faultWire) taken(of *wireItem) int64 {
	var milli int64
	count := func(attribute string, n wireNumber) {
		limit, field, ok := schema.ParseBucketAttribute(attribute)
		if !ok || field != schema.FieldConsumed || limit == schema.WritesLimit {
			return
		}
		v, err := strconv.ParseInt(n.N, 10, 64)
		if err != nil {
			w.err = errors.Join(w.err, fmt.Errorf("%s: %w", attribute, err))
		}
		milli += v
	}
	for attribute, n := range of.Item {
		count(attribute, n)
	}
	for _, part := range wireChange.FindAllStringSubmatch(of.UpdateExpression, -1) {
		count(of.ExpressionAttributeNames[part[1]], of.ExpressionAttributeValues[part[2]])
	}
	return milli
}

// ambiguous returns the sums of the writes for which the process got no definite outcome: of all of
// them, and of those that the server applied.
func (w *faultWire) ambiguous() (all, applied int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.writes {
		if of.told || !of.doubtful {
			continue
		}
		all += of.milli
		if of.applied {
			applied += of.milli
		}
	}
	return all, applied
}
