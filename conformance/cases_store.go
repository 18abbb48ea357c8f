package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// seamLine is the line of cases about docs/new-backend.md, which has no numbers.
const seamLine = "seam"

// seamCases returns the cases about what the limiter requires of a store.
func seamCases() []storeCase {
	b := only(weir.Bucket)
	cascade, lists := Needs{Kinds: b.Kinds, Depth: 1}, Needs{Kinds: b.Kinds, Lists: true}
	ten := Setup{Definitions: systemLimits(slowLimit(weir.Bucket, "n", 10), slowLimit(weir.Bucket, "m", 10))}
	cases := []storeCase{
		{"traits make sense", seamLine, Needs{}, honestTraits},
		{"an unsupported kind is refused", seamLine, Needs{}, unsupportedKinds},
		{"an unsupported shadow limit is refused", seamLine, b, unsupportedShadow},
		{"a depth that is too much is refused", seamLine, Needs{}, tooDeep},
		{"statuses and holdings are in the order of the plan", seamLine, cascade,
			onSeam(Setup{Definitions: parentSmaller()}, planOrder)},
		{"a denied outcome holds nothing", seamLine, b, onSeam(ten, deniedOutcome)},
		{"outcomes are at a millisecond", "1.2", Needs{Kinds: b.Kinds, Virtual: true},
			onSeam(ten, outcomeAt)},
		{"an error of the plan is returned as it is", seamLine, b, onSeam(ten, planError)},
		{"a parent that is not declared is charged only if the traits say so", "9.2", cascade,
			onSeam(Setup{Definitions: parentSmaller()}, undeclaredParent)},
		{"nothing is locked while the plan is made", seamLine, b, onSeam(ten, planUnlocked)},
		{"a process that knows nothing charges what is configured", seamLine, b,
			onSeam(Setup{Definitions: systemLimits(slowLimit(weir.Bucket, "n", 10))}, coldProcess)},
		{"a plan by definitions that have changed is stale, or is taken completely", seamLine, b,
			onSeam(Setup{Definitions: systemLimits(slowLimit(weir.Bucket, "n", 10))}, stalePlan)},
		{"a failed settle changes nothing", "7.10", Needs{Kinds: []weir.Kind{weir.Bucket}},
			onSeam(ten, failedSettle)},
		{"status creates nothing", seamLine, b, onSeam(ten, statusCreates)},
		{"what has had a status alone is not listed", seamLine, lists, onSeam(ten, statusUnlisted)},
		{"statuses are in the order asked", seamLine, b, onSeam(ten, statusOrder)},
		{"the store is closed with its limiter", seamLine, b, closesOnce},
	}
	for _, k := range allKinds() {
		set := Setup{Definitions: systemLimits(slowLimit(k, "n", 10))}
		name := "settling leaves the holdings as they are: " + string(k)
		run := onSeam(set, func(s *storeDriver) { holdingsKept(s, k) })
		cases = append(cases, storeCase{name, seamLine, only(k), run})
	}
	return cases
}

func honestTraits(t T, h StoreHarness) {
	b := h.Open(t, Setup{Start: begin(), Definitions: &weir.Definitions{}})
	defer func() { _ = b.Close() }()
	traits := b.Traits()
	if len(traits.Kinds) == 0 || traits.CascadeDepth < 0 || traits.ExpiryLate < 0 {
		t.Fatalf("got traits %+v", traits)
	}
	for i, k := range traits.Kinds {
		if !slices.Contains(allKinds(), k) || slices.Contains(traits.Kinds[:i], k) {
			t.Fatalf("got kinds %v, want known ones, each once", traits.Kinds)
		}
	}
}

// unsupportedKinds hides the store's kinds, one at a time. The limiter must refuse a hidden kind
// wherever it could come from.
func unsupportedKinds(t T, h StoreHarness) {
	for _, kind := range allKinds() {
		store := newFaulty(t, h.Open(t, Setup{Start: begin(), Definitions: &weir.Definitions{}}))
		store.traits.Kinds = slices.DeleteFunc(slices.Clone(store.traits.Kinds),
			func(k weir.Kind) bool { return k == kind })
		unsupportedLimit(t, h, store, slowLimit(kind, "n", 10))
	}
}

// unsupportedShadow does the same for shadow limits.
func unsupportedShadow(t T, h StoreHarness) {
	store := newFaulty(t, h.Open(t, Setup{Start: begin(), Definitions: &weir.Definitions{}}))
	store.traits.NoShadow = true
	unsupportedLimit(t, h, store, shadowed(slowLimit(weir.Bucket, "n", 10)))
}

