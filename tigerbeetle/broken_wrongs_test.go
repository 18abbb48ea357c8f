//go:build cgo

package tigerbeetle

import (
	"errors"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/limiter"
)

// wrongs returns the faults that the chains could have, with the cases that catch them.
func wrongs() []*wrong {
	all := slices.Concat(unchecked(), wrongHolds(), wrongRefills(), misnamed(), wrongUpdates())
	for _, x := range all {
		if about, ok := caughtBy()[x.name]; ok {
			x.caught = append(x.caught, about)
		}
	}
	return all
}

// caughtBy returns, by the name of each fault, the title of a case that catches it.
func caughtBy() map[string]string {
	return map[string]string{
		"what each charge stands for is not reported":       "servers: another one completes",
		"the keys of charges are not reported":              "servers: another one completes by name",
		"the keys of charges are reported in another order": "servers: another one completes by name",
		"an adjust's number is not reported":                "servers: another one knows which adjust was last",
		"an extended lease's end is not reported":           "servers: another one knows until when a lease lives",
		"an end's fingerprint is dropped":                   "servers: another one completes",
		"a lease's end is not reported":                     "servers: another one settles after the slots",
		"a refill has an ID of its own":                     "servers: two refill a bucket",
		"a lease's fingerprint is dropped":                  "servers: another one answers a repeated reservation",
		"a window's or slots' check is left out":            "64-bit overflow does not admit",
		"a bucket's or budget's check has no rest":          "the largest bucket",
		"a check asks for one unit less":                    "64-bit overflow does not admit",
		"a check's whole amount is posted":                  "the largest bucket",
		"a check is voided instead of taking":               "the largest bucket",
		"a check is not ended":                              "64-bit overflow does not admit",
		"the chain is not linked":                           "an instant counts to the millisecond it falls in",
		"what the second limit takes is not counted":        "S1: starvation of slow limits",
		"what a shadow limit takes is not counted":          "a shadow limit never denies: bucket",
		"a bucket's take leaves out what is spent":          "the largest bucket",
		"a hold is twice as long":                           "an instant counts to the millisecond it falls in",
		"a hold is half as long":                            "an instant counts to the millisecond it falls in",
		"a hold that is replaced is twice as long":          "slots are held from the last extend",
		"a hold that is replaced is half as long":           "slots are held from the last extend",
		"a hold never ends":                                 "an instant counts to the millisecond it falls in",
		"a shrink keeps the old hold":                       "leaked slots",
		"a shrink does not replace the hold":                "leaked slots",
		"a complete keeps the slots":                        "slots return when the lease is settled",
		"a cancel keeps the holds":                          "slots return when the lease is settled",
		"an extend keeps the old hold":                      "leaked slots",
		"an extend lets the slots go":                       "receipts are at a millisecond",
		"a refill is not bounded by what is spent":          "a bucket regains up to its capacity",
		"a refill is dropped while the anchor moves":        "a wait is rounded up",
		"a refill gives twice as much":                      "available is rounded down",
		"a refill is left out":                              "the largest bucket",
		"an anchor is set back":                             "available is rounded down",
		"a changed capacity is not carried out":             "O2: default changes reach live buckets",
		"a changed capacity counts twice":                   "only the first level that has limits applies",
		"an overrun is dropped":                             "debt is paid by the refill",
		"an overrun counts twice":                           "debt is rounded down too",
		"a refund is dropped":                               "a cost of 0 is denied over the capacity: bucket",
		"a refund counts twice":                             "a shadow limit is settled: bucket",
		"a refund is not bounded by what is spent":          "R1: balance above capacity after many refunds",
		"a settlement does not end the token before":        "servers: each settles what it knows of a lease",
		"a lease's header has an ID of its own each time":   "the same content",
		"the attempts of a lease have the same IDs":         "a full shadow limit denies nothing: window",
		"a budget has one account for all periods":          "a budget of an hour in UTC",
		"a cancel before the reserve is not reported":       "servers: a cancel comes before its reserve",
	}
}

// events returns a fault that does something to each event that which selects.
func events(name string, which func(*tamperedCall, int) bool, do func(*tamperedCall, int)) *wrong {
	return &wrong{name: name, change: func(c *tamperedCall) {
		for i := range c.meant {
			if which(c, i) {
				do(c, i)
			}
		}
	}}
}

// leave leaves an event out.
func leave(c *tamperedCall, i int) { c.left[i] = true }

// amounts returns a function that changes the amount of an event.
func amounts(f func(uint64) uint64) func(*tamperedCall, int) {
	return func(c *tamperedCall, i int) { c.amount(i, f) }
}

