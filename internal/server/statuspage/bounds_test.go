package statuspage

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/limiter"
)

func activityEvent(at time.Time, n int, err error, limits ...weir.LimitStatus) limiter.Event {
	e := limiter.Event{Verb: weir.VerbReserve, At: at, Err: err, Limits: limits}
	e.LeaseID[15] = byte(n)
	return e
}

func noon() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// kept counts the entries that an activity keeps.
func (a *Activity) kept() map[string]int {
	n := map[string]int{"limits": len(a.names.all())}
	for i := range a.segments {
		s := &a.segments[i]
		n["entities"] += len(s.entities.index)
		n["links"] += max(len(s.entities.entries)-1, 0)
		n["denials"] += len(s.denials.cells)
		n["counts"] += len(s.limits)
		for _, d := range s.denials.cells {
			n["exceeded"] = max(n["exceeded"], cap(d.Exceeded))
		}
	}
	return n
}

// TestActivityBounds floods an activity: a million events over a hundred thousand entities, with
// limits of ever new names, half of them denied.
func TestActivityBounds(t *testing.T) {
	t.Parallel()
	const events, entities, names = 400_000, 100_000, 10_000
	a := NewActivity(noon())
	var after [2]map[string]int
	for round := range after {
		for i := range events / len(after) {
			i += round * events / len(after)
			l := weir.LimitStatus{Entity: fmt.Sprintf("e%d", i%entities), Resource: "r",
				Limit: fmt.Sprintf("l%d", i%names), Kind: weir.Bucket, Requested: 1}
			var err error
			if l.Exceeded = i%2 == 1; l.Exceeded {
				err = &weir.DeniedError{}
			}
			a.Observe(t.Context(), activityEvent(noon().Add(time.Duration(i)*time.Microsecond), i/7, err, l))
		}
		after[round] = a.kept()
	}
	for what, most := range map[string]int{
		"limits": maxLimits, "counts": segmentCount * (maxLimits + 1), "exceeded": 1,
		"entities": segmentCount * maxEntities, "links": segmentCount * maxEntities,
		"denials": segmentCount * maxDenials,
	} {
		if got := after[0][what]; got > most || got < most*9/10 {
			t.Errorf("kept %d %s, want about %d and no more", got, what, most)
		}
	}
	if !reflect.DeepEqual(after[0], after[1]) {
		t.Errorf("kept %v, and later %v", after[0], after[1])
	}
	t.Logf("%d events: kept %v", events, after[1])

	r := a.Report(noon())
	if r.Admitted != events/2 || r.Denied != events/2 {
		t.Errorf("admitted %d, denied %d; want %d each", r.Admitted, r.Denied, events/2)
	}
	if len(r.Entities) != maxEntities || len(r.Denials) != maxDenials {
		t.Errorf("reported %d entities and %d denials", len(r.Entities), len(r.Denials))
	}
	if len(r.Limits) != maxLimits+1 || r.Limits[0].Limit != "" {
		t.Fatalf("reported %d limits, the first is %+v", len(r.Limits), r.Limits[0])
	}
	const each = events / names
	others := httpapi.ActivityLimit{Admitted: (names - maxLimits) / 2 * each}
	others.Denied, others.Reserved = others.Admitted, others.Admitted
	if r.Limits[0] != others {
		t.Errorf("the other limits: %+v, want %+v", r.Limits[0], others)
	}
}

// TestActivityOrder spreads entities and denials over the segments while the clock moves in both
// directions. The report has exactly the newest ones, newest first.
func TestActivityOrder(t *testing.T) {
	t.Parallel()
	a := NewActivity(noon())
	const n = 3 * maxEntities
	for i := range n {
		at := noon().Add(time.Duration(i*7919%50) * time.Second)
		asker := weir.Subject{Entity: fmt.Sprintf("e%d", i), Resource: "r"}
		err := &weir.DeniedError{RetryAfter: time.Duration(i) * time.Millisecond, Charges: []weir.Subject{asker}}
		a.Observe(t.Context(), activityEvent(at, i*i, err, weir.LimitStatus{
			Entity: fmt.Sprintf("e%d", i), Resource: "r", Limit: "l", Exceeded: true,
		}))
	}
	a.Observe(t.Context(), activityEvent(noon(), 3, nil, weir.LimitStatus{Entity: "e600"})) // seen again
	r := a.Report(noon())
	for i, e := range r.Entities {
		want := fmt.Sprintf("e%d", n-i)
		switch {
		case i == 0:
			want = "e600"
		case n-i <= 600:
			want = fmt.Sprintf("e%d", n-i-1)
		}
		if e.Entity != want {
			t.Fatalf("entity %d is %s, want %s", i, e.Entity, want)
		}
	}
	for i, d := range r.Denials {
		if want := int64(n - 1 - i); d.RetryAfterMS != want || d.Entity != fmt.Sprintf("e%d", want) {
			t.Fatalf("denial %d is of %s, retry after %d ms; want e%d", i, d.Entity, d.RetryAfterMS, want)
		}
	}
}

