package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// recordingT is a T that keeps what is reported.
type recordingT struct {
	conformance.T
	lines []string
}

func (r *recordingT) Logf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recordingT) Errorf(format string, args ...any) { r.Logf(format, args...) }

// forgiving returns a harness of models that do not count an overrun.
func forgiving() conformance.Harness {
	return conformance.ModelHarness(&model.Points{
		StandFor: func(s *model.UpdatedHolding, right []driver.Part) []driver.Part {
			to := slices.Clone(right)
			for i, p := range s.Parts {
				to[i].Units = min(to[i].Units, p.Units)
			}
			return to
		},
	})
}

// TestDifferenceIsShrunk checks that a shrunk script is short, has small numbers, fails when it is
// replayed, and comes from the seed that is printed.
func TestDifferenceIsShrunk(t *testing.T) {
	t.Parallel()
	wrong := forgiving()
	r := &recordingT{T: t}
	conformance.RandomOperations(r, wrong, 1, 20_000)
	const mark = "replay it with conformance.Replay:\n"
	_, text, found := strings.Cut(strings.Join(r.lines, "\n"), mark)
	if !found {
		t.Fatalf("forgiven overruns were not found: %s", r.lines)
	}
	s, err := conformance.ParseScript(text)
	if err != nil {
		t.Fatalf("the script cannot be read: %v\n%s", err, text)
	}
	// A reservation, its growth, and an operation that shows it; some more on a busy machine.
	const ops, most = 6, 1000
	if len(s.Ops) > ops || largest(s) > most {
		t.Errorf("got %d operations with numbers up to %d, want at most %d up to %d:\n%s",
			len(s.Ops), largest(s), ops, most, text)
	}
	again := &recordingT{T: t}
	conformance.Replay(again, wrong, text)
	if len(again.lines) == 0 {
		t.Errorf("the script finds nothing when it is replayed:\n%s", text)
	}
	conformance.Replay(t, conformance.ModelHarness(nil), text)
	var seed uint64
	if _, err := fmt.Sscanf(text, "# seed %d", &seed); err != nil {
		t.Fatalf("no seed: %v\n%s", err, text)
	}
	want := fmt.Sprintf("seed %d: ", seed)
	if got := conformance.FirstDifference(t, wrong, seed, 2000); !strings.HasPrefix(got, want) {
		t.Errorf("got %q from the seed, want %q", got, want)
	}
}

// largest returns the largest number in the operations of a script.
func largest(s *conformance.Script) int64 {
	var n int64
	for i := range s.Ops {
		o := &s.Ops[i]
		n = max(n, o.By.Milliseconds())
		for _, c := range o.Charges {
			for _, cost := range c.Costs {
				n = max(n, cost)
			}
		}
		for _, c := range o.Totals {
			for _, total := range c {
				n = max(n, total)
			}
		}
	}
	return n
}

// TestDifferenceThatIsNotReproduced checks that a script that fails only once is printed as it was.
func TestDifferenceThatIsNotReproduced(t *testing.T) {
	t.Parallel()
	h := conformance.ModelHarness(nil)
	open, first := h.Open, true
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		w := open(t, s)
		if first {
			w = &panickingWorld{World: w}
		}
		first = false
		return w
	}
	r := &recordingT{T: t}
	conformance.RandomOperations(r, h, 1, 2000)
	if text := strings.Join(r.lines, "\n"); !strings.Contains(text, "panic: ten") ||
		!strings.Contains(text, "replay it with conformance.Replay:\n# seed 1\n") {
		t.Errorf("got %s, want the script that failed once", text)
	}
}

func TestFirstDifference(t *testing.T) {
	t.Parallel()
	if got := conformance.FirstDifference(t, forgiving(), 1, 20_000); !strings.HasPrefix(got, "seed ") {
		t.Errorf("got %q, want the seed and the step", got)
	}
	if got := conformance.FirstDifference(t, conformance.ModelHarness(nil), 1, 2000); got != "" {
		t.Errorf("the model differs from itself: %s", got)
	}
}

// panickingWorld is a world that panics at its tenth reservation.
type panickingWorld struct {
	conformance.World
	reserved int
}

func (p *panickingWorld) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	if p.reserved++; p.reserved == 10 {
		panic("ten")
	}
	return p.World.Reserve(ctx, r)
}

func TestPanicIsADifference(t *testing.T) {
	t.Parallel()
	h := conformance.ModelHarness(nil)
	open := h.Open
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		return &panickingWorld{World: open(t, s)}
	}
	got := conformance.FirstDifference(t, h, 1, 2000)
	if !strings.Contains(got, "panic: ten") {
		t.Errorf("got %q, want the panic", got)
	}
}
