package declared_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// record returns the store's record.
func record(t *testing.T, l *limiter.Limiter) *declare.Record {
	t.Helper()
	s, _, err := l.DeclaredStore()
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.ReadDeclared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustApply applies a file whose changes must not fail.
func mustApply(t *testing.T, l *limiter.Limiter, text string) *httpapi.LimitsPlan {
	t.Helper()
	p, err := declared.New(l).ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: text, Yes: true})
	if err != nil || p.Failed > 0 {
		t.Fatalf("apply: %+v, %v", p, err)
	}
	return p
}

// TestUnmanagedIsLeftAlone sets limits beside a file. An apply neither changes nor deletes them,
// also when the file no longer has the entity that they are of.
func TestUnmanagedIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := newMemory(t, nil)
	mustApply(t, l, `version: 1
resources: {a: {limits: {rpm: {capacity: 1}}}}
entities:
  top: {}
  mid: {parent: top, resources: {a: {limits: {rpm: {capacity: 2}}}}}
  low: {parent: mid}
`)
	nine := []weir.Limit{{Name: "rpm", Capacity: 9}}
	for _, err := range []error{
		l.SetLimits(t.Context(), weir.Subject{}, nine),
		l.SetLimits(t.Context(), weir.Subject{Resource: "b"}, nine),
		l.SetLimits(t.Context(), weir.Subject{Entity: "mid", Resource: "b"}, nine),
		l.SetEntity(t.Context(), "own", "low", false),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := mustApply(t, l, "version: 1\nresources: {a: {limits: {rpm: {capacity: 1}}}}\n")
	if got := lines(p.Changes); got != "delete entities.mid.resources.a.limits.rpm rpm:2>" {
		t.Errorf("changes: got %s", got)
	}
	kept := map[string]string{
		"entities.mid": "has limits that no file manages, on b",
		"entities.low": "is the parent of own, which stays",
		"entities.top": "is the parent of mid, which stays",
	}
	for _, n := range p.Kept {
		if want := kept[n.Path]; want == "" || !strings.Contains(n.Reason, want) {
			t.Errorf("kept: %+v", n)
		}
		delete(kept, n.Path)
	}
	if len(kept) > 0 {
		t.Errorf("not said to be kept: %v", kept)
	}
	want := `create system.limits.rpm >rpm:9
create resources.b.limits.rpm >rpm:9
create entities.low
create entities.low.parent >mid
create entities.mid
create entities.mid.parent >top
create entities.mid.resources.b.limits.rpm >rpm:9
create entities.own
create entities.own.parent >low
create entities.top`
	p, err := declared.New(l).PlanLimits(t.Context(), &httpapi.LimitsFile{Text: "version: 1\n" +
		"resources: {a: {limits: {rpm: {capacity: 1}}}}\n"})
	if err != nil || lines(p.Unmanaged) != want || len(p.Changes) > 0 {
		t.Errorf("left alone: got\n%s\nwant\n%s\n(%v)", lines(p.Unmanaged), want, err)
	}
}

// TestRecord checks what the record has after each apply, and that an apply with nothing to do
// writes nothing.
func TestRecord(t *testing.T) {
	t.Parallel()
	l := newMemory(t, nil)
	ctx := weir.WithPrincipal(t.Context(), "ann")
	text := strings.Replace(first, "  retention: {audit_days: 30}\n", "", 1) // memory has none
	f := &httpapi.LimitsFile{Text: text, Yes: true}
	if _, err := declared.New(l).ApplyLimits(ctx, f); err != nil {
		t.Fatal(err)
	}
	r := record(t, l)
	want := declare.Managed{
		System: true, Policy: true, Resources: []string{"gpt-4o"},
		Limits:   map[string][]string{"acme-bot": {weir.DefaultResource, "gpt-4o"}},
		Entities: []string{"acme", "acme-bot"},
	}
	if !r.Managed.Equal(&want) || r.Apply != nil || len(r.Again) > 0 || r.AppliedBy != "ann" ||
		!strings.HasPrefix(r.Hash, "sha256:") {
		t.Errorf("after the apply: %+v", r)
	}
	if _, err := declared.New(l).ApplyLimits(ctx, f); err != nil {
		t.Fatal(err)
	}
	if again := record(t, l); again.Revision != r.Revision {
		t.Errorf("an apply with nothing to do wrote the record: %+v", again)
	}
	// The store's configuration is replaced: what was managed is gone with it.
	if err := l.Configure(t.Context(), &weir.Definitions{}); err != nil {
		t.Fatal(err)
	}
	if r := record(t, l); !r.Managed.Empty() {
		t.Errorf("after the configuration was replaced: %+v", r)
	}
}

// TestNothingIsWritten counts the requests of an apply with nothing to do.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open("ann").apply(before)
	written := w.scanned("default")
	for _, operation := range []string{"PutItem", "UpdateItem", "TransactWriteItems"} {
		g := newGate(operation, 1_000_000) // it counts, and holds back nothing
		if p := w.open("bob", through(g)).apply(beforeAgain()); !p.Nothing() || g.seen > 0 {
			t.Errorf("%d calls of %s: %+v", g.seen, operation, p)
		}
	}
	if d := difference(written, w.scanned("default")); d != "" {
		t.Errorf("an apply with nothing to do has written:\n%s", d)
	}
}

