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
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// answering is an HTTP transport that answers the nth request with the nth reply, and all further
// ones with the last.
type answering struct {
	asked   atomic.Int64
	replies []reply
}

// reply is an answer or an error.
type reply struct {
	status int
	body   string
	header http.Header
	err    error
	// by, if not nil, returns the reply at the time of the request.
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

func answerWith(status int, body string) reply { return reply{status: status, body: body} }

// fails returns an error of DynamoDB.
func fails(code, more string) reply {
	return answerWith(http.StatusBadRequest,
		fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"m"%s}`, code, more))
}

// cutConnection returns a connection that ends without an answer.
func cutConnection() reply {
	return reply{err: &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset")}}
}

// unreached returns a connection that could not be made.
func unreached() reply {
	return reply{err: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}}
}

// writeSucceeds returns the answer to a successful write.
func writeSucceeds() reply { return answerWith(http.StatusOK, "{}") }

// wired returns a client whose calls go through a transport.
func wired(t *testing.T, transport http.RoundTripper) *client.Client {
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

// putItem writes an item.
func putItem(t *testing.T, c *client.Client, item schema.Item) {
	t.Helper()
	in := &ddb.PutItemInput{TableName: &c.TableName, Item: item}
	if _, err := c.API.PutItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func sendPut(ctx context.Context, c *client.Client) error {
	_, err := c.API.PutItem(ctx, &ddb.PutItemInput{TableName: &c.TableName, Item: schema.Item{}})
	return err
}

func sendUpdate(ctx context.Context, c *client.Client, options ...func(*ddb.Options)) error {
	in := &ddb.UpdateItemInput{TableName: &c.TableName, Key: schema.Item{}}
	_, err := c.API.UpdateItem(ctx, in, options...)
	return err
}

func sendTransact(ctx context.Context, c *client.Client) error {
	_, err := c.API.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{
			Delete: &types.Delete{TableName: &c.TableName, Key: schema.Item{}},
		}},
	})
	return err
}

func sendRead(ctx context.Context, c *client.Client) error {
	_, err := c.GetItem(ctx, schema.VersionKey(), false)
	return err
}

const (
	conflictReason  = `,"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]`
	conditionReason = `,"CancellationReasons":[{"Code":"TransactionConflict"},` +
		`{"Code":"ConditionalCheckFailed","Item":{"PK":{"S":"x"}}}]`
	throttleReason = `,"CancellationReasons":[{"Code":"ThrottlingError"},{"Code":"None"}]`
	strangeReason  = `,"CancellationReasons":[{"Code":"ValidationError"}]`
)

// TestWriteOutcomes checks the outcome of a write, and the number of times that it is sent.
func TestWriteOutcomes(t *testing.T) {
	t.Parallel()
	broken := answerWith(http.StatusInternalServerError,
		`{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"m"}`)
	refused := fails("ConditionalCheckFailedException", `,"Item":{"PK":{"S":"x"}}`)
	throttle := fails("ThrottlingException", "")
	exceeded := fails("ProvisionedThroughputExceededException", "")
	conflict := fails("TransactionConflictException", "")
	progress := fails("TransactionInProgressException", "")
	denied, missing := fails("AccessDeniedException", ""), fails("ResourceNotFoundException", "")
	cut, strange := answerWith(http.StatusOK, `{"Attr`), answerWith(http.StatusBadRequest, "<html>")
	cancelled := func(why string) reply { return fails("TransactionCanceledException", why) }
	update := func(ctx context.Context, c *client.Client) error { return sendUpdate(ctx, c) }
	put := sendPut
	transact, read := sendTransact, sendRead
	const all = client.CallAttempts
	for name, tc := range map[string]struct {
		call    func(context.Context, *client.Client) error
		replies []reply
		kind    client.WriteKind
		sent    int64
	}{
		"done":                         {update, list(writeSucceeds()), client.WriteApplied, 1},
		"a condition":                  {update, list(refused), client.WriteRefused, 1},
		"throttled, then done":         {put, list(throttle, writeSucceeds()), client.WriteApplied, 2},
		"throttled to the end":         {update, list(exceeded), client.WriteThrottled, all},
		"a conflict, then done":        {update, list(conflict, writeSucceeds()), client.WriteApplied, 2},
		"conflicts to the end":         {update, list(conflict), client.WriteConflicted, all},
		"a lost answer":                {update, list(cutConnection(), writeSucceeds()), client.WriteUnknown, 1},
		"a lost answer to a put":       {put, list(cutConnection(), writeSucceeds()), client.WriteUnknown, 1},
		"a broken DynamoDB":            {update, list(broken, writeSucceeds()), client.WriteUnknown, 1},
		"an answer cut short":          {update, list(cut, writeSucceeds()), client.WriteUnknown, 1},
		"throttled, then lost":         {update, list(throttle, cutConnection()), client.WriteUnknown, 2},
		"a stranger's 400":             {update, list(strange), client.WriteUnknown, 1},
		"not allowed":                  {update, list(denied), client.WriteFailed, 1},
		"no table":                     {update, list(missing), client.WriteFailed, 1},
		"a transaction, answer lost":   {transact, list(cutConnection(), writeSucceeds()), client.WriteApplied, 2},
		"a transaction, all lost":      {transact, list(cutConnection()), client.WriteUnknown, all},
		"lost, then throttled":         {transact, list(cutConnection(), throttle), client.WriteUnknown, all},
		"lost, then a condition":       {transact, list(cutConnection(), cancelled(conditionReason)), client.WriteRefused, 2},
		"in progress, then done":       {transact, list(progress, writeSucceeds()), client.WriteApplied, 2},
		"in progress to the end":       {transact, list(progress), client.WriteUnknown, all},
		"cancelled by a conflict":      {transact, list(cancelled(conflictReason), writeSucceeds()), client.WriteApplied, 2},
		"cancelled by a condition":     {transact, list(cancelled(conditionReason)), client.WriteRefused, 1},
		"cancelled by a throttle":      {transact, list(cancelled(throttleReason)), client.WriteThrottled, all},
		"cancelled for another reason": {transact, list(cancelled(strangeReason)), client.WriteFailed, 1},
		"cancelled for none":           {transact, list(cancelled("")), client.WriteFailed, 1},
		"no connection, then done":     {update, list(unreached(), writeSucceeds()), client.WriteApplied, 2},
		"no connection to the end":     {update, list(unreached()), client.WriteFailed, all},
		"a read, answer lost":          {read, list(cutConnection(), writeSucceeds()), client.WriteApplied, 2},
		"a read of a broken DynamoDB":  {read, list(broken, broken, writeSucceeds()), client.WriteApplied, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				transport := script(tc.replies...)
				got := client.OutcomeOf(tc.call(t.Context(), wired(t, transport)))
				if sent := transport.asked.Load(); got.Kind != tc.kind || sent != tc.sent {
					t.Errorf("got kind %d, sent %d times; want %d, %d", got.Kind, sent, tc.kind, tc.sent)
				}
				if got.Kind == client.WriteRefused && len(got.Image)+len(got.Reasons) == 0 {
					t.Error("the image is lost")
				}
			})
		})
	}
}

