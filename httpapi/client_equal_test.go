package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// twinWorld makes every call twice: over the wire, and to a limiter in this process. It compares
// every member of both answers, including those that no suite checks.
type twinWorld struct {
	*clientWorld

	t      conformance.T
	twin   *limiter.Limiter
	errors map[string]int // how often each kind of error was compared
}

func openTwins(t conformance.T, s conformance.Setup, errors map[string]int) *twinWorld {
	t.Helper()
	w := &twinWorld{
		clientWorld: openClientWorld(t, s, httpapi.ClientOptions{}, overPipes), t: t, errors: errors,
	}
	store, err := memory.Open(&memory.Options{Definitions: s.Definitions})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	s.Options.Now = w.Clock.Now
	if w.twin, err = limiter.New(store, &s.Options); err != nil {
		t.Fatalf("new: %v", err)
	}
	return w
}

func (w *twinWorld) compare(what string, got, want any, gotErr, wantErr error) {
	w.t.Helper()
	g, f := faultText(gotErr), faultText(wantErr)
	if g != f {
		w.t.Errorf("%s: got error %s, in process it is %s", what, g, f)
	}
	if e, ok := errors.AsType[*weir.Error](wantErr); ok {
		w.errors[string(e.Code)]++
	} else if wantErr != nil {
		w.errors["denied"]++
	}
	if gotErr == nil && wantErr == nil && !reflect.DeepEqual(got, want) {
		w.t.Errorf("%s: got %+v, in process it is %+v", what, got, want)
	}
}

// faultText returns everything in an error except its causes.
func faultText(err error) string {
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		return fmt.Sprintf("%#v", *denied)
	}
	if e, ok := err.(*weir.Error); ok {
		return fmt.Sprintf("%q %q %q %q", e.Code, e.Field, e.Value, e.Reason)
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var texts []string
		for _, part := range e.Unwrap() {
			texts = append(texts, faultText(part))
		}
		return strings.Join(texts, "\n")
	case interface{ Unwrap() error }:
		return faultText(e.Unwrap())
	}
	return fmt.Sprint(err)
}

// plainLease returns the members of a lease that can be compared, with instants in UTC.
func plainLease(l *weir.Lease) any {
	if l == nil {
		return nil
	}
	return []any{l.ID, utc(l.ReservedAt), utc(l.Expires), utc(l.HoldsUntil), l.Degraded, l.Replay,
		l.Seq, slices.Concat(l.Limits)} // no limits are nil in both
}

func plainReceipt(r *weir.Receipt) any {
	if r == nil {
		return nil
	}
	return []any{r.LeaseID, utc(r.At), utc(r.Expires), utc(r.HoldsUntil), r.Degraded,
		r.RefundInDoubt}
}

func utc(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Reserve fulfils [weir.Service].
func (w *twinWorld) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	l, err := w.clientWorld.Reserve(ctx, r)
	twin := *r
	denied, ok := errors.AsType[*weir.DeniedError](err)
	switch {
	case r.LeaseID.IsZero() && l != nil:
		twin.LeaseID = l.ID // so that both have the same lease
	case r.LeaseID.IsZero() && ok:
		twin.LeaseID = denied.LeaseID
	}
	want, wantErr := w.twin.Reserve(ctx, &twin)
	w.compare(fmt.Sprintf("reserve %+v", r), plainLease(l), plainLease(want), err, wantErr)
	return l, err
}

func (w *twinWorld) receipts(
	what string, got *weir.Receipt, err error, want *weir.Receipt, wantErr error,
) (*weir.Receipt, error) {
	w.t.Helper()
	w.compare(what, plainReceipt(got), plainReceipt(want), err, wantErr)
	return got, err
}

// Adjust fulfils [weir.Service].
func (w *twinWorld) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	got, err := w.clientWorld.Adjust(ctx, id, seq, totals)
	want, wantErr := w.twin.Adjust(ctx, id, seq, totals)
	return w.receipts(fmt.Sprint("adjust ", totals), got, err, want, wantErr)
}

// Complete fulfils [weir.Service].
func (w *twinWorld) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	got, err := w.clientWorld.Complete(ctx, id, actuals)
	want, wantErr := w.twin.Complete(ctx, id, actuals)
	return w.receipts(fmt.Sprint("complete ", actuals), got, err, want, wantErr)
}

// Cancel fulfils [weir.Service].
func (w *twinWorld) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	got, err := w.clientWorld.Cancel(ctx, id)
	want, wantErr := w.twin.Cancel(ctx, id)
	return w.receipts("cancel", got, err, want, wantErr)
}

// Extend fulfils [weir.Service].
func (w *twinWorld) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	got, err := w.clientWorld.Extend(ctx, id)
	want, wantErr := w.twin.Extend(ctx, id)
	return w.receipts("extend", got, err, want, wantErr)
}

// Status fulfils [weir.Service].
func (w *twinWorld) Status(
	ctx context.Context,
	entity, resource string,
) ([]weir.LimitStatus, error) {
	got, err := w.clientWorld.Status(ctx, entity, resource)
	want, wantErr := w.twin.Status(ctx, entity, resource)
	w.compare(fmt.Sprintf("status %q %q", entity, resource), slices.Concat(got), slices.Concat(want),
		err, wantErr)
	return got, err
}

// Explain fulfils [weir.Service].
func (w *twinWorld) Explain(
	ctx context.Context,
	entity, resource string,
) (*weir.Explanation, error) {
	got, err := w.clientWorld.Explain(ctx, entity, resource)
	want, wantErr := w.twin.Explain(ctx, entity, resource)
	w.compare(fmt.Sprintf("explain %q %q", entity, resource), got, want, err, wantErr)
	return got, err
}

// Configure fulfils [conformance.World].
func (w *twinWorld) Configure(d *weir.Definitions) error {
	return errors.Join(w.clientWorld.Configure(d), w.twin.Configure(context.Background(), d))
}

// TestClientEqualsLimiter checks that every answer equals that of a limiter in the process, to the
// last member.
func TestClientEqualsLimiter(t *testing.T) {
	t.Parallel()
	compared := map[string]int{}
	table := conformance.RandomOperations(t, conformance.Harness{
		Open: func(t conformance.T, s conformance.Setup) conformance.World {
			t.Helper()
			return openTwins(t, s, compared)
		},
		Traits: (&memory.Store{}).Traits(),
	}, 1, 6000)
	t.Logf("%d operations, errors compared: %v", table.Ops(), compared)
	for _, code := range []string{"invalid", "ended", "conflict", "unknown lease", "unknown limit", "denied",
		"no limits configured", "never satisfiable"} {
		if compared[code] == 0 {
			t.Errorf("%s was never compared", code)
		}
	}
}
