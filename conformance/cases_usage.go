package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// usageCases returns the cases of section 13.
func usageCases() []usageCase {
	virtual := func(kinds ...weir.Kind) Needs { return Needs{Kinds: kinds, Virtual: true} }
	bucket, slots := virtual(weir.Bucket), virtual(weir.Concurrency)
	long := limiter.Options{LeaseLifetime: day}
	hundred := system(slowLimit(weir.Bucket, "n", 100)).under(long)
	parent := Setup{Definitions: childAndParent(
		[]weir.Limit{slowLimit(weir.Bucket, "n", 100)}, []weir.Limit{slowLimit(weir.Bucket, "n", 100)},
	)}.under(long)
	deep, shadow := bucket, bucket
	deep.Depth, shadow.Shadow = 1, true
	cases := []usageCase{
		{"what a lease that has ended stood for stays counted", "13.1", bucket,
			system(slowLimit(weir.Bucket, "n", 100)), usageExpired, false},
		{"charges on one limit are added", "13.1", bucket, hundred, usageSeveral, false},
		{"a denied request counts nothing", "13.2", bucket, hundred, usageDenied, false},
		{"a repeated call counts once", "13.2", bucket, hundred, usageRepeated, false},
		{"a shadow limit counts", "13.2", shadow,
			system(shadowed(slowLimit(weir.Bucket, "n", 5))).under(long), usageShadow, false},
		{"an ancestor's limits count under the ancestor", "13.3", deep, parent, usageAncestor, false},
		{"slots that a complete returns stay counted", "13.4", slots,
			system(slowLimit(weir.Concurrency, "n", 10)), usageSlots, false},
		{"slots that time out stay counted", "13.4", slots,
			system(slotsOf("n", 10, time.Minute)).under(long), usageSlotsTimedOut, false},
		{"a cancel gives slots back", "13.4", slots,
			system(slowLimit(weir.Concurrency, "n", 10)), usageSlotsCancelled, false},
		{"each change of a limit is an event", "13.5", bucket,
			system(slowLimit(weir.Bucket, "n", 100), slowLimit(weir.Bucket, "m", 100)).under(long),
			usageEvents, false},
		{"records are listed in order, in pages and within bounds", "13.6", bucket, hundred,
			usageListed, false},
		{"days and months are sums of hours", "13.6", bucket, hundred, usageSums, false},
		{"the users of a resource are listed by hour", "13.6", bucket, hundred, usageOfResource, true},
		{"months of a resource are sums of hours", "13.6", bucket, hundred, usageSumsOfResource, true},
	}
	for _, k := range allKinds() {
		set := system(slowLimit(k, "n", 100)).under(long)
		cases = append(cases, usageCase{
			name: "units count in the hour of the call: " + string(k), line: "13.1",
			needs: virtual(k), set: set, play: usageHour,
		})
		if k != weir.Concurrency {
			cases = append(cases, usageCase{
				name: "a refund counts in the hour in which it is made: " + string(k), line: "13.1",
				needs: virtual(k), set: set, play: usageRefund,
			})
		}
	}
	return cases
}

// usageHour takes units in three hours, in one of them by an adjust.
func usageHour(u *usageWorld) {
	u.admit(ask("a", cost(5)))
	u.Advance(59 * time.Minute)
	u.admit(ask("a", cost(2)))
	u.admit(ask("b", cost(9)))
	u.Advance(time.Minute)
	l := u.admit(ask("a", cost(4)))
	u.adjust(l, 1, cost(3))
	u.Advance(48 * time.Hour)
	u.admit(ask("a", cost(1)))
	u.used("a", "n", byHour{0: 7, 1: 3, 49: 1})
}

func usageRefund(u *usageWorld) {
	completed, cancelled := u.admit(ask("a", cost(5))), u.admit(ask("a", cost(7)))
	u.Advance(30 * time.Minute)
	u.adjust(completed, 1, cost(6))
	u.Advance(30 * time.Minute)
	u.complete(completed, cost(2))
	u.Advance(time.Hour)
	u.cancel(cancelled)
	u.admit(ask("a", cost(1)))
	u.used("a", "n", byHour{0: 13, 1: -4, 2: -6})
}

func usageExpired(u *usageWorld) {
	u.admit(ask("a", cost(5)))
	u.Advance(3 * time.Hour)
	u.admit(ask("a", cost(1)))
	u.used("a", "n", byHour{0: 5, 3: 1})
}

