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

// How much is done to shrink a script. What is counted ends it in the process, at the same attempt
// on every machine, the time in a store that is far slower than the model.
const (
	shrinkTime = 50 * time.Second
	shrinkOps  = 200_000 // in all
	shrinkIdle = 40_000  // since an attempt was of use
	shrinkOpen = 20      // operations that an attempt is counted as, besides its own
	fewOps     = 40      // from so few on, the definitions are shrunk too: each attempt repeats them all
)

// shrink returns a script that still fails, and the difference: rapid draws the same script from
// the same seed, and then leaves out what it can and lowers what it drew. A script that does not
// fail again is returned as it is.
func (f *failingScript) shrink(t T, h *Harness) (*Script, *difference) {
	header := *f.script
	header.Ops, header.Sets = nil, f.script.Sets[:1]
	best, last := f.script, f.first
	left, idle := shrinkOps, shrinkIdle
	var until time.Time // from the first attempt on: another script may be shrunk before this one
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

// tryTo plays a script that need not be playable.
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

// rapidFlags is held while rapid's flags are set, because they are the process's.
var rapidFlags sync.Mutex

// checkWithRapid checks what rapid draws from a seed, and lets rapid shrink it if it fails. The
// check may end its goroutine.
func checkWithRapid(t T, seed uint64, check func(*rapid.T)) {
	rapidFlags.Lock()
	defer rapidFlags.Unlock()
	checks := "1"
	if testing.Short() {
		checks = "5" // of which rapid does one
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

// silentRapidT lets rapid say what it likes: [finding.report] says what there is to say.
type silentRapidT struct{ T }

func (silentRapidT) Log(...any)   {}
func (silentRapidT) Error(...any) {}
func (silentRapidT) Fatal(...any) {}
func (silentRapidT) Fail()        {}
func (silentRapidT) FailNow()     {}
func (silentRapidT) Failed() bool { return false }
func (silentRapidT) Skip(...any)  {}
func (silentRapidT) SkipNow()     {}
