package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/pace"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// timedService is a service that admits everything unless it has other orders, and records the times
// of its requests.
type timedService struct {
	weir.Service

	reserve  func(r *weir.Request) error // nil admits
	complete func() error
	takes    time.Duration // the duration of each request

	mu    sync.Mutex
	began time.Time
	notes []string
	live  map[weir.LeaseID]bool
}

func newTimedService() *timedService {
	return &timedService{began: time.Now(), live: map[weir.LeaseID]bool{}}
}

func (b *timedService) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, fmt.Sprintf("%v ", time.Since(b.began))+fmt.Sprintf(format, args...))
}

func (b *timedService) wait(ctx context.Context) error {
	if !pace.Until(ctx, time.Now().Add(b.takes)) {
		return ctx.Err()
	}
	return nil
}

func (b *timedService) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	b.note("reserve %s %s %d", r.Entity, r.Resource, r.Costs["rpm"])
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	if b.reserve != nil {
		if err := b.reserve(r); err != nil {
			return nil, err
		}
	}
	id := weir.NewLeaseID(time.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live[id] = true
	return &weir.Lease{ID: id}, nil
}

func (b *timedService) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	b.note("complete %d", actuals[0]["rpm"])
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	if b.complete != nil {
		if err := b.complete(); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, id)
	return &weir.Receipt{LeaseID: id}, nil
}

func (b *timedService) Explain(
	_ context.Context, entity, resource string,
) (*weir.Explanation, error) {
	return &weir.Explanation{Entity: entity, Resource: resource, Limits: []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: 9, RefillAmount: 9, RefillPeriod: time.Minute},
	}}, nil
}

// playerOver returns a player with call counts.
func playerOver(t *testing.T, s weir.Service, speed int64, of *boundWorkload) (*livePlayer, *callCounts) {
	t.Helper()
	p, err := newLivePlayer(s, of, speed)
	if err != nil {
		t.Fatal(err)
	}
	counts := newCallCounts(of.subjects)
	p.watchers = []Watcher{counts}
	return p, counts
}

// TestPlayerInstants checks that each call is sent at its instant divided by the speed and settled
// its scaled latency later, whether or not other calls are in flight.
func TestPlayerInstants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTimedService()
		s.reserve = func(r *weir.Request) error {
			if r.Costs["rpm"] == 4 {
				return &weir.DeniedError{RetryAfter: time.Second}
			}
			return nil
		}
		w := planOver(t, s, "20s+10s",
			callOf(1, 5_000, 0, 3),   // sent at once, until 5s
			callOf(2, 15_000, 0, 1),  // sent after 1s, until 4s
			callOf(3, 16_000, 0, 4),  // denied after 1.1s
			callOf(4, 106_005, 0, 2), // sent after 10.1005s, until 14.1005s
		)
		p, counts := playerOver(t, s, 10, w)
		if err := p.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := `0s reserve tenant-1 llm 3
1s reserve tenant-1 llm 1
1.1s reserve tenant-1 llm 4
4s complete 1
5s complete 3
10.1005s reserve tenant-1 llm 2
14.1005s complete 2`
		if got := strings.Join(s.notes, "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		c := p.count
		if c.Sent != 4 || c.answered != 4 || c.Late != 0 || c.operations != 7 || len(c.Errors) != 0 {
			t.Errorf("got %+v, want 4 sent and answered, 7 operations, none late, no errors", c)
		}
		if c := counts.totals; c.Calls != 4 || c.Admitted != 3 || c.Denied != 1 || c.Errors != 0 {
			t.Errorf("got %+v, want 4 calls, 3 admitted and 1 denied", c)
		}
		if len(s.live) != 0 {
			t.Errorf("got %d live leases, want none", len(s.live))
		}
	})
}

// TestPlayEstimates checks that in real time too a call reserves its estimate and settles with the
// truth.
func TestPlayEstimates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTimedService()
		trace := traceOf(callOf(2, 0, 0, 3), callOf(3, 1000, 0, 9))
		w := NewWorkload(trace, &WorkloadOptions{
			Latency: Latency{Base: time.Second / 2}, Costs: Costs{"rpm": {output: 1}},
		})
		r, err := Play(t.Context(), s, w, &PlayOptions{Estimate: Estimate{fixed: 7, set: true}})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"0s reserve tenant-1 llm 7", "500ms complete 3", "1s reserve tenant-1 llm 7", "1.5s complete 9",
		}
		if !slices.Equal(s.notes, want) {
			t.Errorf("got %q, want %q", s.notes, want)
		}
		if e := r.Estimates; e.Calls != 2 || e.Covered != 1 || e.TokensOver.Int64() != 4 || e.TokensUnder.Int64() != 2 {
			t.Errorf("got %+v, want one of two covered, 4 over and 2 under", e)
		}
		if sum := sums(r.Timeline); sum.Arrived != 2 || sum.Admitted != 2 {
			t.Errorf("got %+v, want two calls in the timeline", sum)
		}
	})
}