func usageSeveral(u *usageWorld) {
	l := u.admit(several(charge("a", cost(2)), charge("a", cost(3)), charge("b", cost(4))))
	u.complete(l, cost(1), cost(3), cost(9))
	u.used("a", "n", byHour{0: 4})
	u.used("b", "n", byHour{0: 9})
	u.events("a", byHour{0: 2})
}

func usageDenied(u *usageWorld) {
	u.admit(ask("a", cost(99)))
	u.deny(ask("a", cost(2)))
	u.deny(several(charge("a", cost(2)), charge("b", cost(1))))
	u.fail(weir.NeverSatisfiable, ask("a", cost(101)))
	u.used("a", "n", byHour{0: 99})
	u.used("b", "n", byHour{})
	u.events("a", byHour{0: 1})
}

func usageRepeated(u *usageWorld) {
	r := with(weir.NewLeaseID(u.Now()), ask("a", cost(5)))
	l := u.admit(r)
	u.admit(r)
	for range 2 {
		u.adjust(l, 2, cost(8))
	}
	u.adjust(l, 1, cost(20)) // is ignored
	u.Advance(time.Hour)
	for range 2 {
		u.complete(l, cost(6))
	}
	u.used("a", "n", byHour{0: 8, 1: -2})
	u.events("a", byHour{0: 2, 1: 1})
}

func usageShadow(u *usageWorld) {
	u.admit(ask("a", cost(4)))
	l := u.admit(ask("a", cost(4))) // above the capacity
	u.Advance(time.Hour)
	u.complete(l, cost(7))
	u.used("a", "n", byHour{0: 8, 1: 3})
}

func usageAncestor(u *usageWorld) {
	u.admit(ask("parent", cost(1)))
	completed, cancelled := u.admit(ask("child", cost(5))), u.admit(ask("child", cost(10)))
	u.Advance(time.Hour)
	u.complete(completed, cost(7))
	u.cancel(cancelled)
	u.used("child", "n", byHour{0: 15, 1: -8})
	u.used("parent", "n", byHour{0: 16, 1: -8})
}

func usageSlots(u *usageWorld) {
	whole, named := u.admit(ask("a", cost(3))), u.admit(ask("a", cost(3)))
	u.Advance(time.Hour)
	u.complete(whole)
	u.used("a", "n", byHour{0: 6})
	u.complete(named, cost(1))
	u.used("a", "n", byHour{0: 6, 1: -2})
	u.complete(u.admit(ask("a", weir.Costs{}))) // costs a slot
	u.used("a", "n", byHour{0: 6, 1: -1})
	u.expectAvailable("a", cost(10))
}

func usageSlotsTimedOut(u *usageWorld) {
	l := u.admit(ask("a", cost(3)))
	u.Advance(2 * time.Minute)
	u.extend(l)
	u.admit(ask("a", cost(10)))
	u.complete(l)
	u.used("a", "n", byHour{0: 13})
}

func usageSlotsCancelled(u *usageWorld) {
	l, other := u.admit(ask("a", cost(3))), u.admit(ask("a", cost(4)))
	u.Advance(time.Hour)
	u.adjust(other, 1, cost(1))
	u.cancel(l)
	u.used("a", "n", byHour{0: 7, 1: -6})
}

func usageEvents(u *usageWorld) {
	l := u.admit(ask("a", weir.Costs{"n": 5, "m": 0}))
	u.extend(l)
	u.adjust(l, 1, cost(5))
	u.adjust(l, 2, weir.Costs{"n": 6, "m": 1})
	u.Advance(time.Hour)
	u.complete(l)
	u.cancel(u.admit(ask("a", cost(2))))
	u.events("a", byHour{0: 3, 1: 2})
	u.used("a", "m", byHour{0: 1})
	u.used("a", "n", byHour{0: 6})
}

// places returns the resource, the entity and the hours since the start of records.
func places(records []weir.Usage) []string {
	var out []string
	for _, r := range records {
		out = append(out, fmt.Sprintf("%s %s %d", r.Resource, r.Entity, r.Start.Sub(begin())/time.Hour))
	}
	return out
}

func (u *usageWorld) placed(q weir.UsageQuery, want ...string) {
	u.Helper()
	for _, size := range []int{0, 1, 2} {
		q.Size = size
		records := u.list(q)
		if got := places(records); !slices.Equal(got, want) {
			u.Fatalf("usage %+v: got %q, want %q", q, got, want)
		}
		for _, r := range records {
			length := r.End.Sub(r.Start)
			if r.Window != weir.Hourly || length != time.Hour || r.Windows != 1 {
				u.Fatalf("usage %+v: got a record %+v, want one of an hour", q, r)
			}
		}
	}
}