func list(replies ...reply) []reply { return replies }

// TestRefusedImage checks that the outcome of a refused write has the item, for a transaction too.
func TestRefusedImage(t *testing.T) {
	t.Parallel()
	item := `{"PK":{"S":"x"}}`
	refused := fails("ConditionalCheckFailedException", `,"Item":`+item)
	one := client.OutcomeOf(sendUpdate(t.Context(), wired(t, script(refused))))
	if pk, ok := one.Image["PK"].(*types.AttributeValueMemberS); !ok || pk.Value != "x" {
		t.Errorf("got image %v", one.Image)
	}
	cancelled := fails("TransactionCanceledException", conditionReason)
	many := client.OutcomeOf(sendTransact(t.Context(), wired(t, script(cancelled))))
	if len(many.Reasons) != 2 || many.Reasons[1].Item["PK"] == nil {
		t.Errorf("got reasons %+v", many.Reasons)
	}
	refused = fails("ConditionalCheckFailedException", "")
	gone := client.OutcomeOf(sendUpdate(t.Context(), wired(t, script(refused))))
	if gone.Kind != client.WriteRefused || gone.Image != nil {
		t.Errorf("without an item: got %+v", gone)
	}
}

// dialer returns a real HTTP transport on connections made by dial.
func dialer(dial func() (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() },
	}
}