// TestPlayerLate checks that the number of requests that wait for an answer is bounded, that calls
// that are sent late because of that are counted, and that a running call is not such a request.
func TestPlayerLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTimedService()
		s.takes = 30 * time.Millisecond
		var calls []trace.Call
		for i := range 2*MaxInFlight + 3 {
			calls = append(calls, callOf(i+2, 1000, 0, 1))
		}
		p, counts := playerOver(t, s, 1, planOver(t, s, "10m", calls...))
		if err := p.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The first calls are in time, the next ones 30 ms late, the last three 60 ms.
		if c := p.count; c.Late != MaxInFlight+3 || c.lateMax != 60*time.Millisecond {
			t.Errorf("got %d late, at most %v, want %d and 60ms", c.Late, c.lateMax, MaxInFlight+3)
		}
		if counts.totals.Admitted != int64(len(calls)) || len(s.live) != 0 {
			t.Errorf("got %d admitted and %d live, want %d and none",
				counts.totals.Admitted, len(s.live), len(calls))
		}
	})
}

// TestPlayerStopped checks that an interrupt stops the sending and settles everything: calls that
// run at once, and reservations when they are answered.
func TestPlayerStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTimedService()
		s.takes = time.Second
		w := planOver(t, s, "10m", callOf(2, 0, 0, 1), callOf(3, 5_000, 0, 2), callOf(4, 6_000, 0, 3))
		p, counts := playerOver(t, s, 1, w)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5500*time.Millisecond, cancel)
		began := time.Now()
		if err := p.play(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's end", err)
		}
		// The second reservation is answered after 6 s, and settled one second later.
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("took %v, want 7s", took)
		}
		c := p.count
		if c.Sent != 2 || counts.totals.Admitted != 2 || len(s.live) != 0 || c.Unsettled != 0 {
			t.Errorf("got %d sent, %d admitted, %d live and %d unsettled, want 2, 2, 0 and 0",
				c.Sent, counts.totals.Admitted, len(s.live), c.Unsettled)
		}
	})
}

// TestPlayerStoppedWithoutAnswers checks that a server that does not answer does not delay the end
// of a replay for long.
func TestPlayerStoppedWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTimedService()
		s.takes = time.Hour
		p, counts := playerOver(t, s, 1, planOver(t, s, "1s", callOf(2, 0, 0, 1)))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		began := time.Now()
		if err := p.play(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's end", err)
		}
		if took := time.Since(began); took != 5*time.Second+settleTime {
			t.Errorf("took %v, want %v more than until the interrupt", took, settleTime)
		}
		if c := counts.totals; c.Errors != 1 || c.Denied != 0 || c.TokensDenied.Sign() != 0 {
			t.Errorf("got %+v, want one error and no denial", c)
		}
	})
}

// TestPlayerErrors checks that errors are counted by code, never as denials, and that the replay
// continues after them.
func TestPlayerErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTimedService()
		s.reserve = func(r *weir.Request) error {
			switch r.Costs["rpm"] {
			case 1:
				return &weir.Error{Code: weir.Unavailable, Reason: "away"}
			case 2:
				return errors.New("odd")
			case 3:
				return &weir.Error{Code: weir.NeverSatisfiable}
			case 4:
				return &weir.DeniedError{}
			}
			return nil
		}
		failing := true
		s.complete = func() error {
			defer func() { failing = false }()
			if failing {
				return &weir.Error{Code: weir.Ended}
			}
			return nil
		}
		var calls []trace.Call
		for i := range 7 {
			calls = append(calls, callOf(i+2, int64(i)*1000, 0, int64(i)))
		}
		p, counts := playerOver(t, s, 1, planOver(t, s, "1ms", calls...))
		if err := p.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := counts.totals
		if c.Calls != 7 || c.Admitted != 3 || c.Denied != 1 || c.Errors != 3 {
			t.Errorf("got %+v, want 3 admitted, 1 denied and 3 faults of 7", c)
		}
		if c.TokensAdmitted.Int64() != 0+5+6 || c.TokensDenied.Int64() != 3+4 {
			t.Errorf("got %v tokens admitted and %v denied, want 11 and 7",
				c.TokensAdmitted, c.TokensDenied)
		}
		r := p.count.LiveReport
		if r.Errors["unavailable"] != 2 || r.Errors["never satisfiable"] != 1 || len(r.Errors) != 2 ||
			r.Unsettled != 1 {
			t.Errorf("got %+v, want 2 unavailable, 1 never satisfiable and 1 unsettled", r)
		}
	})
}