// beforeAgain is the file before in another form.
func beforeAgain() string { return "# the same\n" + before }

// TestFailedChange applies a file with a change that the table refuses. The others are made, and
// the place that failed is not managed, because it never was.
func TestFailedChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open("ann")
	const file = `version: 1
resources: {r: {limits: {rpm: {capacity: 1}}}}
entities: {e: {resources: {ttl: {limits: {rpm: {capacity: 1}}}, ok: {limits: {rpm: {capacity: 2}}}}}}
`
	p, err := a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: file})
	if err != nil || p.Applied != 3 || p.Failed != 1 {
		t.Fatalf("got %+v, %v; want 3 changes made and 1 failed", p, err)
	}
	for _, c := range p.Changes {
		if failed := c.Path == "entities.e.resources.ttl.limits.rpm"; failed != (c.Error != "") {
			t.Errorf("%s: error %q", c.Path, c.Error)
		}
	}
	want := declare.Managed{
		Resources: []string{"r"}, Limits: map[string][]string{"e": {"ok"}}, Entities: []string{"e"},
	}
	if r := record(t, a.Limiter); !r.Managed.Equal(&want) || r.Apply != nil {
		t.Errorf("the record: %+v", r)
	}
	w.wantLines("then", a.plan(file).Changes, "create entities.e.resources.ttl.limits.rpm >rpm:1")
}

// TestFailedMove moves limits from one level to another, and those at the new one cannot be set.
// Those at the old one that were in force for the same calls stay, and are deleted by a later
// apply.
func TestFailedMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const from = `version: 1
resources: {a: {limits: {rpm: {capacity: 1}}}, b: {limits: {rpm: {capacity: 1}}}}
entities:
  e: {resources: {_default_: {limits: {rpm: {capacity: 5}}}}}
  f: {resources: {new: {limits: {rpm: {capacity: 5}}}, a: {limits: {rpm: {capacity: 5}}}}}
  g: {resources: {a: {limits: {rpm: {capacity: 5}}}}}
  h: {resources: {b: {limits: {rpm: {capacity: 5}}}}}
`
	const to = `version: 1
resources: {new: {limits: {rpm: {capacity: 2}}}, b: {limits: {rpm: {capacity: 1}}}}
entities: {e: {}, g: {}}
`
	w.open("ann").apply(from)
	a := w.open("ann", through(refusing("RESOURCE#new\"")))
	p, err := a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: to, Yes: true})
	if err != nil {
		t.Fatal(err)
	}
	const kept = "is not deleted, because resources.new.limits.rpm could not be set"
	want := map[string]string{
		"resources.new.limits.rpm":                  "killed",
		"entities.e.resources._default_.limits.rpm": kept,
		"entities.f":                          kept,
		"entities.f.resources.a.limits.rpm":   kept,
		"entities.f.resources.new.limits.rpm": kept,
	}
	for _, c := range p.Changes {
		if reason := want[c.Path]; (reason == "") != (c.Error == "") || !strings.Contains(c.Error, reason) {
			t.Errorf("%s %s: error %q, want %q", c.Action, c.Path, c.Error, reason)
		}
	}
	for _, at := range []weir.Subject{
		{Entity: "e", Resource: weir.DefaultResource}, {Entity: "f", Resource: "new"},
	} {
		if limits, err := a.Limiter.Limits(t.Context(), at); err != nil || len(limits) != 1 {
			t.Errorf("%v: %v, %v; want the limits that it had", at, limits, err)
		}
	}
	b := w.open("bob")
	b.apply(to)
	w.wantEqualChanges(b, to)
}

// refusing is a network that loses the transactions with a text in them.
type refusing string