// TestWriteWithoutConnection checks that a write without a connection was not applied and is sent
// again, and that a write whose connection was cut is not sent again.
func TestWriteWithoutConnection(t *testing.T) {
	t.Parallel()
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dialled := 0
			transport := dialer(func() (net.Conn, error) {
				dialled++
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
			})
			if got := client.OutcomeOf(sendUpdate(t.Context(), wired(t, transport))); got.Kind != client.WriteFailed {
				t.Errorf("got kind %d, want %d", got.Kind, client.WriteFailed)
			}
			if dialled != client.CallAttempts {
				t.Errorf("dialled %d times, want %d", dialled, client.CallAttempts)
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
			if got := client.OutcomeOf(sendUpdate(t.Context(), wired(t, transport))); got.Kind != client.WriteUnknown {
				t.Errorf("got kind %d, want %d", got.Kind, client.WriteUnknown)
			}
			if dialled != 1 {
				t.Errorf("dialled %d times, want 1", dialled)
			}
			transport.CloseIdleConnections()
		})
	})
}

// TestContextEnds checks that a write is unknown if its context ends while it is in flight, and not
// applied if its context ended before.
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
		if got := client.OutcomeOf(sendUpdate(ctx, c)); got.Kind != client.WriteUnknown {
			t.Errorf("ended under way: got kind %d, want %d", got.Kind, client.WriteUnknown)
		}
		err := sendUpdate(ctx, c)
		if got := client.OutcomeOf(err); got.Kind != client.WriteFailed || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended before: got kind %d (%v), want %d", got.Kind, err, client.WriteFailed)
		}
		throttles := wired(t, script(fails("ThrottlingException", "")))
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		got := client.OutcomeOf(sendUpdate(ctx, throttles)).Kind
		if got == client.WriteUnknown || got == client.WriteApplied {
			t.Errorf("ended between two attempts: got kind %d", got)
		}
	})
}

// TestCustomRetryer checks that a write is not sent twice with another retryer either.
func TestCustomRetryer(t *testing.T) {
	t.Parallel()
	transport := script(cutConnection(), writeSucceeds())
	c := wired(t, transport)
	err := sendUpdate(t.Context(), c, func(o *ddb.Options) { o.Retryer = retry.NewStandard() })
	asked := transport.asked.Load()
	if got := client.OutcomeOf(err); got.Kind != client.WriteUnknown || asked != 1 {
		t.Errorf("got kind %d after %d requests, want %d after 1", got.Kind, asked, client.WriteUnknown)
	}
}

// TestClassify checks the errors that the limiter gets.
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
		"too large":      {fails("ValidationException", ""), weir.Unsupported, "refused the request"},
		"its own fault":  {answerWith(http.StatusServiceUnavailable, "{}"), weir.Unavailable, ""},
		"no answer":      {cutConnection(), weir.Unavailable, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				err := client.Classify(sendUpdate(t.Context(), wired(t, script(tc.answer))))
				e, ok := errors.AsType[*weir.Error](err)
				if !ok || e.Code != tc.code || !strings.Contains(e.Reason, tc.words) || e.Err == nil {
					t.Errorf("got %v, want %s: %s", err, tc.code, tc.words)
				}
			})
		})
	}
	if client.Classify(nil) != nil {
		t.Error("a nil error is not classified as nil")
	}
	own := fmt.Errorf("%w", &weir.Error{Code: weir.Conflict})
	if !errors.Is(client.Classify(own), weir.Conflict) {
		t.Error("a typed error was changed")
	}
}

// TestCredentialsMissing checks that a call without credentials is not sent.
func TestCredentialsMissing(t *testing.T) {
	t.Parallel()
	c := wired(t, script(writeSucceeds()))
	none := func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("nowhere")
	}
	err := sendUpdate(t.Context(), c, func(o *ddb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(none)
	})
	if got := client.OutcomeOf(err); got.Kind != client.WriteFailed {
		t.Errorf("got kind %d (%v), want %d", got.Kind, err, client.WriteFailed)
	}
	if !strings.Contains(client.Classify(err).Error(), "nowhere") {
		t.Errorf("the cause is lost: %v", client.Classify(err))
	}
}
