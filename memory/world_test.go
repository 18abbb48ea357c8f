package memory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// start is the time at which most tests begin: the start of a minute, hour and day in UTC, on a
// Monday.
var start = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

const day = int64(24 * time.Hour / time.Millisecond)

const subjectEntity, subjectResource = "acme", "gpt"

// world calls a store as the limiter does, at times that the test names.
type world struct {
	t     testing.TB
	store driver.Store
	now   time.Time
	made  uint64
}

// lease is the limiter's side of a live lease.
type lease struct {
	id       weir.LeaseID
	charges  []weir.Charge
	holdings []driver.Holding
	limits   []weir.LimitStatus
	seq      int64
}

func newWorld(t testing.TB, limits ...weir.Limit) *world {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: limits}})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: store, now: start}
}

// at sets the time, in milliseconds since the start.
func (w *world) at(ms int64) *world {
	w.now = start.Add(time.Duration(ms) * time.Millisecond)
	return w
}

func (w *world) configure(limits ...weir.Limit) {
	w.t.Helper()
	d := &weir.Definitions{System: limits}
	err := w.store.(driver.ConfigWriter).WriteConfig(context.Background(), w.now, d)
	if err != nil {
		w.t.Fatal(err)
	}
}

// configured returns the reader of a store's configuration.
func configured(b driver.Store) func(context.Context, weir.Subject) (*weir.Config, error) {
	return func(ctx context.Context, of weir.Subject) (*weir.Config, error) {
		return b.(driver.ConfigReader).ReadConfig(ctx, of, false)
	}
}

// resolveFrom resolves a subject from a store's configuration: the strongest level wins.
func resolveFrom(b driver.Store, of weir.Subject) (driver.Judged, error) {
	c, err := configured(b)(context.Background(), of)
	if err != nil {
		return driver.Judged{}, err
	}
	j := driver.Judged{Subject: of}
	if len(c.Levels) > 0 {
		j.Level, j.Limits = c.Levels[0].Level, c.Levels[0].Limits
	}
	return j, nil
}

func charge(costs weir.Costs) weir.Charge {
	return weir.Charge{Entity: subjectEntity, Resource: subjectResource, Costs: costs}
}

// judged resolves subjects.
func (w *world) judged(of ...weir.Subject) []driver.Judged {
	w.t.Helper()
	var judged []driver.Judged
	for _, subject := range of {
		j, err := resolveFrom(w.store, subject)
		if err != nil {
			w.t.Fatal(err)
		}
		judged = append(judged, j)
	}
	return judged
}

func (w *world) reservation(charges ...weir.Charge) *conformance.Reservation {
	w.made++
	return &conformance.Reservation{
		ID: leaseID(w.now, w.made), Fingerprint: w.made, Charges: charges,
		Lifetime: time.Hour, Memory: 10 * time.Minute, Config: configured(w.store),
	}
}

// leaseID returns an ID that a failing test can name.
func leaseID(now time.Time, n uint64) weir.LeaseID {
	id := weir.NewLeaseID(now)
	for i := range 10 {
		id[6+i] = 0
	}
	for i := range 8 {
		id[15-i] = byte(n >> (8 * i))
	}
	return id
}

func (w *world) try(r *conformance.Reservation) (*memory.Answer, error) {
	return memory.Try(w.store, w.now, r)
}

// reserve reserves charges and fails the test if they are denied.
func (w *world) reserve(charges ...weir.Charge) *lease {
	w.t.Helper()
	r := w.reservation(charges...)
	out, err := w.try(r)
	if err != nil {
		w.t.Fatalf("reserve %v: %v", charges, err)
	}
	if out.Denied {
		w.t.Fatalf("reserve %v: denied: %+v", charges, out.Limits)
	}
	return &lease{id: r.ID, charges: charges, holdings: out.Holdings, limits: out.Limits}
}

// take reserves n units of the limit x, the only one of most tests.
func (w *world) take(n int64) *lease {
	w.t.Helper()
	return w.reserve(charge(weir.Costs{"x": n}))
}

// refuse checks that n units of the limit x are denied with a retry-after in milliseconds.
func (w *world) refuse(n, retryMS int64) {
	w.t.Helper()
	out, err := w.try(w.reservation(charge(weir.Costs{"x": n})))
	if err != nil {
		w.t.Fatalf("reserve %d: %v", n, err)
	}
	if !out.Denied || out.Holdings != nil {
		w.t.Fatalf("reserve %d: got %+v, want a denial", n, out)
	}
	got, want := out.Limits[0], time.Duration(retryMS)*time.Millisecond
	if !got.Exceeded || got.RetryAfter != want {
		w.t.Errorf("reserve %d: got exceeded %v, retry after %v; want true, %v",
			n, got.Exceeded, got.RetryAfter, want)
	}
}