// TestPlayerGivesUp checks that a replay ends after a hundred errors in a row, and that one answer
// between them prevents that.
func TestPlayerGivesUp(t *testing.T) {
	away := &weir.Error{Code: weir.Unavailable, Reason: "away"}
	var calls []trace.Call
	for i := range 3 * maxInARow {
		calls = append(calls, callOf(i+2, int64(i)*1000, 0, int64(i)))
	}
	for _, c := range []struct {
		name    string
		answers int64 // the call with that cost is answered
		sent    int64
		want    string
	}{
		{
			"nobody there", -1, maxInARow,
			"gave up after 100 errors in a row, the last one: reserve: weir: unavailable: away",
		},
		{"gone later", 50, 51 + maxInARow, "gave up after 100 errors in a row, "},
		{"there now and then", 0, 3 * maxInARow, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newTimedService()
			s.reserve = func(r *weir.Request) error {
				if n := r.Costs["rpm"]; n == c.answers || c.answers == 0 && n%99 == 0 {
					return nil
				}
				return away
			}
			p, counts := playerOver(t, s, 1, planOver(t, s, "1ms", calls...))
			err := p.play(t.Context())
			said := ""
			if err != nil {
				said = err.Error()
			}
			if (said == "") != (c.want == "") || !strings.HasPrefix(said, c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
			if p.count.Sent != c.sent || counts.totals.Denied != 0 {
				t.Errorf("%s: got %d sent, %d denied, want %d and none",
					c.name, p.count.Sent, counts.totals.Denied, c.sent)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newTimedService()
		s.reserve = func(*weir.Request) error { return away }
		p, _ := playerOver(t, s, 1, planOver(t, s, "1ms", calls[:3]...))
		if err := p.play(t.Context()); !errors.Is(err, weir.Unavailable) ||
			!strings.HasPrefix(err.Error(), "no call was answered: reserve: ") {
			t.Errorf("got %v, want that no call was answered", err)
		}
	})
}

// TestPlayerTooLong checks that a replay that would last for months is refused before it begins.
func TestPlayerTooLong(t *testing.T) {
	t.Parallel()
	s := newTimedService()
	w := planOver(t, s, "1s", callOf(2, 0, 0, 1), callOf(3, 9e14, 0, 1)) // in the year 30489
	if _, err := newLivePlayer(s, w, 1000); err == nil || !strings.Contains(err.Error(), "30 days") {
		t.Errorf("got %v, want a refusal", err)
	}
	p, err := newLivePlayer(s, w, MaxSpeed)
	if err != nil || p.plannedTime() != 9e8*time.Millisecond {
		t.Errorf("got %v, want a replay of 250 hours", err)
	}
}

// TestCallCountsOfChangedLimits checks that a limit that is configured during the replay gets a
// row.
func TestCallCountsOfChangedLimits(t *testing.T) {
	t.Parallel()
	counts := newCallCounts([]*subject{{entity: "a", caller: true, limits: []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: 5, RefillAmount: 1, RefillPeriod: time.Second},
	}}})
	a := &Attempt{Call: &trace.Call{Input: 1}, Number: 1, EndMS: 2000}
	v := &Decision{Limits: []weir.LimitStatus{
		{Entity: "a", Limit: "rpm", Kind: weir.Bucket, Capacity: 7, Available: 6, Requested: 1},
		{Entity: "a", Limit: "new", Kind: weir.Concurrency, Capacity: 2, Available: 1, Requested: 1},
		{Entity: "b", Limit: "new", Kind: weir.Window, Capacity: 2, Requested: 2},
	}}
	if err := counts.Reserved(a, v); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range limitReports(counts, timeRange{0, 2000}) {
		row := fmt.Sprint(r.Entity, " ", r.Limit, " ", r.Admitted, " ", r.Used, "/", r.Available)
		got = append(got, row)
	}
	if want := []string{"a rpm 1 1/7", "a new 1 2/0", "b new 1 2/0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLiveRate checks that the rate covers the last two seconds.
func TestLiveRate(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	v := &View{player: &livePlayer{start: start}}
	var got []int64
	for i, done := range []int64{0, 10, 20, 30, 40, 40, 40, 40, 40, 41} {
		got = append(got, v.rate(sample{start.Add(time.Duration(i) * 500 * time.Millisecond), done}))
	}
	if want := []int64{0, 20, 20, 20, 20, 15, 10, 5, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(v.past) > 6 {
		t.Errorf("got %d samples kept, want those of two seconds", len(v.past))
	}
}

// TestLiveRowsGrow checks that a limit that appears during the replay gets a row in the table too.
func TestLiveRowsGrow(t *testing.T) {
	t.Parallel()
	counts := newCallCounts([]*subject{{entity: "a", limits: []weir.Limit{{Name: "rpm", Capacity: 5}}}})
	of := &boundWorkload{Workload: &Workload{calls: []trace.Call{{}}}}
	p := &livePlayer{boundWorkload: of, speed: 1, start: time.Unix(1000, 0)}
	v := &View{player: p, tally: counts}
	rows := v.Take(p.start).Rows
	if len(rows) != 1 || rows[0].InUse.Sign() != 0 || rows[0].Capacity.Int64() != 5 {
		t.Errorf("got %+v, want one row with nothing in use", rows)
	}
	_ = counts.Reserved(&Attempt{Call: &trace.Call{}, Number: 1}, &Decision{Limits: []weir.LimitStatus{
		{Entity: "a", Limit: "new", Capacity: 9, Available: 2, Exceeded: true},
	}})
	rows = v.Take(p.start).Rows
	if len(rows) != 2 || rows[1].InUse.Int64() != 7 || !rows[1].Denies {
		t.Errorf("got %+v, want two rows, the second with 7 in use and a denial", rows)
	}
}
