package statuspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// observed is a limiter with its own clock, and the activity that observes it.
type observed struct {
	*limiter.Limiter

	activity *statuspage.Activity
	now      time.Time
}

func observe(t *testing.T, d *weir.Definitions) *observed {
	t.Helper()
	o := &observed{now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return o.now }
	o.activity = statuspage.NewActivity(o.now)
	store, err := memory.Open(&memory.Options{Definitions: d})
	if err != nil {
		t.Fatal(err)
	}
	if o.Limiter, err = limiter.New(store, &limiter.Options{Now: clock, Observer: o.activity}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// ask reserves, and fails the test unless the outcome is "admitted", "denied" or an error's code.
func (o *observed) ask(t *testing.T, want string, r *weir.Request) *weir.Lease {
	t.Helper()
	lease, err := o.Reserve(t.Context(), r)
	got := "admitted"
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		got = "denied"
	} else if e, ok := errors.AsType[*weir.Error](err); ok {
		got = string(e.Code)
	} else if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("%s %v: %s (%v), want %s", r.Entity, r.Costs, got, err, want)
	}
	return lease
}

func bot(rpm, tpm int64) *weir.Request {
	return &weir.Request{Entity: "acme-bot", Resource: "gpt-4o", Costs: weir.Costs{"rpm": rpm, "tpm": tpm}}
}

// played makes a short sequence of calls in which everything that is counted occurs.
func played(t *testing.T) *observed {
	t.Helper()
	o := observe(t, &weir.Definitions{
		System: []weir.Limit{{Name: "rpm", Capacity: 600}},
		Entities: map[string]weir.EntityDefinition{
			"acme": {Limits: map[string][]weir.Limit{weir.DefaultResource: {
				{Name: "tpm", Kind: weir.Window, Capacity: 1_000, Window: time.Minute},
			}}},
			"acme-child": {Parent: "acme", Cascade: true, Limits: map[string][]weir.Limit{weir.DefaultResource: {
				{Name: "other", Capacity: 1},
			}}},
			"acme-bot": {Parent: "acme", Cascade: true, Limits: map[string][]weir.Limit{weir.DefaultResource: {
				{Name: "parallel", Kind: weir.Concurrency, Capacity: 2, Timeout: time.Minute},
				{Name: "rpm", Capacity: 10},
				{Name: "tpm", Capacity: 100, RefillAmount: 600, Shadow: true},
			}}},
		},
	})
	o.ask(t, "admitted", bot(1, 90))
	o.now = o.now.Add(2 * time.Second)
	first := o.ask(t, "admitted", bot(1, 900)) // the bot's own tpm is a shadow
	again := bot(1, 900)
	again.LeaseID = first.ID
	o.ask(t, "admitted", again)
	o.now = o.now.Add(time.Second)
	o.ask(t, "denied", bot(1, 20)) // denied by acme's tpm and by parallel
	if _, err := first.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Cancel(t.Context(), first.ID); !errors.Is(err, weir.Conflict) {
		t.Fatalf("cancel after complete: %v", err)
	}
	o.ask(t, "denied", bot(9, 0)) // eight left
	o.ask(t, "invalid", bot(-1, 0))
	o.ask(t, "never satisfiable", bot(11, 0))
	someone := weir.Request{Entity: "someone", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 600}}
	o.ask(t, "admitted", &someone)
	someone.Costs = weir.Costs{"rpm": 1}
	o.ask(t, "denied", &someone)
	return o
}

// TestActivityCounts compares the report on a sequence of calls with one that was computed by hand,
// as JSON.
func TestActivityCounts(t *testing.T) {
	t.Parallel()
	o := played(t)
	child := weir.Request{Entity: "acme-child", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 200}}
	o.ask(t, "denied", &child) // by acme's tpm, the only limit that it reaches
	o.ask(t, "denied", &weir.Request{Charges: []weir.Charge{
		{Entity: "acme-child", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 200}},
		{Entity: "someone", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 2}},
		{Entity: "acme-child", Resource: "web", Costs: weir.Costs{"tpm": 1}},
	}})
	got, err := json.MarshalIndent(trim(o.activity.Report(o.now)), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/activity.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var back httpapi.ActivityReport
	if err := json.Unmarshal(want, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&back, trim(o.activity.Report(o.now))) {
		t.Errorf("read back: %+v", back)
	}
}

// trim leaves four of the seconds, so that people can read the golden file.
func trim(r *httpapi.ActivityReport) *httpapi.ActivityReport {
	n := len(r.Seconds.Admitted) - 4
	r.Seconds.From += int64(n)
	r.Seconds.Admitted, r.Seconds.Denied = r.Seconds.Admitted[n:], r.Seconds.Denied[n:]
	return r
}

func TestActivityEmpty(t *testing.T) {
	t.Parallel()
	o := observe(t, &weir.Definitions{})
	r := o.activity.Report(o.now)
	if len(r.Seconds.Admitted) != 120 || len(r.Seconds.Denied) != 120 {
		t.Errorf("%d and %d seconds, want 120", len(r.Seconds.Admitted), len(r.Seconds.Denied))
	}
	got, err := json.Marshal(trim(r))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"since_unix_ms":1772452800000,"now_unix_ms":1772452800000,"admitted":0,"denied":0,` +
		`"replayed":0,"degraded":0,"errors":[],"limits":[],"denied_askers":[],"denied_owners":[],` +
		`"seconds":{"from_unix_s":1772452797,"admitted":[0,0,0,0],"denied":[0,0,0,0]},` +
		`"denials":[],"entities":[]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestActivityDegraded counts a lease that is not in the store.
func TestActivityDegraded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := statuspage.NewActivity(now)
	a.Observe(t.Context(), limiter.Event{Verb: weir.VerbReserve, At: now, Degraded: true})
	a.Observe(t.Context(), limiter.Event{Verb: weir.VerbComplete, At: now, Degraded: true})
	a.Observe(t.Context(), limiter.Event{Verb: weir.VerbReserve, At: now, Err: context.Canceled})
	r := a.Report(now)
	if r.Admitted != 1 || r.Degraded != 1 || r.Denied != 0 {
		t.Errorf("admitted %d, degraded %d, denied %d; want 1, 1, 0", r.Admitted, r.Degraded, r.Denied)
	}
	if want := []httpapi.ActivityErrors{{Code: "other", Count: 1}}; !reflect.DeepEqual(r.Errors, want) {
		t.Errorf("errors %v, want %v", r.Errors, want)
	}
}