// left checks what is available of the limit x.
func (w *world) left(want int64) {
	w.t.Helper()
	if got := w.status()[0].Available; got != want {
		w.t.Errorf("available: got %d, want %d", got, want)
	}
}

func (w *world) status() []weir.LimitStatus {
	w.t.Helper()
	of := w.judged(weir.Subject{Entity: subjectEntity, Resource: subjectResource})
	limits, err := w.store.Status(context.Background(), w.now, of)
	if err != nil {
		w.t.Fatal(err)
	}
	return limits
}

// settlement returns the update of a lease by verb. totals are by limit; other limits keep what
// they stand for.
func (w *world) settlement(l *lease, verb weir.Verb, totals weir.Costs) *memory.Settlement {
	s := &memory.Settlement{
		ID: l.id, Verb: verb, Seq: l.seq, Fingerprint: uint64(len(totals)), Holdings: l.holdings,
		Lifetime: time.Hour, Memory: 10 * time.Minute,
	}
	for i := range l.holdings {
		h := &l.holdings[i]
		s.Limits = append(s.Limits, w.inForce(h))
		if verb == weir.VerbExtend {
			continue
		}
		parts := append([]driver.Part(nil), h.Parts...)
		for j := range parts {
			n, named := totals[h.Limit.Name]
			switch {
			case verb == weir.VerbCancel, verb == weir.VerbComplete && h.Limit.Kind == weir.Concurrency:
				parts[j].Units = 0
			case named:
				parts[j].Units = n
			}
		}
		s.Totals = append(s.Totals, parts)
	}
	if verb == weir.VerbAdjust {
		s.Seq++
	}
	return s
}

func (w *world) inForce(h *driver.Holding) *weir.Limit {
	resolved, err := resolveFrom(w.store, h.Subject)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range resolved.Limits {
		if resolved.Limits[i].Name == h.Limit.Name {
			return &resolved.Limits[i]
		}
	}
	return h.Limit
}

// settle applies an update and fails the test if it is refused.
func (w *world) settle(l *lease, verb weir.Verb, totals weir.Costs) {
	w.t.Helper()
	s := w.settlement(l, verb, totals)
	out, err := memory.Settle(w.store, w.now, s)
	if err != nil {
		w.t.Fatalf("%s: %v", verb, err)
	}
	l.holdings, l.seq = out.Holdings, s.Seq
}

func (w *world) adjust(l *lease, n int64)   { w.t.Helper(); w.settle(l, weir.VerbAdjust, x(n)) }
func (w *world) complete(l *lease, n int64) { w.t.Helper(); w.settle(l, weir.VerbComplete, x(n)) }
func (w *world) cancel(l *lease)            { w.t.Helper(); w.settle(l, weir.VerbCancel, nil) }
func (w *world) extend(l *lease)            { w.t.Helper(); w.settle(l, weir.VerbExtend, nil) }

// refuseSettle checks that an update is refused with an error that names a field.
func (w *world) refuseSettle(l *lease, verb weir.Verb, totals weir.Costs, field string) {
	w.t.Helper()
	_, err := memory.Settle(w.store, w.now, w.settlement(l, verb, totals))
	w.isError(err, weir.Invalid, field)
}

func (w *world) isError(err error, code weir.Code, field string) {
	w.t.Helper()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != code || e.Field != field {
		w.t.Errorf("got error %v, want %v about %s", err, code, field)
	}
}

func x(n int64) weir.Costs { return weir.Costs{"x": n} }

// bucket returns a bucket with a capacity and a refill per period.
func bucket(capacity, refill int64, period time.Duration) weir.Limit {
	return weir.Limit{
		Name: "x", Kind: weir.Bucket, Capacity: capacity, RefillAmount: refill, RefillPeriod: period,
	}
}

func window(capacity int64, length time.Duration) weir.Limit {
	return weir.Limit{Name: "x", Kind: weir.Window, Capacity: capacity, Window: length}
}

func concurrency(capacity int64, timeout time.Duration) weir.Limit {
	return weir.Limit{Name: "x", Kind: weir.Concurrency, Capacity: capacity, Timeout: timeout}
}

func budget(capacity int64, every, zone string) weir.Limit {
	return weir.Limit{Name: "x", Kind: weir.Budget, Capacity: capacity, Every: every, Zone: zone}
}

// shadow returns l as a shadow limit.
func shadow(l weir.Limit) weir.Limit {
	l.Shadow = true
	return l
}

// named returns l with another name.
func named(name string, l weir.Limit) weir.Limit {
	l.Name = name
	return l
}
