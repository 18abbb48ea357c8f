package limiter_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// unplannedCase is a reservation of one unit on a unplannedStore.
type unplannedCase struct {
	spoil func(s *unplannedStore)
	ask   func(r *weir.Request)
	want  string // the calls that the store gets
	code  weir.Code
}

const tookUnplanned = "read acme, take acme"

// unplannedTakes are records of the store that agree with the plan or differ from it.
func unplannedTakes() map[string]unplannedCase {
	const took = tookUnplanned
	return map[string]unplannedCase{
		"the same": {want: took + ", keep acme"},
		"the same, and the store cannot record it": {
			spoil: func(s *unplannedStore) { s.refusesToKeep = &weir.Error{Code: weir.Conflict} },
			want:  took + ", keep acme", code: weir.Conflict,
		},
		"another capacity": {
			spoil: func(s *unplannedStore) { s.record.Capacity = 99 }, want: took + ", give back, reserve again",
		},
		"another name": {
			spoil: func(s *unplannedStore) { s.record.Name = "tpm" }, want: took + ", give back, reserve again",
		},
		"a parent that it does not have": {
			spoil: func(s *unplannedStore) { s.parent = "parent" },
			want:  "read acme, read parent, take acme, give back, reserve again",
		},
		"without its parent": {
			spoil: func(s *unplannedStore) { s.config.Parent, s.config.Cascade, s.config.Known = "parent", true, true },
			want:  "read acme, read parent, take acme, give back, reserve again",
		},
		"with its parent": {
			spoil: func(s *unplannedStore) {
				s.parent = "parent"
				s.config.Parent, s.config.Cascade, s.config.Known = "parent", true, true
			},
			want: "read acme, read parent, take acme, keep acme",
		},
		"nothing": {
			spoil: func(s *unplannedStore) { s.record.Name = "" }, want: took + ", reserve again",
		},
		"no answer": {
			spoil: func(s *unplannedStore) { s.lost = errors.New("lost") }, want: took, code: weir.Unavailable,
		},
		"a cancel that fails": {
			spoil: func(s *unplannedStore) {
				s.record.Capacity = 99
				s.settle = func(context.Context, *driver.Update) (*driver.Outcome, error) {
					return nil, errors.New("lost")
				}
			},
			want: took + ", give back, reserve again",
		},
	}
}

// unplannedMistakes are requests that cannot be planned.
func unplannedMistakes() map[string]unplannedCase {
	const took = tookUnplanned
	return map[string]unplannedCase{
		"a limit that is not configured": {
			spoil: func(s *unplannedStore) {
				other := s.record
				other.Name = "tpm"
				s.config.Levels = []weir.LevelLimits{{Level: weir.LevelSystem, Limits: []weir.Limit{other}}}
			},
			want: took + ", give back", code: weir.UnknownLimit,
		},
		"no limits": {
			spoil: func(s *unplannedStore) { s.config.Levels = nil }, want: took + ", give back", code: weir.NoLimits,
		},
		"more than there can be": {
			spoil: func(s *unplannedStore) {
				l := s.record
				l.Capacity = 0
				s.config.Levels = []weir.LevelLimits{{Level: weir.LevelSystem, Limits: []weir.Limit{l}}}
			},
			want: took + ", give back", code: weir.NeverSatisfiable,
		},
		"a read that fails": {
			spoil: func(s *unplannedStore) { s.configErr = errors.New("gone") },
			want:  took + ", give back", code: weir.Unavailable,
		},
		"a read that is refused": {
			spoil: func(s *unplannedStore) { s.configErr = &weir.Error{Code: weir.PermissionDenied} },
			want:  took + ", give back", code: weir.PermissionDenied,
		},
	}
}

// neverUnplanned are requests that are planned first.
func neverUnplanned() map[string]unplannedCase {
	return map[string]unplannedCase{
		"no costs": {ask: func(r *weir.Request) { r.Costs = nil }, want: "read acme, reserve"},
		"brought limits": {
			ask: func(r *weir.Request) {
				r.Limits = []weir.Limit{{Name: "rpm", Capacity: 5}}
			},
			want: "read acme, reserve",
		},
		"several charges": {
			ask: func(r *weir.Request) {
				c := weir.Charge{Entity: r.Entity, Resource: r.Resource, Costs: r.Costs}
				*r = weir.Request{Charges: []weir.Charge{c, c}}
			},
			want: "read acme, reserve",
		},
	}
}

// A reservation that the store made by its records stands only if the plan asks for the same.
// Otherwise it is given back once, whatever the answer.
func TestUnplanned(t *testing.T) {
	t.Parallel()
	all := unplannedTakes()
	maps.Copy(all, unplannedMistakes())
	maps.Copy(all, neverUnplanned())
	for name, tt := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, l := newUnplannedStore(t, nil)
				if tt.spoil != nil {
					tt.spoil(s)
				}
				r := ask()
				if tt.ask != nil {
					tt.ask(r)
				}
				lease, err := l.Reserve(t.Context(), r)
				if tt.code == "" && err != nil || tt.code != "" && !errors.Is(err, tt.code) {
					t.Errorf("got %+v, %v; want %q", lease, err, tt.code)
				}
				time.Sleep(time.Second) // in a bubble: let the reads end
				s.checkCalls(t, tt.want)
			})
		})
	}
}