func none(uint64) uint64    { return 0 }
func twice(n uint64) uint64 { return 2 * n }

// checks selects the events that check a take. posts selects those of buckets and budgets, which
// also take.
func checks(c *tamperedCall, i int) bool { return c.code(i) == codeCheck && !c.resolves(i) }
func posts(c *tamperedCall, i int) bool  { return c.code(i) == codeCheck && c.is(i, flagPost) }

// holds selects the pending transfers of windows and slots. backs selects the events that end them
// early.
func holds(c *tamperedCall, i int) bool {
	return c.is(i, flagPending) && (c.code(i) == codeTake || c.code(i) == codeKept)
}
func replacesHold(c *tamperedCall, i int) bool { return holds(c, i) && c.code(i) == codeKept }
func endsHold(c *tamperedCall, i int) bool {
	return c.is(i, flagVoid) && (c.code(i) == codeTake || c.code(i) == codeKept)
}

// withCode selects the events with a code.
func withCode(code uint16) func(*tamperedCall, int) bool {
	return func(c *tamperedCall, i int) bool { return !c.resolves(i) && c.meant[i].Code == code }
}

// inUpdate restricts a selection to the calls of an update.
func inUpdate(header uint16, which func(*tamperedCall, int) bool) func(*tamperedCall, int) bool {
	return func(c *tamperedCall, i int) bool { return c.header() == header && which(c, i) }
}

// unchecked returns faults by which takes are checked wrongly, or not all together.
func unchecked() []*wrong {
	held := func(c *tamperedCall, i int) bool { // windows and slots take by another event
		return c.code(i) == codeCheck && (c.is(i, flagVoid) ||
			checks(c, i) && i+1 < len(c.meant) && c.is(i+1, flagVoid))
	}
	return []*wrong{
		events("a window's or slots' check is left out", held, leave),
		events("a bucket's or budget's check has no rest", checks, func(c *tamperedCall, i int) {
			if i+1 < len(c.meant) && posts(c, i+1) {
				c.all[i].Amount = c.meant[i+1].Amount
			}
		}),
		events("a check asks for one unit less", checks, amounts(func(n uint64) uint64 { return n - 1 })),
		events("a check's whole amount is posted", posts, func(c *tamperedCall, i int) {
			c.all[i].Amount = c.w.pending[c.meant[i].PendingID].Amount
		}),
		events("a check is voided instead of taking", posts, func(c *tamperedCall, i int) {
			c.all[i].Flags = c.all[i].Flags&^flagPost | flagVoid
			c.all[i].Amount = tb.Uint128{}
		}),
		events("a check is not ended", inUpdate(codeLease, func(c *tamperedCall, i int) bool {
			return c.code(i) == codeCheck && c.is(i, flagVoid)
		}), leave),
		events("the chain is not linked", func(c *tamperedCall, i int) bool { return c.is(i, flagLinked) },
			func(c *tamperedCall, i int) { c.all[i].Flags &^= flagLinked }),
		events("what the second limit takes is not counted", func(c *tamperedCall, i int) bool {
			return posts(c, i) && c.w.pending[c.meant[i].PendingID].UserData32>>8 == 1
		}, amounts(none)),
		events("what a shadow limit takes is not counted", func(c *tamperedCall, i int) bool {
			return withCode(codeTake)(c, i) && !c.is(i, flagPending)
		}, amounts(none)),
		events("a bucket's take leaves out what is spent", checks, func(c *tamperedCall, i int) {
			if c.meant[i].CreditAccountID == oddID(c.meant[i].DebitAccountID) {
				c.all[i].CreditAccountID = newNamespace("default").vault
			}
		}),
	}
}

// wrongHolds are units that return too early, too late or never.
func wrongHolds() []*wrong {
	timeout := func(f func(uint32) uint32) func(*tamperedCall, int) {
		return func(c *tamperedCall, i int) { c.all[i].Timeout = f(c.meant[i].Timeout) }
	}
	longer := func(n uint32) uint32 { return 2 * n }
	shorter := func(n uint32) uint32 { return n/2 + n%2 }
	return []*wrong{
		events("a hold is twice as long", holds, timeout(longer)),
		events("a hold is half as long", holds, timeout(shorter)),
		events("a hold that is replaced is twice as long", replacesHold, timeout(longer)),
		events("a hold that is replaced is half as long", replacesHold, timeout(shorter)),
		events("a hold never ends", holds, timeout(func(uint32) uint32 { return 0 })),
		events("a shrink keeps the old hold", inUpdate(codeAdjusted, endsHold), leave),
		events("a shrink does not replace the hold", inUpdate(codeAdjusted, replacesHold), leave),
		events("a complete keeps the slots", inUpdate(leaseCompleted, endsHold), leave),
		events("a cancel keeps the holds", inUpdate(leaseCancelled, endsHold), leave),
		events("an extend keeps the old hold", inUpdate(codeExtended, endsHold), leave),
		events("an extend lets the slots go", inUpdate(codeExtended, replacesHold), leave),
	}
}

