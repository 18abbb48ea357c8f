package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
)

// update changes an item as another program would.
func (w *world) update(key schema.Key, expression string, names map[string]string, values schema.Item) {
	w.Helper()
	in := &ddb.UpdateItemInput{
		TableName: &w.table.Name, Key: key.Item(), UpdateExpression: &expression,
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}
	if _, err := w.c.API.UpdateItem(w.Context(), in); err != nil {
		w.Fatal(err)
	}
}

// foreignCount adds to a usage item as the Python library's function does.
func (w *world) foreignCount(entity string, units int64) {
	w.Helper()
	id := schema.BucketID{Namespace: w.ns, Entity: entity, Resource: resource}
	u := schema.NewUsage(id, weir.Hourly, w.clock.now())
	w.update(u.Key(), "SET #w = :w, #s = :s ADD rpm :n, total_events :one",
		map[string]string{"#w": schema.AttrWindow, "#s": schema.AttrWindowStart},
		schema.Item{
			":w": schema.String(string(u.Window)), ":s": schema.String(u.Start), ":n": schema.Number(units),
			":one": schema.Number(1),
		})
}

// TestTakeOver checks that a table that the Python library's function counts is refused, and that it
// is taken over once the function is quiet.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm")
	w.update(schema.VersionKey(), "SET lambda_version = :v", nil, schema.Item{":v": schema.String("0.17.0")})
	err := w.reader().Run(t.Context())
	if !errors.Is(err, weir.Conflict) || !strings.Contains(err.Error(), "weir aggregate --take-over") {
		t.Fatalf("got %v", err)
	}

	l := w.process()
	w.take(l, "acme", weir.Costs{"rpm": 5})
	w.foreignCount("acme", 5)
	w.at(start.Add(5 * time.Minute))
	w.take(l, "acme", weir.Costs{"rpm": 7})
	waits := 0
	takeOver := func(o *stream.Options) {
		o.TakeOver = true
		o.Now = func() time.Time { return w.clock.now().Add(time.Duration(waits) * 10 * time.Second) }
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			if waits++; waits == 6 { // the function is not quiet yet
				w.foreignCount("acme", 7)
				w.at(w.clock.now().Add(time.Minute))
				w.take(l, "acme", weir.Costs{"rpm": 2})
			}
			return ctx.Err()
		}
	}
	s := w.count(takeOver)
	t.Logf("after %d waits: %+v", waits, s)
	w.judge(hours(w.usage()), hours(w.tally))
	if waits <= 6 {
		t.Errorf("got %d waits: the function was not quiet yet", waits)
	}
	w.at(start.Add(9 * time.Minute))
	w.take(l, "acme", weir.Costs{"rpm": 1})
	w.close(l)
	w.count() // it need not be taken over again
	w.judge(hours(w.usage()), hours(w.tally))
	w.foreignCount("acme", 1)
	if s := w.count(); s.Skipped["usage item of another aggregator"] != 1 {
		t.Errorf("another aggregator writes again: got %+v", s)
	}
	c, err := stream.ReadCoverage(t.Context(), w.c, w.ns)
	if err != nil || len(c.Gaps) != 1 || !c.Gaps[0].From.IsZero() {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestTakeOverMonth checks that the month in which a table is taken over gets no item, which would
// leave out the days before, also if a record of it is late.
func TestTakeOverMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm")
	w.update(schema.VersionKey(), "SET lambda_version = :v", nil, schema.Item{":v": schema.String("0.17.0")})
	w.at(start.AddDate(0, 0, -5))
	w.foreignCount("acme", 100)
	w.at(start)
	waits := 0
	w.count(func(o *stream.Options) {
		o.TakeOver = true
		o.Now = func() time.Time { return w.clock.now().Add(time.Duration(waits) * 10 * time.Second) }
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			waits++
			return ctx.Err()
		}
	})
	l := w.process()
	w.take(l, "acme", weir.Costs{"rpm": 7})
	w.close(l)
	w.at(start.AddDate(0, 0, 1))
	w.count()
	usage := w.usage()
	if got := only(usage, string(weir.Daily)+" "); len(got) != 1 {
		t.Errorf("got the days %v, want one", got)
	}
	if got := only(usage, string(weir.Monthly)+" "); len(got) != 0 {
		t.Errorf("got the months %v, want none: they leave out 100", got)
	}
}