func usageListed(u *usageWorld) {
	on := func(resource string) *weir.Request {
		return &weir.Request{Entity: "a", Resource: resource, Costs: cost(1)}
	}
	// Names are ordered as a table orders keys, in which '#' follows each: x! comes before x.
	for _, hour := range []time.Duration{1, 4, 1} {
		u.admit(on("x"))
		u.admit(on("x!"))
		u.admit(ask("b", cost(1)))
		u.Advance(hour * time.Hour)
	}
	u.placed(weir.UsageQuery{Entity: "a"}, "x! a 0", "x! a 1", "x! a 5", "x a 0", "x a 1", "x a 5")
	u.placed(weir.UsageQuery{Entity: "a", Resource: "x"}, "x a 0", "x a 1", "x a 5")
	from, to := begin().Add(time.Hour), begin().Add(5*time.Hour)
	u.placed(weir.UsageQuery{Entity: "a", From: from, To: to}, "x! a 1", "x a 1")
	u.placed(weir.UsageQuery{Entity: "a", To: from}, "x! a 0", "x a 0")
	u.placed(weir.UsageQuery{Entity: "a", From: to.Add(-time.Minute)}, "x! a 5", "x a 5")
	u.placed(weir.UsageQuery{Entity: "nobody"})
}

func usageOfResource(u *usageWorld) {
	for range 2 {
		for _, entity := range []string{"c", "a", "b"} {
			u.admit(ask(entity, cost(1)))
			u.admit(&weir.Request{Entity: entity, Resource: "other", Costs: cost(1)})
		}
		u.Advance(2 * time.Hour)
	}
	u.admit(ask("a", cost(1)))
	u.placed(weir.UsageQuery{Resource: resource},
		"m a 0", "m b 0", "m c 0", "m a 2", "m b 2", "m c 2", "m a 4")
	from := begin().Add(2 * time.Hour)
	u.placed(weir.UsageQuery{Resource: resource, From: from, To: from.Add(2 * time.Hour)},
		"m a 2", "m b 2", "m c 2")
}

// useDays uses units on 18 and 19 June and on 1 July.
func (u *usageWorld) useDays() {
	u.Helper()
	l := u.admit(ask("a", cost(4)))
	u.Advance(20 * time.Hour)
	u.complete(l, cost(3))
	u.admit(ask("a", cost(10)))
	u.Advance(time.Date(2025, 7, 1, 0, 0, 0, 0, time.UTC).Sub(u.Now()))
	u.admit(ask("a", cost(5)))
	u.admit(ask("b", cost(6)))
}

func usageSums(u *usageWorld) {
	u.useDays()
	for _, tc := range []struct {
		window weir.UsageWindow
		query  weir.UsageQuery
		want   []string
	}{
		{weir.Daily, weir.UsageQuery{Entity: "a"}, []string{
			"a 2025-06-18 2025-06-19 n=4 events=1", "a 2025-06-19 2025-06-20 n=9 events=2",
			"a 2025-07-01 2025-07-02 n=5 events=1",
		}},
		{weir.Monthly, weir.UsageQuery{Entity: "a"}, []string{
			"a 2025-06-01 2025-07-01 n=13 events=3", "a 2025-07-01 2025-08-01 n=5 events=1",
		}},
	} {
		tc.query.Window = tc.window
		u.summed(tc.query, tc.want...)
	}
}

func usageSumsOfResource(u *usageWorld) {
	u.useDays()
	u.summed(weir.UsageQuery{Resource: resource, Window: weir.Monthly},
		"a 2025-06-01 2025-07-01 n=13 events=3", "a 2025-07-01 2025-08-01 n=5 events=1",
		"b 2025-07-01 2025-08-01 n=6 events=1")
}

// summed expects the records of a query, in pages of several sizes.
func (u *usageWorld) summed(q weir.UsageQuery, want ...string) {
	u.Helper()
	for q.Size = range 3 { // 0 is the default
		var got []string
		for _, r := range u.list(q) {
			got = append(got, fmt.Sprintf("%s %s %s n=%d events=%d", r.Entity,
				r.Start.Format(time.DateOnly), r.End.Format(time.DateOnly), r.Units["n"], r.Events))
		}
		if !slices.Equal(got, want) {
			u.Fatalf("usage %+v: got %q, want %q", q, got, want)
		}
	}
}
