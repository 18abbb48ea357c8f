package conformance

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// UsageHarness opens stores that record usage: each is a [driver.UsageReader]. The other suites
// do not need it.
type UsageHarness struct {
	StoreHarness
	// Flush returns when everything that was used until now can be read from the store, for a
	// store that records usage from time to time. Default: nothing to do.
	Flush func(t T, b driver.Store, now time.Time)
	// EntityOnly is set if the store lists usage only if an entity is named. Default: false.
	EntityOnly bool
}

// TestUsage checks the usage that a store records against section 13 of docs/semantics.md. It
// skips and counts what the harness says that the store cannot do.
func TestUsage(t *testing.T, h UsageHarness) {
	t.Helper()
	runCases(t, h.Service(t), h.UsageCases())
}

// UsageCases returns the cases of [TestUsage].
func (h UsageHarness) UsageCases() []Case {
	var cases []Case
	for _, c := range usageCases() {
		run := func(t T, service Harness) {
			with := h
			with.made = &service
			playUsage(t, with, c)
		}
		cases = append(cases, Case{Name: c.name, Line: c.line, Needs: c.needs, Run: run})
	}
	return cases
}

// usageCase is a case about usage. It starts at noon.
type usageCase struct {
	name, line string
	needs      Needs
	set        Setup
	play       func(u *usageWorld)
	// unnamed is set if the case lists usage without naming an entity.
	unnamed bool
}

// playUsage opens a store and plays a case on it.
func playUsage(t T, h UsageHarness, c usageCase) {
	t.Helper()
	if c.unnamed && h.EntityOnly {
		t.Skipf("usage is listed only if an entity is named")
	}
	c.set.Start = begin()
	store := h.Open(t, c.set)
	w := h.world(t, c.set, store)
	u := &usageWorld{
		caseWorld: &caseWorld{T: t, World: w, h: h.Service(t)}, limiter: w.Limiter,
		flush: func() {
			if h.Flush != nil {
				h.Flush(t, store, w.Now())
			}
		},
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	c.play(u)
}

// usageWorld is a world whose usage can be read.
type usageWorld struct {
	*caseWorld
	limiter *limiter.Limiter
	flush   func()
}

// list returns the usage of a query from all pages.
func (u *usageWorld) list(q weir.UsageQuery) []weir.Usage {
	u.Helper()
	u.flush()
	var all []weir.Usage
	for {
		page, err := u.limiter.Usage(u.Context(), &q)
		if err != nil {
			u.Fatalf("usage %+v: %v", q, err)
		}
		all = append(all, page.Usage...)
		if q.After = page.Next; q.After == "" {
			return all
		}
	}
}

// byHour is a number for each hour since the start of the case. An hour without one has 0.
type byHour map[int]int64

// hours returns a number of each record, by hour, without zeros.
func hours(records []weir.Usage, number func(*weir.Usage) int64) byHour {
	got := byHour{}
	for i := range records {
		if n := number(&records[i]); n != 0 {
			got[int(records[i].Start.Sub(begin())/time.Hour)] += n
		}
	}
	return got
}

// used expects the units of a limit of an entity, by hour.
func (u *usageWorld) used(entity, limit string, want byHour) {
	u.Helper()
	records := u.list(weir.UsageQuery{Entity: entity, Resource: resource})
	got := hours(records, func(r *weir.Usage) int64 { return r.Units[limit] })
	if !maps.Equal(got, want) {
		u.Fatalf("at %s: %s of %s: got units %v by hour, want %v", u.clock(), limit, entity, got, want)
	}
}

// events expects the number of events of an entity, by hour.
func (u *usageWorld) events(entity string, want byHour) {
	u.Helper()
	records := u.list(weir.UsageQuery{Entity: entity, Resource: resource})
	got := hours(records, func(r *weir.Usage) int64 { return r.Events })
	if !maps.Equal(got, want) {
		u.Fatalf("at %s: %s: got events %v by hour, want %v", u.clock(), entity, got, want)
	}
}
