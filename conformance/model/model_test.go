package model_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/limiter"
)

// modelWorld is a model with a clock and one limit, which applies to every entity.
type modelWorld struct {
	*model.Model
	t   *testing.T
	now time.Time
}

func newModelWorld(t *testing.T, points *model.Points, limits ...weir.Limit) *modelWorld {
	t.Helper()
	d := &modelWorld{t: t, now: time.UnixMilli(1_700_000_000_000)}
	var err error
	d.Model, err = model.New(&weir.Definitions{System: limits}, model.Settings{
		Start: d.now, Options: limiter.Options{Now: func() time.Time { return d.now }},
	}, points)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// reserve reserves n units. It returns the lease, or the wait of the denial.
func (d *modelWorld) reserve(n int64) (*weir.Lease, time.Duration) {
	d.t.Helper()
	lease, err := d.Reserve(d.t.Context(), &weir.Request{
		Entity: "e", Resource: "r", Costs: weir.Costs{"n": n},
	})
	denied, ok := errors.AsType[*weir.DeniedError](err)
	if err != nil && !ok {
		d.t.Fatal(err)
	}
	if ok {
		return nil, denied.RetryAfter
	}
	return lease, 0
}

func (d *modelWorld) left() int64 {
	d.t.Helper()
	s, err := d.Status(d.t.Context(), "e", "r")
	if err != nil {
		d.t.Fatal(err)
	}
	return s[0].Available
}

// TestKinds takes all units of each kind, asks again, and waits for the retry-after.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit weir.Limit
		wait  time.Duration // for one more unit
	}{
		// It regains a milli-unit in ten milliseconds, and now is a multiple of ten.
		{weir.Limit{Kind: weir.Bucket, RefillAmount: 6}, 10 * time.Second},
		// Seven units an hour: the credit is 3305555555 milli-units now, and a thousand more at
		// 3305556555·3600000/7000.
		{weir.Limit{Kind: weir.Bucket, RefillAmount: 7, RefillPeriod: time.Hour}, 514 * time.Second},
		{weir.Limit{Kind: weir.Window, Window: 90 * time.Second}, 90 * time.Second},
		{weir.Limit{Kind: weir.Concurrency, Timeout: 30 * time.Second}, 30 * time.Second},
		// 2023-11-14 22:13:20 UTC.
		{weir.Limit{Kind: weir.Budget, Every: "hour"}, 46*time.Minute + 40*time.Second},
		{weir.Limit{Kind: weir.Budget, Every: "day"}, time.Hour + 46*time.Minute + 40*time.Second},
	} {
		c.limit.Name, c.limit.Capacity = "n", 5
		d := newModelWorld(t, nil, c.limit)
		if got := d.left(); got != 5 {
			t.Errorf("%+v: a new limit has %d units, want 5", c.limit, got)
		}
		if lease, _ := d.reserve(5); lease == nil {
			t.Errorf("%+v: its capacity was denied", c.limit)
			continue
		}
		lease, wait := d.reserve(1)
		if lease != nil || wait != c.wait {
			t.Errorf("%+v: got the lease %v and the wait %v, want a wait of %v", c.limit, lease, wait, c.wait)
			continue
		}
		d.now = d.now.Add(wait - time.Millisecond)
		if lease, wait := d.reserve(1); lease != nil || wait != time.Millisecond {
			t.Errorf("%+v: too early: got the lease %v and the wait %v, want 1ms", c.limit, lease, wait)
		}
		d.now = d.now.Add(time.Millisecond)
		if lease, _ := d.reserve(1); lease == nil {
			t.Errorf("%+v: denied after the wait", c.limit)
		}
	}
}

