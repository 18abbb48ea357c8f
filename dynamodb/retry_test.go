package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// answering is an HTTP transport whose nth request gets the nth reply; the last one is for all
// further ones.
type answering struct {
	asked   atomic.Int64
	replies []reply
}

// reply is an answer, or none.
type reply struct {
	status int
	body   string
	header http.Header
	err    error
	// by, if it is not nil, makes the reply when it is due.
	by func(*http.Request) reply
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	n := int(a.asked.Add(1)) - 1
	answer := a.replies[min(n, len(a.replies)-1)]
	if answer.by != nil {
		answer = answer.by(r)
	}
	if answer.err != nil {
		return nil, answer.err
	}
	header := answer.header
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	return &http.Response{
		StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: r, Header: header,
		Body: io.NopCloser(strings.NewReader(answer.body)), ContentLength: int64(len(answer.body)),
	}, nil
}

func script(replies ...reply) *answering { return &answering{replies: replies} }

func says(status int, body string) reply { return reply{status: status, body: body} }

// fails is an error of DynamoDB.
func fails(code, more string) reply {
	return says(http.StatusBadRequest,
		fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"m"%s}`, code, more))
}

// dies is a connection that ends without an answer.
func dies() reply {
	return reply{err: &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset")}}
}

// unreached is a connection that was never made.
func unreached() reply {
	return reply{err: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}}
}

// fine is the answer to a write.
func fine() reply { return says(http.StatusOK, "{}") }

// wired is a connection whose calls go through a transport.
func wired(t *testing.T, transport http.RoundTripper) *tableClient {
	t.Helper()
	c, err := connect(t.Context(), "limits", &Options{
		Config: &aws.Config{
			Region:      "us-east-1",
			Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		},
		Endpoint: "http://table.test", HTTP: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// putItem writes an item for a test.
func putItem(t *testing.T, c *tableClient, item schema.Item) {
	t.Helper()
	in := &ddb.PutItemInput{TableName: &c.table, Item: item}
	if _, err := c.api.PutItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func sendPut(ctx context.Context, c *tableClient) error {
	_, err := c.api.PutItem(ctx, &ddb.PutItemInput{TableName: &c.table, Item: schema.Item{}})
	return err
}

func sendUpdate(ctx context.Context, c *tableClient, options ...func(*ddb.Options)) error {
	in := &ddb.UpdateItemInput{TableName: &c.table, Key: schema.Item{}}
	_, err := c.api.UpdateItem(ctx, in, options...)
	return err
}

func sendTransact(ctx context.Context, c *tableClient) error {
	_, err := c.api.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{
			Delete: &types.Delete{TableName: &c.table, Key: schema.Item{}},
		}},
	})
	return err
}

func sendRead(ctx context.Context, c *tableClient) error {
	_, err := c.getItem(ctx, schema.VersionKey(), false)
	return err
}

const (
	conflictReason  = `,"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]`
	conditionReason = `,"CancellationReasons":[{"Code":"TransactionConflict"},` +
		`{"Code":"ConditionalCheckFailed","Item":{"PK":{"S":"x"}}}]`
	throttleReason = `,"CancellationReasons":[{"Code":"ThrottlingError"},{"Code":"None"}]`
	strangeReason  = `,"CancellationReasons":[{"Code":"ValidationError"}]`
)