// The outcome is the store's, with the level and the ceiling of the plan, and the lease keeps the
// store's pieces.
func TestUnplannedOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := newUnplannedStore(t, nil)
		lease, err := l.Reserve(t.Context(), ask())
		if err != nil {
			t.Fatal(err)
		}
		want := weir.LimitStatus{
			Entity: "acme", Limit: "rpm", Available: 7, Level: weir.LevelSystem, Capacity: 100,
		}
		if len(lease.Limits) != 1 || lease.Limits[0] != want {
			t.Errorf("got %+v, want %+v", lease.Limits, want)
		}
		s.settle = func(_ context.Context, u *driver.Update) (*driver.Outcome, error) {
			if h := u.Changes[0].Holding; len(h.Pieces) != 1 || h.Pieces[0].Mark != 42 || u.Unplanned {
				t.Errorf("got %+v, want what the store took", h)
			}
			return &driver.Outcome{At: time.Now()}, nil
		}
		if _, err := lease.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.checkCalls(t, "read acme, take acme, keep acme, cancel")
		if _, err := l.Reserve(t.Context(), ask()); err != nil {
			t.Fatal(err)
		}
		s.checkCalls(t, "reserve") // the configuration is in the cache
	})
}

// Of several calls that come while the configuration is read, one reserves without a plan. A read
// that began before the cache was dropped is not shared with calls after that.
func TestUnplannedIsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := newUnplannedStore(t, nil)
		var all sync.WaitGroup
		reserve := func() {
			all.Go(func() {
				if _, err := l.Reserve(t.Context(), ask()); err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 {
			reserve()
		}
		all.Wait()
		s.checkConcurrentCalls(t, "read acme, keep acme, reserve, reserve, take acme")
		l.DropCache()
		reserve()
		synctest.Wait()
		l.DropCache()
		reserve()
		all.Wait()
		s.checkConcurrentCalls(t, "read acme, read acme, keep acme, keep acme, take acme, take acme")
	})
}

// After the cache time, the parent's configuration is read at the same time as the entity's.
func TestUnplannedReadsTheParentToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := newUnplannedStore(t, nil)
		s.parent = "parent"
		s.config.Parent, s.config.Cascade, s.config.Known = "parent", true, true
		for range 2 {
			s.readTime = 500 * time.Millisecond
			time.Sleep(2 * time.Minute) // in a bubble
			start := time.Now()
			if _, err := l.Reserve(t.Context(), ask()); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != s.readTime {
				t.Errorf("got an answer after %v, want %v: one read's time", got, s.readTime)
			}
			s.checkCalls(t, "read acme, read parent, take acme, keep acme")
		}
	})
}

// Nothing stays charged for a caller that leaves before the configuration has been read. The read
// goes on for other callers.
func TestUnplannedIfTheCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := newUnplannedStore(t, nil)
		s.readTime = 500 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := l.Reserve(ctx, ask())
			left <- err
		}()
		synctest.Wait()
		stays := make(chan error)
		go func() {
			_, err := l.Reserve(t.Context(), ask())
			stays <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the caller has left", err)
		}
		s.checkCalls(t, "read acme, take acme, give back")
		if err := <-stays; err != nil {
			t.Error(err)
		}
		s.checkCalls(t, "reserve")
	})
}

// A read ends with the store's timeout.
func TestUnplannedReadThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := newUnplannedStore(t, &limiter.Options{StoreTimeout: 100 * time.Millisecond})
		s.readTime = time.Hour
		start := time.Now()
		if _, err := l.Reserve(t.Context(), ask()); !errors.Is(err, weir.Unavailable) {
			t.Errorf("got %v, want %q", err, weir.Unavailable)
		}
		if got := time.Since(start); got != 100*time.Millisecond {
			t.Errorf("got an answer after %v, want the store's timeout", got)
		}
		synctest.Wait()
		s.checkCalls(t, "read acme, take acme, give back")
	})
}

// A stale plan is made again from a consistent read, which also renews the cache. After the third
// such read the reservation is denied as contended.
func TestStalePlan(t *testing.T) {
	t.Parallel()
	for _, stale := range []int{1, 3, 4} {
		synctest.Test(t, func(t *testing.T) {
			s, l := newUnplannedStore(t, nil)
			if _, err := l.Reserve(t.Context(), ask()); err != nil {
				t.Fatal(err)
			}
			s.checkCalls(t, "read acme, take acme, keep acme")
			left, version := stale, uint64(0)
			s.reserve = func(_ context.Context, p *driver.Plan) (*driver.Outcome, error) {
				version = p.Subjects[0].Version
				if left--; left >= 0 {
					return nil, &driver.StaleError{}
				}
				return &driver.Outcome{At: time.Now(), Limits: make([]weir.LimitStatus, 1)}, nil
			}
			c := *s.config
			c.Version = 7
			s.config = &c
			_, err := l.Reserve(t.Context(), ask())
			var denied *weir.DeniedError
			if stale <= 3 && err != nil || stale > 3 && (!errors.As(err, &denied) || !denied.Contended) {
				t.Errorf("stale %d times: got %v", stale, err)
			}
			n := min(stale, 3)
			s.checkCalls(t, strings.Repeat("read acme consistently, ", n)+"reserve"+
				strings.Repeat(", reserve again", n))
			if version != 7 {
				t.Errorf("got version %d in the end, want 7", version)
			}
			left = 0
			if _, err := l.Reserve(t.Context(), ask()); err != nil || version != 7 {
				t.Errorf("got %v, version %d; want what was read last", err, version)
			}
			s.checkCalls(t, "reserve")
		})
	}
}

// The configuration of a remote store is read once for all reservations that need it at the same
// time.
func TestSharedRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowReader{newFakeStore(), make(chan struct{}), make(chan struct{})}
		l, err := limiter.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := l.Reserve(t.Context(), ask()); err != nil {
					t.Error(err)
				}
			})
		}
		<-s.asked
		synctest.Wait()
		s.answer <- struct{}{}
		all.Wait()
		if s.reads != 1 || s.reserves != 5 {
			t.Errorf("got %d reads for %d reservations, want one for 5", s.reads, s.reserves)
		}
	})
}