// TestActivitySeconds moves the clock: forwards, a little back, far back. at and now are seconds
// after noon; want has the seconds that are not zero, by their distance from noon.
func TestActivitySeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		at       []int
		now, end int
		want     map[int]int64
	}{
		{"in one second", []int{0, 0, 0}, 0, 0, map[int]int64{0: 3}},
		{"in a row", []int{0, 1, 1, 2}, 3, 3, map[int]int64{0: 1, 1: 2, 2: 1}},
		{"the oldest that is shown", []int{0, 119}, 119, 119, map[int]int64{0: 1, 119: 1}},
		{"too old", []int{0, 120}, 120, 120, map[int]int64{120: 1}},
		{"a cell used again", []int{0, 0, 128}, 128, 128, map[int]int64{128: 1}},
		{"all too old", []int{0, 1}, 4000, 4000, map[int]int64{}},
		{"a little back", []int{100, 100, 40, 100}, 100, 100, map[int]int64{40: 1, 100: 3}},
		{"a little back, and asked there", []int{100, 40}, 41, 100, map[int]int64{40: 1, 100: 1}},
		{"far back: the seconds start again", []int{100, 39, 39}, 40, 40, map[int]int64{39: 2}},
		{"far back, and what was made up comes", []int{300, 0, 300}, 300, 300, map[int]int64{300: 1}},
		{"far back twice", []int{300, 200, 201, 0, 1}, 1, 1, map[int]int64{0: 1, 1: 1}},
		{"before 1970", []int{-2_000_000_000}, 0, 0, map[int]int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := NewActivity(noon())
			second := func(n int) time.Time { return noon().Add(time.Duration(n) * time.Second) }
			for i, at := range c.at {
				a.Observe(t.Context(), activityEvent(second(at), i, nil))
				a.Observe(t.Context(), activityEvent(second(at), i+3, &weir.DeniedError{}))
			}
			s := a.Report(second(c.now)).Seconds
			if got := int(s.From-noon().Unix()) + reportSeconds - 1; got != c.end {
				t.Errorf("the last second is %d, want %d", got, c.end)
			}
			for _, counts := range [][]int64{s.Admitted, s.Denied} {
				got := map[int]int64{}
				for i, n := range counts {
					if n > 0 {
						got[c.end-reportSeconds+1+i] = n
					}
				}
				if !reflect.DeepEqual(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			}
			if r := a.Report(second(c.now)); r.Admitted != int64(len(c.at)) || r.Denied != r.Admitted {
				t.Errorf("admitted %d, denied %d in all, want %d", r.Admitted, r.Denied, len(c.at))
			}
		})
	}
}

// TestActivityDuration counts a call that ends in another second than it began.
func TestActivityDuration(t *testing.T) {
	t.Parallel()
	a := NewActivity(noon())
	e := activityEvent(noon(), 1, nil, weir.LimitStatus{Entity: "e"})
	e.Took = 90 * time.Second
	a.Observe(t.Context(), activityEvent(noon().Add(89*time.Second), 1, nil))
	a.Observe(t.Context(), e)
	r := a.Report(noon().Add(90 * time.Second))
	if n := len(r.Seconds.Admitted); r.Seconds.Admitted[n-1] != 1 || r.Seconds.Admitted[n-2] != 1 {
		t.Errorf("the last seconds: %v, want 1 and 1", r.Seconds.Admitted[n-2:])
	}
	if got := r.Entities[0].LastMS; got != noon().UnixMilli() {
		t.Errorf("the entity was seen at %d, want when it asked", got)
	}
}

