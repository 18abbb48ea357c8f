package replay

import (
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// denyingService is a recordingService that denies each call as often as the call's cost.
type denyingService struct {
	recordingService

	denials map[int64]int
	after   time.Duration
}

func (s *denyingService) deny(cost int64) error {
	if s.denials[cost]--; s.denials[cost] >= 0 {
		return &weir.DeniedError{RetryAfter: s.after}
	}
	return nil
}

// notLater makes calls come back exactly after the retry-after.
type notLater struct{}

func (notLater) Uint64() uint64 { return 0 }

// retrying returns a simulator for calls that come back, and the watcher that counts them.
func retrying(t *testing.T, s *denyingService, patience time.Duration, calls ...trace.Call) (*simulator, *counters) {
	t.Helper()
	s.decide = s.deny
	e := simulatorOver(t, &s.recordingService, "10ms", calls...)
	e.retry, e.later = &RetryOptions{Patience: patience}, notLater{}
	c := newCounters(e.boundWorkload, timeRange{0, 10_000}, e.retry)
	e.watchers = c.watchers()
	return e, c
}

// TestRetryOrder checks the order of events at one instant: first completions, then calls that come
// back, then calls that arrive for the first time, each in the order of the trace. The duration of
// a call counts from its admission.
func TestRetryOrder(t *testing.T) {
	t.Parallel()
	s := &denyingService{denials: map[int64]int{2: 2, 3: 1}, after: 10 * time.Millisecond}
	e, c := retrying(t, s, time.Second,
		callOf(2, 1000, 0, 1), // until 1010
		callOf(3, 1000, 0, 2), // denied, again at 1010, admitted at 1020, until 1030
		callOf(4, 1000, 0, 3), // denied, admitted at 1010, until 1020
		callOf(5, 1010, 0, 4), // until 1020
	)
	if err := e.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `at 1000
reserve tenant-1 llm 1
at 1000
reserve tenant-1 llm 2
at 1000
reserve tenant-1 llm 3
at 1010
complete of 1000: [map[rpm:1]]
at 1010
reserve tenant-1 llm 2
at 1010
reserve tenant-1 llm 3
at 1010
reserve tenant-1 llm 4
at 1020
complete of 1010: [map[rpm:3]]
at 1020
complete of 1010: [map[rpm:4]]
at 1020
reserve tenant-1 llm 2
at 1030
complete of 1020: [map[rpm:2]]`
	if got := strings.Join(s.notes, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r := c.retry.done()
	if r.Attempts != 7 || r.AdmittedFirst != 2 || r.AdmittedLater != 2 || r.GivenUp != 0 ||
		r.WaitMS != (Quantiles{0, 20, 20, 20}) || r.PatienceMS != 1000 {
		t.Errorf("got %+v, want 7 attempts, 2 admitted first and 2 later, who waited 10 and 20", r)
	}
	if got := c.tally.totals; got.Calls != 4 || got.Admitted != 4 || got.Denied != 0 {
		t.Errorf("got %+v, want 4 calls, all admitted", got)
	}
}

// TestRetryGivesUp checks that a call whose retry would come after the end of its patience gives up
// at once, and that a call that is denied too often gives up too.
func TestRetryGivesUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after    time.Duration
		attempts int64
		lastMS   int64
	}{
		{100 * time.Millisecond, 6, 500}, // at 0, 100, … 500
		{101 * time.Millisecond, 5, 404},
		{500 * time.Millisecond, 2, 500},
		{501 * time.Millisecond, 1, 0},
		{100*time.Millisecond + 1, 5, 404}, // rounded up
		{0, 501, 500},                      // at least a millisecond later
	} {
		s := &denyingService{denials: map[int64]int{2: 1 << 30}, after: c.after}
		e, counted := retrying(t, s, 500*time.Millisecond, callOf(2, 0, 5, 2))
		if err := e.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, totals := counted.retry.report, counted.tally.totals
		if r.Attempts != c.attempts || r.GivenUp != 1 || e.lastMS != c.lastMS ||
			totals.Denied != 1 || totals.TokensDenied.Int64() != 7 || totals.Calls != 1 {
			t.Errorf("%v: got %+v and %+v until %d, want %d attempts until %d and one that gave up",
				c.after, r, totals, e.lastMS, c.attempts, c.lastMS)
		}
	}
	s := &denyingService{denials: map[int64]int{2: 1 << 30}}
	e, counted := retrying(t, s, time.Hour, callOf(2, 0, 5, 2))
	if err := e.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := counted.retry.report; r.Attempts != maxTries || r.GivenUp != 1 {
		t.Errorf("got %+v, want %d attempts", r, maxTries)
	}
}

