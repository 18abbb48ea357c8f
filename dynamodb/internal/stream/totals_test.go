package stream_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
)

// totals returns a tally with the days and months of its hours, as far as they have ended.
func totals(tally map[string]int64, days, months time.Time) map[string]int64 {
	all := make(map[string]int64)
	for key, n := range tally {
		part := strings.Fields(key)
		at, err := schema.ParseTimestamp(part[1])
		if err != nil {
			panic(err)
		}
		all[key] += n
		if at.Before(days) {
			all[tallyKey(weir.Daily, schema.Timestamp(weir.Daily.Start(at)), part[2], part[3])] += n
		}
		if at.Before(months) {
			all[tallyKey(weir.Monthly, schema.Timestamp(weir.Monthly.Start(at)), part[2], part[3])] += n
		}
	}
	return only(all, "")
}

// TestCountDaysAndMonths checks that a day and a month are written once, when they have ended, and
// equal the tally.
func TestCountDaysAndMonths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	o := &load{rng: rand.New(rand.NewPCG(soak.Seed(t), 0))}
	for _, step := range []struct {
		after        time.Duration
		days, months time.Time
	}{
		{0, time.Time{}, time.Time{}},
		{12 * time.Minute, time.Time{}, time.Time{}}, // the day has ended, but records may be late
		{26 * time.Minute, start.Add(10 * time.Minute), start.Add(10 * time.Minute)},
		{30 * time.Hour, start.Add(24*time.Hour + 10*time.Minute), start.Add(10 * time.Minute)},
	} {
		w.at(start.Add(step.after))
		if step.after > time.Hour {
			o.open = nil // these leases have expired
		}
		o.run(w, 10)
		w.count()
		w.judge(w.usage(), totals(w.tally, step.days, step.months))
	}
	w.calls.Reset()
	if s := w.count(); s.Totals != 0 {
		t.Errorf("again: got %d totals", s.Totals)
	}
}

// TestCountDaysOfTwo checks the totals that two aggregators write at the same time, some of which
// are killed.
func TestCountDaysOfTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	rng := rand.New(rand.NewPCG(soak.Seed(t), 0))
	o := &load{rng: rng}
	for i := range 3 {
		w.at(start.Add(time.Duration(i) * 13 * time.Hour))
		o.open = nil // these leases have expired
		o.run(w, 8)
		done := make(chan struct{})
		second := rand.New(rand.NewPCG(uint64(i), 1))
		go func() {
			defer close(done)
			w.runKilled(second, 30)
		}()
		w.runKilled(rng, 30)
		<-done
	}
	w.count()
	day := start.Add(24*time.Hour + 10*time.Minute)
	w.judge(w.usage(), totals(w.tally, day, start.Add(10*time.Minute)))
}

// TestCountLate checks that a record that comes after its day was written changes the day.
func TestCountLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm")
	l := w.process()
	w.take(l, "acme", weir.Costs{"rpm": 5})
	w.at(start.Add(time.Hour))
	w.take(l, "acme", weir.Costs{"rpm": 1})
	w.count()
	w.at(start) // the clock of the stream was late
	w.take(l, "acme", weir.Costs{"rpm": 7})
	w.close(l)
	w.count()
	month := start.Add(10 * time.Minute)
	w.judge(w.usage(), totals(w.tally, month, month))
}

// TestMakesGood checks that totals are right after a gap: the records of a day are lost.
func TestMakesGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	l := w.process()
	lease := w.take(l, "acme", weir.Costs{"rpm": 5, "tpm": 1000})
	w.take(l, "idle", weir.Costs{"rpm": 3, "tpm": 30})
	w.count()
	w.at(start.Add(30 * time.Minute))
	w.take(l, "acme", weir.Costs{"rpm": 7, "tpm": 200})
	w.take(l, "fresh", weir.Costs{"rpm": 3, "tpm": 300}) // its item is created in the gap
	w.complete(l, lease, "acme", weir.Costs{"tpm": 1000}, weir.Costs{"tpm": 100})
	lost := w.at(start.Add(60 * time.Hour))
	w.take(l, "acme", weir.Costs{"rpm": 1, "tpm": 10})
	w.take(l, "new", weir.Costs{"rpm": 2, "tpm": 20})
	w.take(l, "fresh", weir.Costs{"rpm": 6, "tpm": 60})
	w.take(l, "idle", weir.Costs{"rpm": 4, "tpm": 40})
	w.close(l)
	s := w.count(func(o *stream.Options) {
		o.Source = &trimmed{source: source{stream.NewSource(w.c), w.clock}, before: lost}
	})
	if s.Gaps == 0 {
		t.Error("got no gap")
	}
	var got, want [2]int64
	for key, n := range hours(w.usage()) {
		got[kind(key)] += n
	}
	for key, n := range w.tally {
		want[kind(key)] += n
	}
	if got != want {
		t.Errorf("got %v, want %v: %v", got, want, w.usage())
	}
	w.judge(only(w.usage(), "hourly 2029-04-03"), map[string]int64{
		"hourly 2029-04-03T11:00:00Z acme rpm": 8, "hourly 2029-04-03T11:00:00Z acme tpm": 210 - 900,
		"hourly 2029-04-03T11:00:00Z fresh rpm": 9, "hourly 2029-04-03T11:00:00Z fresh tpm": 360,
		"hourly 2029-04-03T11:00:00Z new rpm": 2, "hourly 2029-04-03T11:00:00Z new tpm": 20,
		"hourly 2029-04-03T11:00:00Z idle rpm": 4, "hourly 2029-04-03T11:00:00Z idle tpm": 40,
	})
	c, err := stream.ReadCoverage(t.Context(), w.c, w.ns)
	if err != nil || len(c.Gaps) == 0 || !c.Counted {
		t.Fatalf("got %+v, %v", c, err)
	}
	for _, g := range c.Gaps {
		t.Logf("gap from %v to %v: %s", g.From, g.To, g.Reason)
		if !touches(&g, start.Add(30*time.Minute), start.Add(2*time.Hour)) ||
			touches(&g, start.Add(50*time.Hour), start.Add(51*time.Hour)) {
			t.Errorf("got the gap %+v", g)
		}
	}
}

// touches reports whether a gap and the time between two instants overlap.
func touches(g *weir.UsageGap, from, to time.Time) bool {
	return from.Before(g.To) && g.From.Before(to)
}

func kind(key string) int {
	if strings.HasSuffix(key, "tpm") {
		return 1
	}
	return 0
}

// TestCoverage checks what is said of a table before and after it is counted.
func TestCoverage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := stream.ReadCoverage(t.Context(), w.c, w.ns)
	if err != nil || c.Counted || len(c.Gaps) != 0 || !c.Until.IsZero() {
		t.Errorf("before: got %+v, %v", c, err)
	}
	w.limits("rpm")
	l := w.process()
	w.take(l, "acme", weir.Costs{"rpm": 1})
	w.close(l)
	w.count()
	c, err = stream.ReadCoverage(t.Context(), w.c, w.ns)
	if err != nil || !c.Counted || len(c.Gaps) != 0 || !c.Until.Equal(start) {
		t.Errorf("after: got %+v, %v", c, err)
	}
}