// TestWriteOutcomes: what is said of a write, and how often it is sent.
func TestWriteOutcomes(t *testing.T) {
	t.Parallel()
	broken := says(http.StatusInternalServerError,
		`{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"m"}`)
	refused := fails("ConditionalCheckFailedException", `,"Item":{"PK":{"S":"x"}}`)
	throttle := fails("ThrottlingException", "")
	exceeded := fails("ProvisionedThroughputExceededException", "")
	conflict := fails("TransactionConflictException", "")
	progress := fails("TransactionInProgressException", "")
	denied, missing := fails("AccessDeniedException", ""), fails("ResourceNotFoundException", "")
	cut, strange := says(http.StatusOK, `{"Attr`), says(http.StatusBadRequest, "<html>")
	cancelled := func(why string) reply { return fails("TransactionCanceledException", why) }
	update := func(ctx context.Context, c *tableClient) error { return sendUpdate(ctx, c) }
	put := sendPut
	transact, read := sendTransact, sendRead
	const all = callAttempts
	for name, tc := range map[string]struct {
		call    func(context.Context, *tableClient) error
		replies []reply
		kind    writeKind
		sent    int64
	}{
		"done":                         {update, list(fine()), writeApplied, 1},
		"a condition":                  {update, list(refused), writeRefused, 1},
		"throttled, then done":         {put, list(throttle, fine()), writeApplied, 2},
		"throttled to the end":         {update, list(exceeded), writeThrottled, all},
		"a conflict, then done":        {update, list(conflict, fine()), writeApplied, 2},
		"conflicts to the end":         {update, list(conflict), writeConflicted, all},
		"a lost answer":                {update, list(dies(), fine()), writeUnknown, 1},
		"a lost answer to a put":       {put, list(dies(), fine()), writeUnknown, 1},
		"a broken DynamoDB":            {update, list(broken, fine()), writeUnknown, 1},
		"an answer cut short":          {update, list(cut, fine()), writeUnknown, 1},
		"throttled, then lost":         {update, list(throttle, dies()), writeUnknown, 2},
		"a stranger's 400":             {update, list(strange), writeUnknown, 1},
		"not allowed":                  {update, list(denied), writeFailed, 1},
		"no table":                     {update, list(missing), writeFailed, 1},
		"a transaction, answer lost":   {transact, list(dies(), fine()), writeApplied, 2},
		"a transaction, all lost":      {transact, list(dies()), writeUnknown, all},
		"lost, then throttled":         {transact, list(dies(), throttle), writeUnknown, all},
		"lost, then a condition":       {transact, list(dies(), cancelled(conditionReason)), writeRefused, 2},
		"in progress, then done":       {transact, list(progress, fine()), writeApplied, 2},
		"in progress to the end":       {transact, list(progress), writeUnknown, all},
		"cancelled by a conflict":      {transact, list(cancelled(conflictReason), fine()), writeApplied, 2},
		"cancelled by a condition":     {transact, list(cancelled(conditionReason)), writeRefused, 1},
		"cancelled by a throttle":      {transact, list(cancelled(throttleReason)), writeThrottled, all},
		"cancelled for another reason": {transact, list(cancelled(strangeReason)), writeFailed, 1},
		"cancelled for none":           {transact, list(cancelled("")), writeFailed, 1},
		"no connection, then done":     {update, list(unreached(), fine()), writeApplied, 2},
		"no connection to the end":     {update, list(unreached()), writeFailed, all},
		"a read, answer lost":          {read, list(dies(), fine()), writeApplied, 2},
		"a read of a broken DynamoDB":  {read, list(broken, broken, fine()), writeApplied, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				transport := script(tc.replies...)
				got := outcomeOf(tc.call(t.Context(), wired(t, transport)))
				if sent := transport.asked.Load(); got.kind != tc.kind || sent != tc.sent {
					t.Errorf("got kind %d, sent %d times; want %d, %d", got.kind, sent, tc.kind, tc.sent)
				}
				if got.kind == writeRefused && len(got.image)+len(got.reasons) == 0 {
					t.Error("the image is lost")
				}
			})
		})
	}
}

func list(replies ...reply) []reply { return replies }

// TestRefusedImage: the item as the condition met it comes along, from a transaction too.
func TestRefusedImage(t *testing.T) {
	t.Parallel()
	item := `{"PK":{"S":"x"}}`
	refused := fails("ConditionalCheckFailedException", `,"Item":`+item)
	one := outcomeOf(sendUpdate(t.Context(), wired(t, script(refused))))
	if pk, ok := one.image["PK"].(*types.AttributeValueMemberS); !ok || pk.Value != "x" {
		t.Errorf("got image %v", one.image)
	}
	cancelled := fails("TransactionCanceledException", conditionReason)
	many := outcomeOf(sendTransact(t.Context(), wired(t, script(cancelled))))
	if len(many.reasons) != 2 || many.reasons[1].Item["PK"] == nil {
		t.Errorf("got reasons %+v", many.reasons)
	}
	refused = fails("ConditionalCheckFailedException", "")
	gone := outcomeOf(sendUpdate(t.Context(), wired(t, script(refused))))
	if gone.kind != writeRefused || gone.image != nil {
		t.Errorf("without an item: got %+v", gone)
	}
}

// dialer is a real HTTP transport over connections that a function makes.
func dialer(dial func() (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() },
	}
}