// slowBucket is a bucket limit by its definition alone: in milli-units, refilled by the growth of
// ⌊t·r/p⌋.
type slowBucket struct{ capacity, perMinute, balance, atMS int64 }

func (b *slowBucket) advance(atMS int64) {
	gained := func(t int64) int64 { return t * b.perMinute * 1000 / 60_000 }
	b.balance = min(b.capacity*1000, b.balance+gained(atMS)-gained(b.atMS))
	b.atMS = atMS
}

// slowCall is a call of the slow replay.
type slowCall struct {
	arrivedMS, nextMS, cost int64
	seq, tries              int
	waited                  int64 // -1 until it is admitted
	gone                    bool
}

// slowReplay retries calls against one bucket, with seed 0. In each step it searches all calls for
// the next event.
func slowReplay(b *slowBucket, calls []trace.Call, patienceMS int64) []*slowCall {
	var all []*slowCall
	random := rand.NewPCG(0, 3)
	for i := range calls {
		c := &calls[i]
		all = append(all, &slowCall{arrivedMS: c.AtMS, nextMS: c.AtMS, cost: c.Output, seq: i, waited: -1})
	}
	for {
		var next *slowCall
		for _, a := range all {
			if a.gone || next != nil && (a.nextMS > next.nextMS ||
				a.nextMS == next.nextMS && min(a.tries, 1) <= min(next.tries, 1)) {
				continue
			}
			next = a
		}
		if next == nil {
			return all
		}
		next.tries++
		b.advance(next.nextMS)
		if b.balance >= next.cost*1000 {
			b.balance -= next.cost * 1000
			next.waited, next.gone = next.nextMS-next.arrivedMS, true
			continue
		}
		// Search for the first millisecond at which the call would fit, one by one.
		trial := *b
		back := next.nextMS
		for trial.balance < next.cost*1000 {
			back++
			trial.advance(back)
		}
		more := big.NewInt(min((back-next.nextMS)/8, 10_000) + 1)
		more.Mul(more, new(big.Int).SetUint64(random.Uint64())).Rsh(more, 64)
		back += more.Int64()
		next.nextMS = back
		next.gone = back-next.arrivedMS > patienceMS
	}
}

