package conformance

import (
	"flag"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir/conformance/model"
)

// Bounds on shrinking. The counts end it in a store in the process, at the same attempt on every
// machine; the time ends it in a store that is far slower than the model.
const (
	shrinkTime = 50 * time.Second
	shrinkOps  = 200_000 // operations in all
	shrinkIdle = 40_000  // operations after the last attempt that made the script smaller
	shrinkOpen = 20      // operations that an attempt costs in addition to its own
	// A script with fewOps operations or fewer has its definitions shrunk too. Each attempt at that
	// plays all operations again.
	fewOps = 40
)

// shrink returns a smaller script that still fails, and the difference. Rapid draws the same script
// from the same seed, and then leaves out what it can and lowers what it drew. A script that does
// not fail again is returned as it is.
func (f *failingScript) shrink(t T, h *Harness) (*Script, *difference) {
	header := *f.script
	header.Ops, header.Sets = nil, f.script.Sets[:1]
	best, last := f.script, f.first
	left, idle := shrinkOps, shrinkIdle
	var until time.Time // set at the first attempt, because another script may be shrunk before this one
	r := scriptSearch{
		t: quietly(t), h: h, calendar: model.NewCalendar(), ops: len(f.script.Ops),
		ofInterest: func(s *Script) bool {
			return len(best.Ops) <= fewOps || s.String() == header.String()
		},
		expired: func() bool {
			return left <= 0 || idle <= 0 || !until.IsZero() && time.Now().After(until)
		},
	}
	checkWithRapid(t, f.seed, func(t *rapid.T) {
		if r.expired() {
			runtime.Goexit() // rapid would go on with its attempts
		}
		if until.IsZero() {
			until = time.Now().Add(shrinkTime)
		}
		d := r.tryTo(t)
		if r.machine == nil {
			return
		}
		done := shrinkOpen + len(r.machine.script.Ops)
		left, idle = left-done, idle-done
		if d != nil {
			best, last, idle = r.machine.script, d, shrinkIdle
			t.Fatalf("the answers differ")
		}
	})
	return best, last
}

// tryTo plays a script that may not be playable.
func (r *scriptSearch) tryTo(t *rapid.T) (d *difference) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(givenUp); !ok {
				panic(p)
			}
			d = nil
		}
	}()
	return r.play(t)
}

// rapidFlags is held while rapid's flags are set, because flags are global to the process.
var rapidFlags sync.Mutex

// checkWithRapid runs a check on what rapid draws from a seed, and has rapid shrink it if the check
// fails. The check may end its goroutine.
func checkWithRapid(t T, seed uint64, check func(*rapid.T)) {
	rapidFlags.Lock()
	defer rapidFlags.Unlock()
	checks := "1"
	if testing.Short() {
		checks = "5" // rapid runs one of them
	}
	for name, value := range map[string]string{
		"rapid.seed": strconv.FormatUint(rapidSeed(seed), 10), "rapid.checks": checks,
		"rapid.shrinktime": shrinkTime.String(), "rapid.nofailfile": "true",
	} {
		f := flag.Lookup(name)
		defer func(was string) { _ = f.Value.Set(was) }(f.Value.String())
		if err := f.Value.Set(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(silentRapidT{quietly(t)}, check)
	}()
	<-done
}

// silentRapidT drops what rapid reports, because failingScript.report prints the result.
type silentRapidT struct{ T }

func (silentRapidT) Log(...any)   {}
func (silentRapidT) Error(...any) {}
func (silentRapidT) Fatal(...any) {}
func (silentRapidT) Fail()        {}
func (silentRapidT) FailNow()     {}
func (silentRapidT) Failed() bool { return false }
func (silentRapidT) Skip(...any)  {}
func (silentRapidT) SkipNow()     {}
