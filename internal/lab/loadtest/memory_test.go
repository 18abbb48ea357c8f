package loadtest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// slowService is a service that answers after a delay.
type slowService struct{ weir.Service }

func (p slowService) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	if err := pause(ctx, 10*time.Millisecond); err != nil {
		return nil, err
	}
	return p.Service.Reserve(ctx, r)
}

// TestMemory drives a limiter. It checks that the limits admit their capacity, that the exceeded
// limit denies the rest, and that everything is given back at the end.
func TestMemory(t *testing.T) {
	t.Parallel()
	limits := func(slots int64) []weir.Limit {
		return []weir.Limit{
			{Name: "rpm", Kind: weir.Window, Capacity: 40, Window: time.Hour},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: slots, Timeout: time.Minute},
		}
	}
	definitions := &weir.Definitions{
		Entities: map[string]weir.EntityDefinition{
			"acme": {Limits: map[string][]weir.Limit{"llm": limits(100)}},
			"bot":  {Parent: "acme", Cascade: true, Limits: map[string][]weir.Limit{"llm": limits(2)}},
		},
	}
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(&memory.Options{Definitions: definitions})
		if err != nil {
			t.Fatal(err)
		}
		lim, err := limiter.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer lim.Close() //nolint:errcheck // The store is in memory.
		r, err := loadtest.New(slowService{lim}, mixOf(t, "bot llm rpm=1 parallel=1"), &loadtest.Options{
			Duration: 10 * time.Second, Rate: 10,
			Think: loadtest.DurationRange{Least: 1990 * time.Millisecond, Most: 1990 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		report, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Two slots, each taken for two seconds, admit two calls every two seconds, of a hundred
		// calls.
		admitted, denied := report.Count(loadtest.Reserve, loadtest.Admitted), report.Count(loadtest.Reserve, loadtest.Denied)
		if admitted != 10 || denied != 90 || report.Settled != 10 || report.Left != 0 {
			t.Errorf("got %+v, want 10 admitted and 90 denied", report)
		}
		want := loadtest.DeniedCount{
			DeniedBy: loadtest.DeniedBy{Resource: "llm", Limit: "parallel", Kind: weir.Concurrency}, Count: 90,
		}
		if len(report.DeniedBy) != 1 || report.DeniedBy[0] != want {
			t.Errorf("got %+v, want %+v", report.DeniedBy, want)
		}
		for _, who := range []string{"bot", "acme"} {
			status, err := lim.Status(t.Context(), who, "llm")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range status {
				if want := map[string]int64{"rpm": 30, "parallel": s.Capacity}[s.Limit]; s.Available != want {
					t.Errorf("%s: got %+v, want %d available", who, s, want)
				}
			}
		}
	})
}

// TestMemoryParent checks that the report distinguishes a denial by a parent's limit from one by
// the entity's own limit.
func TestMemoryParent(t *testing.T) {
	t.Parallel()
	rpm := func(capacity int64) map[string][]weir.Limit {
		return map[string][]weir.Limit{"llm": {{Name: "rpm", Kind: weir.Window, Capacity: capacity, Window: time.Hour}}}
	}
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
			Entities: map[string]weir.EntityDefinition{
				"acme": {Limits: rpm(15)},
				"bot":  {Parent: "acme", Cascade: true, Limits: rpm(10)},
				"aide": {Parent: "acme", Cascade: true, Limits: rpm(1000)},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		lim, err := limiter.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer lim.Close() //nolint:errcheck // The store is in memory.
		r, err := loadtest.New(slowService{lim}, mixOf(t, "bot llm rpm=1", "aide llm rpm=1"),
			&loadtest.Options{Duration: 10 * time.Second, Rate: 10})
		if err != nil {
			t.Fatal(err)
		}
		report, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counts := map[bool]int64{}
		for _, d := range report.DeniedBy {
			counts[d.Parent] += d.Count
		}
		admitted, denied := report.Count(loadtest.Reserve, loadtest.Admitted), report.Count(loadtest.Reserve, loadtest.Denied)
		if admitted != 15 || denied != 85 || counts[true] != 85 && counts[true]+counts[false] < 85 || counts[true] == 0 {
			t.Errorf("got %d admitted, %d denied, by %+v", admitted, denied, report.DeniedBy)
		}
	})
}