// TestRetryAgainstSlowReplay checks that a second implementation of a replay against one bucket,
// which has no heaps and shares no code, makes the same calls wait for the same time.
func TestRetryAgainstSlowReplay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 9))
		var calls []trace.Call
		at := int64(1_700_000_000_000)
		for i := range 150 {
			at += random.Int64N(400)
			calls = append(calls, callOf(i+2, at, 0, 1+random.Int64N(30)))
		}
		patience := time.Duration(1+random.Int64N(20)) * time.Second
		d := &weir.Definitions{System: []weir.Limit{{Name: "otpm", Capacity: 40, RefillAmount: 1700}}}
		w := NewWorkload(traceOf(slices.Clone(calls)...), nil)
		r, err := Run(t.Context(), d, w, &Options{Retry: &RetryOptions{Patience: patience}})
		if err != nil {
			t.Fatal(err)
		}
		b := &slowBucket{capacity: 40, perMinute: 1700, balance: 40_000, atMS: calls[0].AtMS}
		var attempts, first, later, gone int64
		var waits []int64
		for _, a := range slowReplay(b, calls, patience.Milliseconds()) {
			attempts += int64(a.tries)
			switch {
			case a.waited < 0:
				gone++
				continue
			case a.tries == 1:
				first++
			default:
				later++
			}
			waits = append(waits, a.waited)
		}
		slices.Sort(waits)
		n := len(waits)
		wait := Quantiles{waits[(n+1)/2-1], waits[(n*95+99)/100-1], waits[(n*99+99)/100-1], waits[n-1]}
		want := RetryReport{patience.Milliseconds(), attempts, first, later, gone, wait}
		if *r.Retry != want {
			t.Errorf("seed %d: got %+v, want %+v", seed, *r.Retry, want)
		}
		if later == 0 || first == 0 || seed == 0 && gone == 0 {
			t.Errorf("seed %d: got %+v, want some of each", seed, want)
		}
		if seed == 0 {
			t.Logf("%+v", want)
		}
	}
}

// waitInLine returns how long calls wait, in order, if they get free slots first come, first
// served.
func waitInLine(calls []trace.Call, slots int, lasts func(c *trace.Call) int64) []int64 {
	free := make([]int64, slots) // when each slot is free
	var waits []int64
	for i := range calls {
		c := &calls[i]
		earliest := 0
		for j := range free {
			if free[j] < free[earliest] {
				earliest = j
			}
		}
		begins := max(c.AtMS, free[earliest])
		free[earliest] = begins + lasts(c)
		waits = append(waits, begins-c.AtMS)
	}
	slices.Sort(waits)
	return waits
}

// TestRetrySlots checks that calls that obey the retry-after get 24 slots nearly as soon as in a
// line: nobody gives up, 95 % wait at most four times as long, and each is denied five times at
// most, on average.
func TestRetrySlots(t *testing.T) {
	t.Parallel()
	const slots = 24
	for _, perToken := range []time.Duration{30, 60, 120, 200} {
		calls := azureCalls(t)
		lasts := func(c *trace.Call) int64 { return 400 + int64(perToken)*c.Output }
		line := waitInLine(calls, slots, lasts)
		d := &weir.Definitions{System: []weir.Limit{
			{Name: "slots", Kind: weir.Concurrency, Capacity: slots, Timeout: 5 * time.Minute},
		}}
		w := NewWorkload(traceOf(calls...), &WorkloadOptions{
			Latency: Latency{Base: 400 * time.Millisecond, PerToken: perToken * time.Millisecond},
		})
		r, err := Run(t.Context(), d, w, &Options{Retry: &RetryOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		got := r.Retry
		admitted := got.AdmittedFirst + got.AdmittedLater
		ideal := line[len(line)*95/100]
		t.Logf("400 ms and %d ms a token: wait of 95 %%: %.1f s, in a line %.1f s (longest %.1f s and %.1f s); "+
			"%d gave up; %d denials of %d calls", perToken, float64(got.WaitMS.P95)/1000, float64(ideal)/1000,
			float64(got.WaitMS.Max)/1000, float64(line[len(line)-1])/1000, got.GivenUp,
			got.Attempts-admitted, admitted)
		if got.GivenUp > 0 || got.WaitMS.P95 > 4*ideal || got.Attempts-admitted > 5*admitted {
			t.Errorf("%d ms a token: got %+v", perToken, *got)
		}
	}
}

// azureCalls reads the calls of the recorded trace, as of one caller.
func azureCalls(t *testing.T) []trace.Call {
	t.Helper()
	file, err := os.Open(azureTrace)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It is only read.
	read, err := trace.Read(t.Context(), azureTrace, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range read.Calls {
		read.Calls[i].Caller = 0
	}
	return read.Calls
}