func (f refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(body), string(f)) {
			return nil, errKilled
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestOtherStores refuses a store that takes its limits from elsewhere, with what to do.
func TestOtherStores(t *testing.T) {
	t.Parallel()
	s, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(struct{ driver.Store }{s}, nil) // without the abilities
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f := &httpapi.LimitsFile{Text: "version: 1\n"}
	_, planned := declared.New(l).PlanLimits(t.Context(), f)
	_, applied := declared.New(l).ApplyLimits(t.Context(), f)
	_, exported := declared.New(l).ExportLimits(t.Context())
	for _, err := range []error{planned, applied, exported} {
		if !errors.Is(err, weir.Unsupported) || !strings.Contains(err.Error(), "change that file") {
			t.Errorf("got %v, want an error that points to the limits file", err)
		}
	}
}

// TestMemoryApplies lets two administrators apply different files to a store in memory at once.
// One wins, or one after the other.
func TestMemoryApplies(t *testing.T) {
	t.Parallel()
	conflicts := 0
	for range 200 {
		l := newMemory(t, nil)
		files := [2]string{withoutSystem(before), other}
		var all sync.WaitGroup
		var errs [2]error
		for i, text := range files {
			all.Go(func() {
				ctx := weir.WithPrincipal(t.Context(), fmt.Sprint("admin", i))
				f := &httpapi.LimitsFile{Text: text, Yes: true}
				p, err := declared.New(l).ApplyLimits(ctx, f)
				if errs[i] = err; err == nil && p.Failed > 0 {
					t.Errorf("an apply that was let in has failed: %s", lines(p.Changes))
				}
			})
		}
		all.Wait()
		equal := 0
		for i, text := range files {
			p, err := declared.New(l).PlanLimits(t.Context(), &httpapi.LimitsFile{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			if p.Nothing() {
				equal++
			}
			if errs[i] != nil {
				conflicts++
				winner := fmt.Sprint("admin", 1-i)
				if !errors.Is(errs[i], weir.Conflict) || !strings.Contains(errs[i].Error(), winner) {
					t.Errorf("the loser was told %v", errs[i])
				}
			}
		}
		if equal != 1 {
			t.Errorf("the store is equal to %d of the files: %v", equal, errs)
		}
	}
	t.Logf("%d conflicts in 200 pairs", conflicts)
}

// withoutSystem returns a file without its system, because a store in memory has no retention.
func withoutSystem(text string) string {
	_, rest, _ := strings.Cut(text, "resources:")
	return "version: 1\nresources:" + rest
}

// TestMemoryTakenOver lets another apply take over in the middle of the changes of one, on a store in
// memory. The first changes nothing more.
func TestMemoryTakenOver(t *testing.T) {
	t.Parallel()
	for at := 2; at < 12; at++ {
		l := newMemory(t, nil)
		second := withoutSystem(before)
		step := 0
		ctx := eachCall(t.Context(), func() {
			if step++; step != at {
				return
			}
			f := &httpapi.LimitsFile{Text: second, Yes: true, TakeOver: true}
			if p, err := declared.New(l).ApplyLimits(t.Context(), f); err != nil || p.Failed > 0 {
				t.Errorf("take over: %+v, %v", p, err)
			}
		})
		p, err := declared.New(l).ApplyLimits(ctx, &httpapi.LimitsFile{Text: other, Yes: true})
		if step < at {
			break // it had ended
		}
		if err != nil || p.Failed == 0 {
			t.Errorf("taken over at step %d: %+v, %v; want failed changes", at, p, err)
		}
		now, err := declared.New(l).PlanLimits(t.Context(), &httpapi.LimitsFile{Text: second})
		if err != nil || !now.Nothing() {
			t.Errorf("taken over at step %d: the first has changed\n%s\n%v", at, lines(now.Changes), err)
		}
	}
}

// TestMarkIsRenewed makes an apply that takes long. Its mark does not become old.
func TestMarkIsRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open("ann").apply(before)
	slow, eye := w.open("ann"), w.open("eye")
	seen := 0
	ctx := eachCall(t.Context(), func() {
		w.advance(20 * time.Second)
		if r := record(t, eye.Limiter); r.Apply != nil {
			seen++
			if age := w.now().Sub(r.Apply.At); age >= time.Minute {
				t.Errorf("the mark of an apply that goes on is %v old", age)
			}
		}
	})
	p, err := slow.ApplyLimits(ctx, &httpapi.LimitsFile{Text: after, Yes: true})
	if err != nil || p.Failed > 0 || seen < 10 {
		t.Fatalf("got %+v, %v, after %d steps", p, err, seen)
	}
}

// eachCall is a context that calls f whenever it is asked whether it has ended. An apply asks
// before each step.
func eachCall(ctx context.Context, f func()) context.Context { return &busyContext{ctx, f} }

type busyContext struct {
	context.Context

	f func()
}

func (c *busyContext) Err() error {
	c.f()
	return c.Context.Err()
}

// TestPendingTasks refuses to apply while the Python library's provisioner has tasks that are not
// finished, although it has no record.
func TestPendingTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, err := w.table.Namespace(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	key := schema.Key{PK: schema.SystemPK(n.ID), SK: "#PROVISIONER#PENDING#sync#resource#a"}
	_, err = testkit.DynamoDB(t).Client().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: &w.table.Name, Item: key.Item(),
	})
	if err != nil {
		t.Fatal(err)
	}
	a := w.open("ann")
	const file = "version: 1\nresources: {r: {limits: {rpm: {capacity: 1}}}}\n"
	p := a.plan(file)
	if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Reason, "unfinished tasks: 1") {
		t.Errorf("refusals: %+v", p.Refusals)
	}
	_, err = a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: file})
	if !errors.Is(err, weir.Conflict) {
		t.Errorf("apply: got %v, want a conflict", err)
	}
	p, err = a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: file, Adopt: true})
	if err != nil || p.Failed > 0 {
		t.Fatalf("adopt: %+v, %v", p, err)
	}
	if p := a.plan(file); !p.Nothing() || len(p.Refusals) > 0 {
		t.Errorf("after the adoption: %+v", p)
	}
}