// wrongRefills returns faults by which a refill gives too much or too little.
func wrongRefills() []*wrong {
	refills := withCode(codeRefill)
	unbalanced := func(c *tamperedCall, i int) { c.all[i].Flags &^= flagBalancing }
	return []*wrong{
		events("a refill is not bounded by what is spent", refills, unbalanced),
		events("a refill is dropped while the anchor moves", refills, amounts(none)),
		events("a refill gives twice as much", refills, amounts(twice)),
		events("a refill is left out", refills, leave),
		events("a refill has an ID of its own", refills, func(c *tamperedCall, i int) { c.rename(i) }),
		events("an anchor is set back", refills, func(c *tamperedCall, i int) { c.all[i].UserData64 -= 5000 }),
		events("a changed capacity is not carried out", withCode(codeCapacity), amounts(none)),
		events("a changed capacity counts twice", withCode(codeCapacity), amounts(twice)),
	}
}

// rename gives an event an ID that was never used. Events that end it are changed to match.
func (c *tamperedCall) rename(i int) {
	c.w.made++
	id := idOf(digest("renamed", time.Unix(0, int64(c.w.made)).String()))
	c.w.renamed[c.meant[i].ID] = id
	c.all[i].ID = id
}

// misnamed returns faults by which events have other IDs, or carry other data.
func misnamed() []*wrong {
	leases := withCode(codeLease)
	fixed := func(c *tamperedCall, id *tb.Uint128) {
		if name, ok := c.w.budgets[*id]; ok {
			*id = c.w.periods[name]
		}
	}
	return []*wrong{
		{name: "a lease's header has an ID of its own each time", change: func(c *tamperedCall) {
			for i := range c.meant {
				if leases(c, i) {
					c.rename(i)
				} else if id, ok := c.w.renamed[c.meant[i].PendingID]; ok {
					c.all[i].PendingID = id
				}
			}
		}},
		events("a cancel before the reserve is not reported", withCode(codeVoid), leave),
		events("a lease's fingerprint is dropped", leases,
			func(c *tamperedCall, i int) { c.all[i].UserData64 = 0 }),
		events("a lease's end is not reported", leases, amounts(none)),
		events("an end's fingerprint is dropped", func(c *tamperedCall, i int) bool {
			return c.resolves(i) && c.meant[i].UserData32&endMark != 0
		}, func(c *tamperedCall, i int) { c.all[i].UserData64 = 0 }),
		events("an extended lease's end is not reported", withCode(codeExtended), amounts(none)),
		events("an adjust's number is not reported", withCode(codeAdjusted), amounts(none)),
		events("what each charge stands for is not reported", func(c *tamperedCall, i int) bool {
			return withCode(codeKept)(c, i) && !c.is(i, flagPending)
		}, func(c *tamperedCall, i int) { c.all[i].UserData64 = 1 }),
		events("the keys of charges are not reported", withCode(codeKey),
			func(c *tamperedCall, i int) { c.all[i].UserData64 = 0 }),
		events("the keys of charges are reported in another order", withCode(codeKey), func(c *tamperedCall, i int) {
			if next := i + 1; next < len(c.meant) && withCode(codeKey)(c, next) {
				c.all[i].UserData64 = c.meant[next].UserData64
			} else {
				c.all[i].UserData64 = c.meant[i-1].UserData64
			}
		}),
		{name: "the attempts of a lease have the same IDs", change: attemptless},
		{name: "a budget has one account for all periods", change: func(c *tamperedCall) {
			for i := range c.all {
				fixed(c, &c.all[i].DebitAccountID)
				fixed(c, &c.all[i].CreditAccountID)
			}
		}},
	}
}

// attemptless gives each event the ID that it had in the lease's first chain.
func attemptless(c *tamperedCall) {
	if c.header() != codeLease {
		return
	}
	again := make(map[tb.Uint128]tb.Uint128)
	index := 0
	for i := range c.meant {
		t := &c.meant[i]
		if t.UserData128 == (tb.Uint128{}) || t.Code == codeLease || t.Code >= codeRefill || t.Code == codeFund {
			continue
		}
		index++
		c.all[i].ID = transferID(leaseOf(t.UserData128), 0, index)
		again[t.ID] = c.all[i].ID
		if id, ok := again[t.PendingID]; ok {
			c.all[i].PendingID = id
		}
	}
}

