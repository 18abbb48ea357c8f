package main

import (
	"context"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"
)

// rival is another limiter in Go.
type rival struct {
	kind, label string
	keyed       bool // it has a state for each key
}

// rivals returns the rivals of weir in process memory. Their work is workTake.
func rivals() []rival {
	return []rival{
		{kindXRate, "x/time/rate, AllowN", false},
		{kindGoLimiter, "go-limiter, Take", true},
		{kindThrottled, "throttled, RateLimitCtx", true},
	}
}

// openTakes returns the workload of a rival that has one operation per entity. It calls each once,
// so that the entity's state exists, or its only unit is taken.
func openTakes(s *spec, take func(entity string) (bool, error)) (*workload, error) {
	for _, entity := range s.Entities {
		if _, err := take(entity); err != nil {
			return nil, err
		}
	}
	w := &work{}
	for i := range s.Callers {
		entities := s.cycle(i)
		w.callers = append(w.callers, func(context.Context) (opResult, error) {
			ok, err := take(s.Entities[entities.next()])
			if !ok {
				return denied, err
			}
			return admitted, err
		})
	}
	return &workload{works: map[string]*work{workTake: w}}, nil
}

// newXRate returns a limiter of golang.org/x/time/rate with the capacity of weir's bucket.
func newXRate(s *spec) *rate.Limiter {
	if s.Empty {
		return rate.NewLimiter(rate.Every(never), 1)
	}
	return rate.NewLimiter(rate.Every(time.Minute/plenty), plenty)
}

// openXRate opens one limiter, which has no keys, and eight, for which the clock is read once.
func openXRate(_ context.Context, s *spec) (*workload, error) {
	l := newXRate(s)
	w, err := openTakes(s, func(string) (bool, error) { return l.AllowN(time.Now(), 1), nil })
	if err != nil {
		return nil, err
	}
	var eight []*rate.Limiter
	for range 8 {
		eight = append(eight, newXRate(s))
	}
	w.works[workEight] = &work{callers: []operation{func(context.Context) (opResult, error) {
		now, came := time.Now(), admitted
		for _, l := range eight {
			if !l.AllowN(now, 1) {
				came = denied
			}
		}
		return came, nil
	}}}
	return w, nil
}

// openGoLimiter opens sethvargo/go-limiter over its memory store.
func openGoLimiter(ctx context.Context, s *spec) (*workload, error) {
	config := &memorystore.Config{Tokens: plenty, Interval: time.Minute, InitialAlloc: len(s.Entities)}
	if s.Empty {
		config.Tokens, config.Interval = 1, never
	}
	store, err := memorystore.New(config)
	if err != nil {
		return nil, err
	}
	return openTakes(s, func(entity string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, entity)
		return ok, err
	})
}

// openThrottled opens throttled's GCRA over its memory store.
func openThrottled(ctx context.Context, s *spec) (*workload, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{
		MaxRate: throttled.PerDuration(plenty, time.Minute), MaxBurst: plenty - 1,
	}
	if s.Empty {
		quota = throttled.RateQuota{MaxRate: throttled.PerDuration(1, never), MaxBurst: 0}
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	// By default it fails after losing ten tries in a row to other goroutines.
	l.SetMaxCASAttemptsLimit(1 << 30)
	return openTakes(s, func(entity string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, entity, 1)
		return !limited, err
	})
}