// TestActivityLargest checks that counts stop at the largest int64.
func TestActivityLargest(t *testing.T) {
	t.Parallel()
	a := NewActivity(noon())
	for i := range 3 {
		a.Observe(t.Context(), activityEvent(noon(), i, nil,
			weir.LimitStatus{Limit: "l", Requested: math.MaxInt64},
			weir.LimitStatus{Limit: "l", Requested: math.MaxInt64},
			weir.LimitStatus{Limit: "m", Requested: -5}))
	}
	got := a.Report(noon()).Limits
	want := []httpapi.ActivityLimit{{Limit: "l", Admitted: 6, Reserved: math.MaxInt64}, {Limit: "m", Admitted: 3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestActivityManyExceeded keeps eight of a denial's limits, and names no longer than an entity's.
func TestActivityManyExceeded(t *testing.T) {
	t.Parallel()
	a := NewActivity(noon())
	var limits []weir.LimitStatus
	for i := range 20 {
		limits = append(limits, weir.LimitStatus{Entity: strings.Repeat("e", 1000), Resource: "r",
			Limit: fmt.Sprintf("%d%s", i, strings.Repeat("l", 1000)), Exceeded: i%2 == 0})
	}
	limits[0].Shadow = true // it denies no call
	for range 2 * maxDenials {
		err := &weir.DeniedError{Charges: []weir.Subject{{Entity: limits[0].Entity, Resource: "r"}}}
		a.Observe(t.Context(), activityEvent(noon(), 0, err, limits...))
	}
	r := a.Report(noon())
	for _, d := range r.Denials {
		if len(d.Exceeded) != maxExceeded || d.More != 1 {
			t.Fatalf("%d limits and %d more, want %d and 1", len(d.Exceeded), d.More, maxExceeded)
		}
		if len(d.Entity) != maxNameBytes || len(d.Exceeded[0].Limit) != maxNameBytes {
			t.Fatalf("names of %d and %d bytes", len(d.Entity), len(d.Exceeded[0].Limit))
		}
	}
	if len(r.Denials) != maxDenials || len(r.Limits) != 10 {
		t.Errorf("%d denials and %d limits", len(r.Denials), len(r.Limits))
	}
}

// TestActivityReportDoesNotChange uses every cell of the denials again: a report does not change
// after it was made. A denial without a limit has an empty list.
func TestActivityReportDoesNotChange(t *testing.T) {
	t.Parallel()
	a := NewActivity(noon())
	deny := func(name string) {
		for range maxDenials {
			err := &weir.DeniedError{Charges: []weir.Subject{{Entity: name, Resource: name}}}
			a.Observe(t.Context(), activityEvent(noon(), 0, err,
				weir.LimitStatus{Entity: name, Resource: name, Limit: name, Exceeded: true}))
		}
	}
	deny("first")
	a.Observe(t.Context(), activityEvent(noon(), 1, &weir.DeniedError{Contended: true}))
	r := a.Report(noon())
	before, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	deny("second")
	after, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Errorf("the report was %s and is %s", before, after)
	}
	if d := r.Denials[0]; !d.Contended || d.Exceeded == nil || len(d.Exceeded) > 0 {
		t.Errorf("the newest denial is %+v, want a contended one with an empty list", d)
	}
	if got := a.Report(noon()).Denials[0].Exceeded[0].Limit; got != "second" {
		t.Errorf("later the newest denial is by %q", got)
	}
}

// TestActivityConcurrent counts calls of many goroutines while others read reports: nothing is
// lost.
func TestActivityConcurrent(t *testing.T) {
	t.Parallel()
	a := NewActivity(noon())
	const callers, calls = 8, 2_000
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range calls {
				l := weir.LimitStatus{Entity: fmt.Sprintf("e%d", i%500), Limit: fmt.Sprintf("l%d", i%300),
					Requested: 2, Exceeded: c%2 == 0}
				var err error
				if l.Exceeded {
					err = &weir.DeniedError{}
				}
				at := noon().Add(time.Duration(i) * time.Millisecond)
				a.Observe(t.Context(), activityEvent(at, c*calls+i, err, l))
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 50 {
				first := a.Report(noon())
				if len(first.Denials) > 0 && first.Denials[0].Exceeded[0].Limit == "" {
					t.Error("a denial without its limit")
				}
			}
		})
	}
	wg.Wait()
	r := a.Report(noon().Add(time.Minute))
	const half = callers * calls / 2
	if r.Admitted != half || r.Denied != half {
		t.Errorf("admitted %d, denied %d; want %d each", r.Admitted, r.Denied, half)
	}
	var admitted, denied, reserved, seconds int64
	for _, l := range r.Limits {
		admitted, denied, reserved = admitted+l.Admitted, denied+l.Denied, reserved+l.Reserved
	}
	for i := range r.Seconds.Admitted {
		seconds += r.Seconds.Admitted[i] + r.Seconds.Denied[i]
	}
	if admitted != half || denied != half || reserved != 2*half || seconds != 2*half {
		t.Errorf("by limit %d, %d and %d units, by second %d", admitted, denied, reserved, seconds)
	}
}

func BenchmarkActivity(b *testing.B) {
	for _, c := range []struct {
		name string
		err  error
	}{{"admitted", nil}, {"denied", &weir.DeniedError{Charges: []weir.Subject{{Entity: "acme", Resource: "gpt-4o"}}}}} {
		b.Run(c.name, func(b *testing.B) {
			a := NewActivity(noon())
			limits := []weir.LimitStatus{
				{Entity: "acme", Resource: "gpt-4o", Limit: "rpm", Kind: weir.Bucket, Requested: 1},
				{Entity: "acme", Resource: "gpt-4o", Limit: "tpm", Kind: weir.Bucket, Requested: 500,
					Exceeded: c.err != nil},
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					a.Observe(b.Context(), activityEvent(noon(), i, c.err, limits...))
				}
			})
		})
	}
	b.Run("report", func(b *testing.B) {
		a := NewActivity(noon())
		for i := range 10_000 {
			a.Observe(b.Context(), activityEvent(noon(), i, &weir.DeniedError{},
				weir.LimitStatus{Entity: fmt.Sprintf("e%d", i), Limit: "l", Exceeded: true}))
		}
		for b.Loop() {
			a.Report(noon())
		}
	})
}