// wrongUpdates returns faults by which an update takes or returns something else.
func wrongUpdates() []*wrong {
	grown, refunds := withCode(codeGrown), withCode(codeRefund)
	return []*wrong{
		events("an overrun is dropped", inUpdate(leaseCompleted, grown), amounts(none)),
		events("an overrun counts twice", grown, amounts(twice)),
		events("a refund is dropped", refunds, amounts(none)),
		events("a refund counts twice", refunds, amounts(twice)),
		events("a refund is not bounded by what is spent", refunds, func(c *tamperedCall, i int) {
			c.all[i].Flags &^= flagBalancing
		}),
		events("a settlement does not end the token before", func(c *tamperedCall, i int) bool {
			code := c.code(i)
			return c.is(i, flagVoid) && c.meant[i].UserData32&endMark == 0 && code >= codeLease && code <= codeExtended
		}, leave),
	}
}

// serversLimits returns the definitions of the cases with several servers.
func serversLimits() *weir.Definitions {
	return &weir.Definitions{System: []weir.Limit{
		{Name: "bucket", Kind: weir.Bucket, Capacity: 100, RefillAmount: 10, RefillPeriod: time.Minute},
		{Name: "budget", Kind: weir.Budget, Capacity: 100, Every: "month", Zone: "UTC"},
		{Name: "slots", Kind: weir.Concurrency, Capacity: 100, Timeout: time.Minute},
		{Name: "window", Kind: weir.Window, Capacity: 100, Window: time.Minute},
	}}
}

// servers are two limiters on one cluster.
type servers struct {
	conformance.T
	a, b *limiter.Limiter
	w    *tampered
}

// onServers returns a case that is played on two servers.
func onServers(name string, play func(s *servers)) brokenCase {
	return brokenCase{"servers: " + name, func(t conformance.T, x *wrong) {
		t.Helper()
		s := &servers{T: t, w: newTampered(time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC), x)}
		for _, l := range []**limiter.Limiter{&s.a, &s.b} {
			var err error
			*l, err = limiter.New(s.w.join(t, serversLimits()), &limiter.Options{Now: s.w.clock.now})
			if err != nil {
				t.Fatalf("new: %v", err)
			}
		}
		play(s)
	}}
}

// each returns costs of n units of every limit.
func each(n int64) weir.Costs {
	return weir.Costs{"bucket": n, "budget": n, "slots": n, "window": n}
}

func (s *servers) pass(d time.Duration) { s.w.clock.to(s.w.clock.now().Add(d)) }

// take reserves on the first server.
func (s *servers) take(charges ...weir.Costs) *weir.Lease {
	s.Helper()
	r := &weir.Request{}
	for _, c := range charges {
		r.Charges = append(r.Charges, weir.Charge{Entity: "e", Resource: "r", Costs: c})
	}
	lease, err := s.a.Reserve(s.Context(), r)
	if err != nil {
		s.Fatalf("reserve: %v", err)
	}
	return lease
}

// ok expects an update to succeed.
func (s *servers) ok(_ *weir.Receipt, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("settle: %v", err)
	}
}

// used expects units in use of each limit, on both servers.
func (s *servers) used(bucket, budget, slots, window int64) {
	s.Helper()
	want := []int64{100 - bucket, 100 - budget, 100 - slots, 100 - window}
	for _, l := range []*limiter.Limiter{s.a, s.b} {
		limits, err := l.Status(s.Context(), "e", "r")
		if err != nil {
			s.Fatalf("status: %v", err)
		}
		for i := range limits {
			if limits[i].Available != want[i] {
				s.Errorf("%s: %d available, want %d", limits[i].Limit, limits[i].Available, want[i])
			}
		}
	}
}

// serverCases returns the cases that need several servers, so that the suites cannot have them.
func serverCases() []brokenCase { return append(updateCases(), reserveCases()...) }

