package declared_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// world is a table of its own, with a clock that only the test moves.
type world struct {
	*testing.T

	table *dynamodb.Table
	ahead atomic.Int64 // in nanoseconds after start
}

// start is the time at which a world begins.
var start = time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := unmadeWorld(t)
	if _, err := w.table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// unmadeWorld is a world whose table another program will make.
func unmadeWorld(t *testing.T) *world {
	t.Helper()
	local := testkit.DynamoDB(t)
	config := local.Config()
	w := &world{T: t, table: &dynamodb.Table{
		Name: "declared-" + rand.Text()[:16], NoStream: true,
		Options: &dynamodb.Options{Config: &config, Endpoint: local.Endpoint()},
	}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		_ = w.table.Delete(ctx)
	})
	return w
}

func (w *world) now() time.Time { return start.Add(time.Duration(w.ahead.Load())) }

func (w *world) advance(d time.Duration) { w.ahead.Add(int64(d)) }

// admin is an administrator: a limiter of a process of its own.
type admin struct {
	*limiter.Limiter
	*declared.Limits

	w *world
}

// open starts a process, whose store may be changed.
func (w *world) open(principal string, change ...func(o *dynamodb.Options)) *admin {
	w.Helper()
	o := *w.table.Options
	o.Principal, o.Now, o.ProcessLeases = principal, w.now, true
	for _, f := range change {
		f(&o)
	}
	network := http.DefaultTransport
	if o.HTTP != nil {
		network = o.HTTP.Transport
	}
	o.HTTP = &http.Client{Transport: undated{network}}
	s, err := dynamodb.Open(w.Context(), w.table.Name, &o)
	if err != nil {
		w.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{Now: w.now, StoreTimeout: time.Minute, CacheTTL: -1})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = l.Close() })
	return &admin{l, declared.New(l), w}
}

// undated removes the date from answers, so that the table's clock does not correct the test's.
type undated struct{ http.RoundTripper }

func (u undated) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := u.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Header.Del("Date")
	}
	return answer, err
}

func (a *admin) plan(text string) *httpapi.LimitsPlan {
	a.w.Helper()
	p, err := a.PlanLimits(a.w.Context(), &httpapi.LimitsFile{Text: text})
	if err != nil {
		a.w.Fatal(err)
	}
	return p
}

func (a *admin) apply(text string) *httpapi.LimitsPlan {
	a.w.Helper()
	p, err := a.ApplyLimits(a.w.Context(), &httpapi.LimitsFile{Text: text, Yes: true})
	if err != nil {
		a.w.Fatal(err)
	}
	for _, c := range p.Changes {
		if c.Error != "" {
			a.w.Fatalf("%s %s: %s", c.Action, c.Path, c.Error)
		}
	}
	return p
}

// lines returns changes as text: action, path, values.
func lines(changes []httpapi.LimitsChange) string {
	var all []string
	for _, c := range changes {
		line := c.Action + " " + c.Path
		if c.Was+c.Is != "" {
			line += " " + c.Was + ">" + c.Is
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

func (w *world) wantLines(what string, changes []httpapi.LimitsChange, want ...string) {
	w.Helper()
	if got := lines(changes); got != strings.Join(want, "\n") {
		w.Errorf("%s: got\n%s\nwant\n%s", what, got, strings.Join(want, "\n"))
	}
}

const first = `version: 1
namespace: default
system:
  on_unavailable: allow
  retention: {audit_days: 30}
  limits: {rpm: {capacity: 600}}
resources:
  gpt-4o:
    limits: {rpm: {capacity: 500}, tpm: {capacity: 2000, refill_amount: 1000}}
entities:
  acme: {}
  acme-bot:
    parent: acme
    cascade: true
    resources:
      gpt-4o: {limits: {rpm: {capacity: 100}}}
      _default_: {limits: {rpm: {capacity: 10}}}
`

const second = `version: 1
system:
  limits: {rpm: {capacity: 700}}
resources:
  gpt-4o:
    limits: {rpm: {capacity: 500}}
  gpt-5:
    limits: {rpm: {capacity: 50}}
entities:
  acme-bot:
    resources:
      gpt-4o: {limits: {rpm: {capacity: 100}}}
`

// TestApply checks that an apply makes exactly what the plan says, that the same file is then
// equal, and that a place which the next file leaves out is deleted.
func TestApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open("ann")
	want := []string{
		"update system.on_unavailable block>allow",
		"create system.retention.audit_days >30",
		"create system.limits.rpm >rpm:600",
		"create resources.gpt-4o.limits.rpm >rpm:500",
		"create resources.gpt-4o.limits.tpm >tpm:1000/min:2000",
		"create entities.acme",
		"create entities.acme-bot",
		"create entities.acme-bot.parent >acme",
		"create entities.acme-bot.cascade >true",
		"create entities.acme-bot.resources._default_.limits.rpm >rpm:10",
		"create entities.acme-bot.resources.gpt-4o.limits.rpm >rpm:100",
	}
	w.wantLines("plan", a.plan(first).Changes, want...)
	w.wantLines("apply", a.apply(first).Changes, want...)
	w.wantEqual(a, first)
	want = []string{
		"update system.on_unavailable allow>block",
		"update system.limits.rpm rpm:600>rpm:700",
		"delete resources.gpt-4o.limits.tpm tpm:1000/min:2000>",
		"create resources.gpt-5.limits.rpm >rpm:50",
		"delete entities.acme",
		"delete entities.acme-bot.parent acme>",
		"update entities.acme-bot.cascade true>false",
		"delete entities.acme-bot.resources._default_.limits.rpm rpm:10>",
	}
	w.wantLines("apply of the second", a.apply(second).Changes, want...)
	p := a.plan(second)
	// The file does not name the retention any more: the table keeps what it has.
	w.wantLines("left alone", p.Unmanaged, "create system.retention.audit_days >30")
	if !p.Nothing() {
		t.Errorf("the file was applied and is not equal: %+v", p)
	}
}

// wantEqual checks that a file and the store are equal.
func (w *world) wantEqual(a *admin, text string) {
	w.Helper()
	if p := a.plan(text); !p.Nothing() || len(p.Unmanaged) > 0 {
		w.Errorf("not equal: %+v", p)
	}
}