func unsupportedLimit(t T, h StoreHarness, store *faultyStore, mine weir.Limit) {
	t.Helper()
	_, err := limiter.New(store.forLimiter(), &limiter.Options{Limits: []weir.Limit{mine}})
	s := &caseWorld{T: t, World: &storeWorld{timekeeper: NewClock(begin())}}
	s.unsupported(err)
	w := h.world(t, Setup{Start: begin()}, store.forLimiter())
	s.World = w
	_, err = w.Reserve(t.Context(), bringing(ask("a", cost(1)), mine))
	s.unsupported(err)
	for _, d := range []*weir.Definitions{
		systemLimits(mine),
		{Resources: map[string][]weir.Limit{"m": {mine}}},
		{Entities: map[string]weir.EntityDefinition{"a": {Limits: map[string][]weir.Limit{"m": {mine}}}}},
	} {
		s.unsupported(w.Limiter.Configure(t.Context(), d))
	}
	for _, at := range []weir.Subject{{}, {Resource: "m"}, {Entity: "a", Resource: "m"}} {
		s.unsupported(w.SetLimits(t.Context(), at, []weir.Limit{mine}))
	}
	if err := w.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func (s *caseWorld) unsupported(err error) {
	s.Helper()
	if !errors.Is(err, weir.Unsupported) || isDenial(err) {
		s.Fatalf("got %v, want %q", err, weir.Unsupported)
	}
}

func tooDeep(t T, h StoreHarness) {
	store := newFaulty(t, h.Open(t, Setup{Start: begin(), Definitions: &weir.Definitions{}}))
	defer func() { _ = store.Close() }()
	depth := min(store.traits.CascadeDepth, 8)
	for _, d := range []int{depth + 1, 9, -1} {
		_, err := limiter.New(store.forLimiter(), &limiter.Options{CascadeDepth: d})
		if !errors.Is(err, weir.Invalid) {
			t.Fatalf("a cascade over %d levels: got %v, want %q", d, err, weir.Invalid)
		}
	}
}

func planOrder(s *storeDriver) {
	charges := []weir.Charge{
		charge("parent", weir.Costs{"n": 1}),
		charge("child", weir.Costs{"n": 1, "m": 1}),
	}
	want := []string{"parent n", "child m", "child n"}
	r, out := s.reserve(charges...)
	holdings := s.holds[r.ID]
	var held []string
	for _, h := range holdings {
		held = append(held, h.Entity+" "+h.Limit.Name)
	}
	if !slices.Equal(order(out.Limits), want) || !slices.Equal(held, want) {
		s.Fatalf("got statuses %v and holdings %v, want both %v", order(out.Limits), held, want)
	}
	if got := sum(holdings[0].Parts); got != 2 || len(holdings[0].Parts) != 2 {
		s.Fatalf("got parts %v on the parent, want one of each charge", holdings[0].Parts)
	}
	s.settle(s.settlement(r.ID, weir.VerbComplete, 2))
	got := s.status(weir.Subject{Entity: "parent", Resource: resource}, weir.Subject{Entity: "child", Resource: resource})
	if want := []int64{10, 4, 8, 8}; !slices.EqualFunc(got, want, func(st weir.LimitStatus, n int64) bool {
		return st.Available == n
	}) {
		s.Fatalf("got %v available after each part was completed with 2, want %v", got, want)
	}
}

func sum(parts []driver.Part) (total int64) {
	for _, p := range parts {
		total += p.Units
	}
	return total
}

func deniedOutcome(s *storeDriver) {
	s.reserve(charge("a", cost(8)))
	_, out := s.reserve(charge("b", cost(1)), charge("a", cost(3)))
	if !out.Denied || len(out.Limits) != 2 || !out.Limits[1].Exceeded {
		s.Fatalf("got %+v, want denied with two statuses", out)
	}
	if a, b := s.available("a", "n"), s.available("b", "n"); a != 2 || b != 10 {
		s.Fatalf("got %d and %d available after a denial, want 2 and 10", a, b)
	}
	_, out = s.reserve(charge("b", cost(1)), charge("a", cost(2)))
	if out.Denied {
		s.Fatalf("got %+v, want admitted", out)
	}
}

func outcomeAt(s *storeDriver) {
	at := s.now
	s.now = at.Add(900 * time.Microsecond)
	r, out := s.reserve(charge("a", cost(3)))
	if !out.At.Equal(at) {
		s.Fatalf("reserve: got at %v, want %v", out.At, at)
	}
	for _, verb := range []weir.Verb{weir.VerbAdjust, weir.VerbExtend, weir.VerbComplete} {
		if out := s.settle(s.settlement(r.ID, verb, 2)); !out.At.Equal(at) {
			s.Fatalf("%s: got at %v, want %v", verb, out.At, at)
		}
	}
}

// limiter returns a limiter over the store, which it does not close.
func (s *storeDriver) limiter() *limiter.Limiter {
	s.Helper()
	l, err := limiter.New(s.store, &limiter.Options{
		Now: func() time.Time { return s.now }, StoreTimeout: 10 * time.Second,
	})
	if err != nil {
		s.Fatalf("open a limiter: %v", err)
	}
	return l
}

// planError has the read of the configuration fail: for an entity that the store does not know yet,
// and for one that it knows, from which an unplanned reservation may have taken something
// meanwhile.
func planError(s *storeDriver) {
	s.reserve(charge("known", cost(1)))
	for _, code := range []weir.Code{weir.NotFound, weir.PermissionDenied, weir.Unavailable} {
		for _, entity := range []string{"a", "known"} {
			s.faulty.fail("read", &weir.Error{Code: code})
			l, err := s.limiter().Reserve(s.Context(), ask(entity, cost(1)))
			if !errors.Is(err, code) {
				s.Fatalf("got %v, %v, want %q", l, err, code)
			}
			s.faulty.clearFaults()
		}
	}
	if a, known := s.available("a", "n"), s.available("known", "n"); a != 10 || known != 9 {
		s.Fatalf("got %d and %d available after errors, want 10 and 9", a, known)
	}
}

// undeclaredParent returns a configuration in which the parent is not declared.
func undeclaredParent(s *storeDriver) {
	s.faulty.told = func(of weir.Subject, c *weir.Config) { c.Known = c.Known && of.Entity != "parent" }
	both := []string{"child n", "parent n"}
	for range 2 { // the second time the store may know both
		l, err := s.limiter().Reserve(s.Context(), ask("child", weir.Costs{"n": 2}))
		if !s.store.Traits().UndeclaredParents {
			if !errors.Is(err, weir.NotFound) {
				s.Fatalf("got %v, %v, want %q", l, err, weir.NotFound)
			}
			continue
		}
		if err != nil || !slices.Equal(order(l.Limits), both) {
			s.Fatalf("got %+v, %v, want both charged", l, err)
		}
	}
}

// planUnlocked makes another call to the store while the configuration is read. The store must not
// hold a lock then.
func planUnlocked(s *storeDriver) {
	s.reserve(charge("a", cost(1)))
	s.faulty.told = func(weir.Subject, *weir.Config) {
		judged := []driver.Judged{{Subject: weir.Subject{Entity: "a", Resource: resource}}}
		if _, err := s.store.Status(s.Context(), s.now, judged); err != nil {
			s.Errorf("status: %v", err)
		}
	}
	l := s.limiter()
	done := make(chan error, 1)
	go func() {
		_, err := l.Reserve(s.Context(), ask("a", cost(1)))
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			s.Fatalf("reserve: %v", err)
		}
	case <-time.After(5 * time.Second):
		s.Fatalf("the store waits for itself: something is locked while the plan is made")
	}
}