func updateCases() []brokenCase {
	return []brokenCase{
		onServers("each settles what it knows of a lease", func(s *servers) {
			l := s.take(each(40))
			s.ok(s.b.Adjust(s.Context(), l.ID, 1, []weir.Costs{each(20)}))
			s.ok(s.a.Adjust(s.Context(), l.ID, 2, []weir.Costs{each(10)}))
			s.used(10, 10, 10, 10)
		}),
		onServers("another one completes", func(s *servers) {
			l := s.take(each(40), each(20))
			actuals := []weir.Costs{{"bucket": 50, "budget": 50, "window": 50}, nil}
			s.ok(s.b.Complete(s.Context(), l.ID, actuals))
			s.used(70, 70, 0, 70)
			s.ok(s.a.Complete(s.Context(), l.ID, actuals))
			s.used(70, 70, 0, 70)
		}),
		onServers("another one completes by name", func(s *servers) {
			e, other := weir.Subject{Entity: "e", Resource: "r"}, weir.Subject{Entity: "other", Resource: "r"}
			l, err := s.a.Reserve(s.Context(), &weir.Request{Keyed: true, Charges: []weir.Charge{
				{Entity: other.Entity, Resource: other.Resource, Costs: each(20)},
				{Entity: e.Entity, Resource: e.Resource, Costs: each(40)},
			}})
			if err != nil {
				s.Fatalf("reserve: %v", err)
			}
			actuals := []weir.Costs{{e.FullName("bucket"): 50, e.FullName("window"): 50, other.FullName("budget"): 1}}
			s.ok(s.b.Complete(s.Context(), l.ID, actuals))
			s.used(50, 40, 0, 50)
			s.ok(s.a.Complete(s.Context(), l.ID, actuals))
			s.used(50, 40, 0, 50)
		}),
		onServers("another one knows until when a lease lives", func(s *servers) {
			l := s.take(each(1))
			s.pass(time.Minute)
			s.ok(s.a.Extend(s.Context(), l.ID))
			s.pass(59*time.Minute + 30*time.Second)
			s.ok(s.b.Adjust(s.Context(), l.ID, 1, []weir.Costs{{"bucket": 2}}))
		}),
		onServers("another one settles after the slots", func(s *servers) {
			l := s.take(each(1))
			s.pass(59 * time.Minute)
			s.ok(s.b.Adjust(s.Context(), l.ID, 1, []weir.Costs{{"bucket": 2}}))
		}),
		onServers("another one knows which adjust was last", func(s *servers) {
			l := s.take(each(40))
			s.ok(s.a.Adjust(s.Context(), l.ID, 7, []weir.Costs{each(30)}))
			_, _ = s.b.Adjust(s.Context(), l.ID, 5, []weir.Costs{each(10)}) // an older adjust, whose answer does not matter
			s.used(30, 30, 30, 30)
		}),
	}
}

func reserveCases() []brokenCase {
	return []brokenCase{
		onServers("another one answers a repeated reservation", func(s *servers) {
			l := s.take(each(40))
			r := &weir.Request{LeaseID: l.ID, Charges: []weir.Charge{{Entity: "e", Resource: "r", Costs: each(40)}}}
			if _, err := s.b.Reserve(s.Context(), r); err != nil {
				s.Fatalf("reserve again: %v", err)
			}
			s.used(40, 40, 40, 40)
		}),
		onServers("a cancel comes before its reserve", func(s *servers) {
			id := weir.NewLeaseID(s.w.clock.now())
			if _, err := s.a.Cancel(s.Context(), id); !errors.Is(err, weir.UnknownLease) {
				s.Errorf("cancel: got %v, want %v", err, weir.UnknownLease)
			}
			r := &weir.Request{LeaseID: id, Entity: "e", Resource: "r", Costs: each(1)}
			if _, err := s.b.Reserve(s.Context(), r); !errors.Is(err, weir.Ended) {
				s.Errorf("reserve: got %v, want %v", err, weir.Ended)
			}
			s.used(0, 0, 0, 0)
		}),
		onServers("two refill a bucket", func(s *servers) {
			r := &weir.Request{Entity: "e", Resource: "r", Costs: weir.Costs{"bucket": 50}}
			for _, l := range []*limiter.Limiter{s.a, s.b} {
				if _, err := l.Reserve(s.Context(), r); err != nil {
					s.Fatalf("reserve: %v", err)
				}
			}
			s.pass(time.Minute)
			r.Costs = weir.Costs{"bucket": 10}
			if _, err := s.a.Reserve(s.Context(), r); err != nil {
				s.Fatalf("reserve: %v", err)
			}
			if _, err := s.b.Reserve(s.Context(), r); err == nil {
				s.Errorf("what was refilled was taken twice")
			}
		}),
	}
}

// leaseOf returns the ID of the lease with a number.
func leaseOf(n tb.Uint128) weir.LeaseID {
	b := n.Bytes()
	var id weir.LeaseID
	for i := range id {
		id[i] = b[15-i]
	}
	return id
}
