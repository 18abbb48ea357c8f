package limiter_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

func TestCache(t *testing.T) {
	t.Parallel()
	now := newClock()
	fake := newFakeStore()
	l, err := limiter.New(fake, &limiter.Options{Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	reserve := func() {
		t.Helper()
		if _, err := l.Reserve(t.Context(), ask()); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name  string
		do    func()
		reads int
	}{
		{"the first reads", reserve, 1},
		{"the second does not", reserve, 1},
		{"within the minute", func() { now.Advance(time.Minute - time.Millisecond); reserve() }, 1},
		{"after it", func() { now.Advance(time.Millisecond); reserve() }, 2},
		{"dropped", func() { l.DropCache(); reserve() }, 3},
	} {
		step.do()
		if fake.reads != step.reads {
			t.Errorf("%s: got %d reads, want %d", step.name, fake.reads, step.reads)
		}
	}
	if s := l.CacheStats(); s.Hits == 0 || s.Misses != 3 || s.Size != 1 || s.TTL != time.Minute {
		t.Errorf("got %+v, want hits, 3 misses, 1 entry, a minute", s)
	}
}

func TestCacheKeepsNegativeAnswers(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	fake.config = &weir.Config{}
	l, _ := limiter.New(fake, &limiter.Options{Now: newClock().Now})
	for range 3 {
		if _, err := l.Reserve(t.Context(), ask()); err == nil {
			t.Fatal("got a lease, want no limits configured")
		}
	}
	if fake.reads != 1 {
		t.Errorf("got %d reads, want 1", fake.reads)
	}
}

func TestCacheOff(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	l, _ := limiter.New(fake, &limiter.Options{CacheTTL: -1, Now: newClock().Now})
	for range 3 {
		if _, err := l.Reserve(t.Context(), ask()); err != nil {
			t.Fatal(err)
		}
	}
	if s := l.CacheStats(); fake.reads != 3 || s.Size != 0 || s.TTL != 0 {
		t.Errorf("got %d reads and %+v, want 3 and nothing kept", fake.reads, s)
	}
}

// The cache stays small with any number of entities, and keeps those that are in use.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	l, _ := limiter.New(fake, &limiter.Options{CacheSize: 3200, Now: newClock().Now})
	for i := range 50_000 {
		for _, entity := range []string{fmt.Sprintf("e%d", i), "hot"} {
			if _, err := l.Explain(t.Context(), entity, "r"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := l.CacheStats()
	if s.Size < 3200 || s.Size > 2*3200+16 {
		t.Errorf("got %d entries, want 3200 to about 6400", s.Size)
	}
	if hot := fake.reads - 50_000; hot > 1 {
		t.Errorf("the hot entity was read %d times, want once", hot)
	}
}

func TestCacheIsConcurrent(t *testing.T) {
	t.Parallel()
	l, _ := limiter.New(newFakeStore(), &limiter.Options{CacheSize: 64})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2_000 {
				if i%97 == 0 {
					l.DropCache()
				}
				if _, err := l.Explain(t.Context(), fmt.Sprintf("e%d", (i+g)%200), "r"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