// coldProcess has a new limiter reserve on limits that were used before: unchanged, raised, and
// lowered. A store that reserves unplanned uses the old limits.
func coldProcess(s *storeDriver) {
	for _, tt := range []struct {
		entity                string
		capacity, take, after int64
	}{{"same", 10, 3, 3}, {"raised", 20, 2, 4}, {"lowered", 5, 3, 2}} {
		of := weir.Subject{Entity: tt.entity, Resource: resource}
		s.reserve(charge(tt.entity, cost(4)))
		if tt.capacity != 10 && !s.change(weir.Subject{}, slowLimit(weir.Bucket, "n", tt.capacity)) {
			return
		}
		l := s.limiter()
		lease, err := l.Reserve(s.Context(), ask(tt.entity, cost(tt.take)))
		if err != nil {
			s.Fatalf("%s: got %v, want it admitted", tt.entity, err)
		}
		st := lease.Limits[0]
		if st.Capacity != tt.capacity || st.Available != tt.after {
			s.Fatalf("%s: got %+v, want %d of %d available", tt.entity, st, tt.after, tt.capacity)
		}
		if got := s.status(of)[0].Available; got != tt.after {
			s.Fatalf("%s: the store has %d available, want %d", tt.entity, got, tt.after)
		}
		_, fits := s.limiter().Reserve(s.Context(), ask(tt.entity, cost(tt.after)))
		_, over := s.limiter().Reserve(s.Context(), ask(tt.entity, cost(1)))
		s.Logf("%s: all that the definition admits: %v; a unit more: %v", tt.entity, fits, over)
		if fits != nil || !isDenial(over) {
			s.Fatalf("%s: got %v and %v, want all that is left admitted and no more", tt.entity, fits, over)
		}
		if tt.capacity != 10 {
			s.change(weir.Subject{}, slowLimit(weir.Bucket, "n", 10))
		}
	}
}

