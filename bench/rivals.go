package main

import (
	"context"
	"time"

	limiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"
)

// takeWork is a rival's work: one take after the other, each of the next key, and each goroutine
// begins elsewhere among the keys.
func takeWork(take func(i int) (bool, error), keys, procs int) work {
	loops := make([]loop, max(1, procs))
	for g := range loops {
		next := g * keys / len(loops)
		loops[g] = func(n int) (tally, error) {
			var t tally
			for range n {
				ok, err := take(next)
				if err != nil {
					return t, err
				}
				if ok {
					t.admitted++
				} else {
					t.denied++
				}
				if next++; next == keys {
					next = 0
				}
			}
			return t, nil
		}
	}
	return parallel(loops)
}

// xrateLimiter is golang.org/x/time/rate with as much as weir's bucket has.
func xrateLimiter(spec *worldSpec) *rate.Limiter {
	if spec.Empty {
		return rate.NewLimiter(rate.Every(never), 1)
	}
	return rate.NewLimiter(rate.Every(time.Minute/plenty), plenty)
}

// xrateWorld is one limiter, without keys; and eight, of which the clock is read once.
func xrateWorld(spec *worldSpec) (*world, error) {
	l := xrateLimiter(spec)
	l.AllowN(time.Now(), 1) // what an empty one has
	eight := make([]*rate.Limiter, 8)
	for i := range eight {
		eight[i] = xrateLimiter(spec)
	}
	return &world{works: map[string]work{
		workTake: takeWork(
			func(int) (bool, error) { return l.AllowN(time.Now(), 1), nil }, 1, spec.Procs),
		workEight: takeWork(func(int) (bool, error) {
			now := time.Now()
			ok := true
			for _, l := range eight {
				ok = l.AllowN(now, 1) && ok
			}
			return ok, nil
		}, 1, spec.Procs),
	}}, nil
}

// goLimiterWorld is sethvargo/go-limiter over its memory store.
func goLimiterWorld(spec *worldSpec) (*world, error) {
	config := &memorystore.Config{Tokens: plenty, Interval: time.Minute, InitialAlloc: spec.Keys}
	if spec.Empty {
		config.Tokens, config.Interval = 1, never
	}
	store, err := memorystore.New(config)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return keyedWorld(spec, goLimiterTake(ctx, store), func() error { return store.Close(ctx) })
}

func goLimiterTake(ctx context.Context, store limiter.Store) func(key string) (bool, error) {
	return func(key string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, key)
		return ok, err
	}
}

// throttledWorld is throttled's GCRA over its memory store.
func throttledWorld(spec *worldSpec) (*world, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{
		MaxRate: throttled.PerDuration(plenty, time.Minute), MaxBurst: plenty - 1,
	}
	if spec.Empty {
		quota = throttled.RateQuota{MaxRate: throttled.PerDuration(1, never), MaxBurst: 0}
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	// By default it fails when ten tries in a row lose against other goroutines.
	l.SetMaxCASAttemptsLimit(1 << 30)
	ctx := context.Background()
	take := func(key string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited, err
	}
	return keyedWorld(spec, take, nil)
}

// keyedWorld uses each key once, so that its state is there, and makes the rival's works.
func keyedWorld(
	spec *worldSpec, take func(key string) (bool, error), closing func() error,
) (*world, error) {
	names := keys(spec.Keys)
	for _, key := range names {
		if _, err := take(key); err != nil {
			return nil, err
		}
	}
	byNumber := func(i int) (bool, error) { return take(names[i]) }
	return &world{
		works: map[string]work{workTake: takeWork(byNumber, len(names), spec.Procs)}, close: closing,
	}, nil
}