// TestSettle grows a lease by five, shrinks it to one, and gives everything back.
func TestSettle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit            weir.Limit
		grown, shrunk, z int64 // units available afterwards
	}{
		{weir.Limit{Kind: weir.Bucket}, -2, 4, 5},
		{weir.Limit{Kind: weir.Window, Window: time.Hour}, -2, 4, 5},
		{weir.Limit{Kind: weir.Budget, Every: "hour"}, -2, 4, 5},
	} {
		c.limit.Name, c.limit.Capacity = "n", 5
		d := newModelWorld(t, nil, c.limit)
		lease, _ := d.reserve(2)
		for seq, step := range []struct{ total, left int64 }{{7, c.grown}, {1, c.shrunk}} {
			if _, err := d.Adjust(t.Context(), lease.ID, int64(seq+1), []weir.Costs{{"n": step.total}}); err != nil {
				t.Fatal(err)
			}
			if got := d.left(); got != step.left {
				t.Errorf("%s: as %d units: %d are left, want %d", c.limit.Kind, step.total, got, step.left)
			}
		}
		if _, err := d.Cancel(t.Context(), lease.ID); err != nil {
			t.Fatal(err)
		}
		if got := d.left(); got != c.z {
			t.Errorf("%s: after a cancel %d are left, want %d", c.limit.Kind, got, c.z)
		}
	}
}

// TestLeaseTable makes every call on a lease in every state: the table of section 6.
func TestLeaseTable(t *testing.T) {
	t.Parallel()
	type verb = func(d *modelWorld, id weir.LeaseID) error
	settle := func(n int64) verb {
		return func(d *modelWorld, id weir.LeaseID) error {
			_, err := d.Complete(d.t.Context(), id, []weir.Costs{{"n": n}})
			return err
		}
	}
	reserve := func(n int64) verb {
		return func(d *modelWorld, id weir.LeaseID) error {
			r := &weir.Request{LeaseID: id, Entity: "e", Resource: "r", Costs: weir.Costs{"n": n}}
			_, err := d.Reserve(d.t.Context(), r)
			return err
		}
	}
	cancel := func(d *modelWorld, id weir.LeaseID) error { _, err := d.Cancel(d.t.Context(), id); return err }
	extend := func(d *modelWorld, id weir.LeaseID) error { _, err := d.Extend(d.t.Context(), id); return err }
	adjust := func(d *modelWorld, id weir.LeaseID) error {
		_, err := d.Adjust(d.t.Context(), id, 1, nil)
		return err
	}
	expire := func(d *modelWorld, _ weir.LeaseID) error { d.now = d.now.Add(time.Hour); return nil }
	nothing := func(*modelWorld, weir.LeaseID) error { return nil }
	none, conflict, ended := weir.Code(""), weir.Conflict, weir.Ended
	for _, row := range []struct {
		name string
		do   verb
		want [4]weir.Code // of a lease that is live, completed, cancelled, expired
	}{
		{"reserve, same", reserve(2), [4]weir.Code{none, ended, ended, ended}},
		{"reserve, other", reserve(3), [4]weir.Code{conflict, ended, ended, ended}},
		{"adjust", adjust, [4]weir.Code{none, ended, ended, ended}},
		{"complete, same", settle(1), [4]weir.Code{none, none, conflict, ended}},
		{"complete, other", settle(2), [4]weir.Code{none, conflict, conflict, ended}},
		{"cancel", cancel, [4]weir.Code{none, conflict, none, ended}},
		{"extend", extend, [4]weir.Code{none, ended, ended, ended}},
	} {
		for i, before := range []verb{nothing, settle(1), cancel, expire} {
			d := newModelWorld(t, nil, weir.Limit{Name: "n", Capacity: 5})
			lease, _ := d.reserve(2)
			if err := before(d, lease.ID); err != nil {
				t.Fatal(err)
			}
			err := row.do(d, lease.ID)
			if row.want[i] == none && err != nil || row.want[i] != none && !errors.Is(err, row.want[i]) {
				t.Errorf("%s, state %d: got %v, want %q", row.name, i, err, row.want[i])
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	bad := []weir.Limit{{Name: "n"}}
	if _, err := model.New(&weir.Definitions{System: bad}, model.Settings{}, nil); err == nil {
		t.Error("definitions with a limit without capacity were taken")
	}
	s := model.Settings{Options: limiter.Options{Limits: bad}}
	if _, err := model.New(nil, s, nil); err == nil {
		t.Error("options with a limit without capacity were taken")
	}
}