// change changes the limits of a place as another process does. It returns false if the
// configuration is not written through this store.
func (s *storeDriver) change(at weir.Subject, limits ...weir.Limit) bool {
	s.Helper()
	var other driver.Store = s.faulty
	if s.opens.OpenSecond != nil {
		other = s.opens.OpenSecond(s.T, s.faulty.Store)
	}
	err := other.(driver.ConfigEditor).WriteLimits(s.Context(), s.now, at, normal(s, limits...))
	if errors.Is(err, weir.Unsupported) {
		s.Logf("the configuration is not written through this store")
		return false
	}
	if err != nil {
		s.Fatalf("write limits: %v", err)
	}
	return true
}

// stalePlan gives the store a plan by definitions that have been changed through it. If the store
// notices, nothing is charged and the outcome is a contended denial; the next plan is admitted.
func stalePlan(s *storeDriver) {
	r := s.reservation(charge("a", cost(7)))
	old := s.plan(r)
	limits := normal(s, slowLimit(weir.Bucket, "n", 20))
	err := s.faulty.WriteLimits(s.Context(), s.now, weir.Subject{}, limits)
	if errors.Is(err, weir.Unsupported) {
		s.Logf("the configuration is not written through this store")
		return
	} else if err != nil {
		s.Fatalf("write limits: %v", err)
	}
	p := s.plan(r)
	noticed := p.Subjects[0].Version > old.Subjects[0].Version
	out := old.Outcome()
	err = s.store.Reserve(s.Context(), s.now, old, out)
	switch stale, ok := errors.AsType[*driver.StaleError](err); {
	case !noticed && err == nil && !out.Denied:
		s.Logf("the store has no versions, and took by the old plan")
		if got := s.available("a", "n"); got != 3 && got != 13 {
			s.Fatalf("got %d available after 7 were taken, want 3 of 10 or 13 of 20", got)
		}
		return
	case !ok || stale.Lease != nil || !out.Denied || !out.Contended:
		s.Fatalf("a plan of version %d, before %d: got %+v, %v, want it stale",
			old.Subjects[0].Version, p.Subjects[0].Version, out, err)
	default:
		if got := s.available("a", "n"); got != 20 {
			s.Fatalf("got %d available after a plan that was stale, want 20", got)
		}
		p.Again = true
		if out, err := s.try(p); err != nil || out.Denied {
			s.Fatalf("planned again: got %+v, %v, want it admitted", out, err)
		}
	}
	if got := s.available("a", "n"); got != 13 {
		s.Fatalf("got %d available of 20 after 7 were taken, want 13", got)
	}
}

// normal returns limits as a limiter passes them to a store.
func normal(t T, limits ...weir.Limit) []weir.Limit {
	t.Helper()
	for i := range limits {
		var err error
		if limits[i], err = limits[i].Normalize(); err != nil {
			t.Fatalf("limit %s: %v", limits[i].Name, err)
		}
	}
	return limits
}