// TestNeverSent: a write that found no connection was not applied, and is sent again; one that was
// cut behind a connection is not.
func TestNeverSent(t *testing.T) {
	t.Parallel()
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dialled := 0
			transport := dialer(func() (net.Conn, error) {
				dialled++
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
			})
			if got := outcomeOf(sendUpdate(t.Context(), wired(t, transport))); got.kind != writeFailed {
				t.Errorf("got kind %d, want %d", got.kind, writeFailed)
			}
			if dialled != callAttempts {
				t.Errorf("dialled %d times, want %d", dialled, callAttempts)
			}
		})
	})
	t.Run("cut behind one", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dialled := 0
			transport := dialer(func() (net.Conn, error) {
				dialled++
				client, server := net.Pipe()
				go func() {
					_, _ = server.Read(make([]byte, 1)) // the request begins to arrive
					_ = server.Close()
				}()
				return client, nil
			})
			if got := outcomeOf(sendUpdate(t.Context(), wired(t, transport))); got.kind != writeUnknown {
				t.Errorf("got kind %d, want %d", got.kind, writeUnknown)
			}
			if dialled != 1 {
				t.Errorf("dialled %d times, want 1", dialled)
			}
			transport.CloseIdleConnections()
		})
	})
}

// TestContextEnds: a write whose context ended while it was under way is unknown; one whose context
// had ended before was not done.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(r *http.Request) reply {
			<-r.Context().Done()
			return reply{err: r.Context().Err()}
		}
		c := wired(t, script(reply{by: hangs}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := outcomeOf(sendUpdate(ctx, c)); got.kind != writeUnknown {
			t.Errorf("ended under way: got kind %d, want %d", got.kind, writeUnknown)
		}
		err := sendUpdate(ctx, c)
		if got := outcomeOf(err); got.kind != writeFailed || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended before: got kind %d (%v), want %d", got.kind, err, writeFailed)
		}
		throttles := wired(t, script(fails("ThrottlingException", "")))
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		got := outcomeOf(sendUpdate(ctx, throttles)).kind
		if got == writeUnknown || got == writeApplied {
			t.Errorf("ended between two attempts: got kind %d", got)
		}
	})
}

// TestForeignRetryer: whoever replaces the retryer still does not charge twice.
func TestForeignRetryer(t *testing.T) {
	t.Parallel()
	transport := script(dies(), fine())
	c := wired(t, transport)
	err := sendUpdate(t.Context(), c, func(o *ddb.Options) { o.Retryer = retry.NewStandard() })
	asked := transport.asked.Load()
	if got := outcomeOf(err); got.kind != writeUnknown || asked != 1 {
		t.Errorf("got kind %d after %d requests, want %d after 1", got.kind, asked, writeUnknown)
	}
}

// TestClassify: what the limiter is told.
func TestClassify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer reply
		code   weir.Code
		words  string
	}{
		"not allowed":    {fails("AccessDeniedException", ""), weir.PermissionDenied, "refused"},
		"unknown caller": {fails("UnrecognizedClientException", ""), weir.PermissionDenied, "refused"},
		"expired":        {fails("ExpiredTokenException", ""), weir.PermissionDenied, "refused"},
		"no table":       {fails("ResourceNotFoundException", ""), weir.Unavailable, "does not exist"},
		"throttled":      {fails("ThrottlingException", ""), weir.Unavailable, "throttled"},
		"too large":      {fails("ValidationException", ""), weir.Unsupported, "cannot do this"},
		"its own fault":  {says(http.StatusServiceUnavailable, "{}"), weir.Unavailable, ""},
		"no answer":      {dies(), weir.Unavailable, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				err := classify(sendUpdate(t.Context(), wired(t, script(tc.answer))))
				e, ok := errors.AsType[*weir.Error](err)
				if !ok || e.Code != tc.code || !strings.Contains(e.Reason, tc.words) || e.Err == nil {
					t.Errorf("got %v, want %s: %s", err, tc.code, tc.words)
				}
			})
		})
	}
	if classify(nil) != nil {
		t.Error("no error became one")
	}
	own := fmt.Errorf("%w", &weir.Error{Code: weir.Conflict})
	if !errors.Is(classify(own), weir.Conflict) {
		t.Error("a typed error was changed")
	}
}

// TestCredentialsMissing: a caller whose credentials cannot be had has sent nothing.
func TestCredentialsMissing(t *testing.T) {
	t.Parallel()
	c := wired(t, script(fine()))
	none := func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("nowhere")
	}
	err := sendUpdate(t.Context(), c, func(o *ddb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(none)
	})
	if got := outcomeOf(err); got.kind != writeFailed {
		t.Errorf("got kind %d (%v), want %d", got.kind, err, writeFailed)
	}
	if !strings.Contains(classify(err).Error(), "nowhere") {
		t.Errorf("the cause is lost: %v", classify(err))
	}
}