// failedSettle asks for more than can be counted, on one limit of two.
func failedSettle(s *storeDriver) {
	r, _ := s.reserve(charge("a", weir.Costs{"n": 3, "m": 4}))
	deep, _ := s.reserve(charge("a", cost(0)))
	s.settle(s.settlement(deep.ID, weir.VerbAdjust, largestBucket))
	before := s.status(weir.Subject{Entity: "a", Resource: resource})
	for _, verb := range []weir.Verb{weir.VerbAdjust, weir.VerbComplete} {
		_, err := s.update(s.settlement(r.ID, verb, math.MaxInt64/1000))
		if !errors.Is(err, weir.Invalid) {
			s.Fatalf("%s past what can be counted: got %v, want %q", verb, err, weir.Invalid)
		}
	}
	if after := s.status(weir.Subject{Entity: "a", Resource: resource}); !slices.Equal(before, after) {
		s.Fatalf("a failed settle changed %v to %v", before, after)
	}
	s.settle(s.settlement(deep.ID, weir.VerbCancel, 0))
	s.settle(s.settlement(r.ID, weir.VerbComplete, 1))
	if n, m := s.available("a", "n"), s.available("a", "m"); n != 9 || m != 9 {
		s.Fatalf("got %d and %d available after it was repeated, want 9 and 9", n, m)
	}
}

// unchargedSubjects returns subjects that were never charged.
func unchargedSubjects() []weir.Subject {
	var of []weir.Subject
	for i := range 50 {
		of = append(of, weir.Subject{Entity: fmt.Sprintf("ghost%d", i), Resource: resource})
	}
	return of
}

func statusCreates(s *storeDriver) {
	for _, st := range s.status(unchargedSubjects()...) {
		if st.Available != 10 || st.Requested != 0 || st.Exceeded || st.RetryAfter != 0 {
			s.Fatalf("got %+v of a limit that nobody used", st)
		}
	}
}

func statusUnlisted(s *storeDriver) {
	lister, ok := s.faulty.Store.(driver.SubjectLister)
	if !ok {
		s.Fatalf("the store is no weir.SubjectLister: its harness must have NoLists")
	}
	of := unchargedSubjects()
	s.status(of...)
	for _, subject := range of {
		names, err := lister.Resources(s.Context(), s.now, subject.Entity)
		if err != nil || len(names) > 0 {
			s.Fatalf("after a status: got resources %v, %v, want none", names, err)
		}
	}
	s.reserve(charge("ghost0", cost(1)))
	if names, err := lister.Resources(s.Context(), s.now, "ghost0"); err != nil || len(names) != 1 {
		s.Fatalf("after a reservation: got resources %v, %v, want one", names, err)
	}
}

func statusOrder(s *storeDriver) {
	subject := func(e string) weir.Subject { return weir.Subject{Entity: e, Resource: resource} }
	s.reserve(charge("b", cost(4)))
	got := order(s.status(subject("c"), subject("b"), subject("a")))
	want := []string{"c m", "c n", "b m", "b n", "a m", "a n"}
	if !slices.Equal(got, want) {
		s.Fatalf("got statuses of %v, want %v", got, want)
	}
}

func closesOnce(t T, h StoreHarness) {
	store := newFaulty(t, h.Open(t, Setup{Start: begin(), Definitions: &weir.Definitions{}}))
	w := h.world(t, Setup{Start: begin()}, store.forLimiter())
	if err := w.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if n := store.counted()["close"]; n != 1 {
		t.Fatalf("the store was closed %d times, want once", n)
	}
}

// holdingsKept makes every kind of update. The faulty store compares the holdings that it was
// passed with a copy.
func holdingsKept(s *storeDriver, k weir.Kind) {
	r, _ := s.reserve(charge("a", cost(6)), charge("b", cost(6)))
	steps := []int64{4, 2, 1}
	if k != weir.Concurrency {
		steps = []int64{4, 9, 15, 3, 7}
	}
	for _, n := range steps {
		s.settle(s.settlement(r.ID, weir.VerbAdjust, n))
		s.settle(s.settlement(r.ID, weir.VerbExtend, 0))
		if got := s.available("b", "n"); got != 10-n {
			s.Fatalf("got %d available, want %d", got, 10-n)
		}
	}
	s.settle(s.settlement(r.ID, weir.VerbCancel, 0))
	if a, b := s.available("a", "n"), s.available("b", "n"); a != 10 || b != 10 {
		s.Fatalf("got %d and %d available after a cancel, want 10", a, b)
	}
}

// parentSmaller returns a child, and a parent with other limits.
func parentSmaller() *weir.Definitions {
	return childAndParent(
		[]weir.Limit{slowLimit(weir.Bucket, "n", 10), slowLimit(weir.Bucket, "m", 10)},
		[]weir.Limit{slowLimit(weir.Bucket, "n", 8), slowLimit(weir.Bucket, "k", 10)})
}

// bringing returns a request with brought limits added.
func bringing(r *weir.Request, limits ...weir.Limit) *weir.Request {
	c := *r
	c.Limits = limits
	return &c
}
