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
)

// recorder is a T that keeps what is reported.
type recorder struct {
	conformance.T
	lines []string
}

func (r *recorder) Logf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) { r.Logf(format, args...) }

// forgiving is a model that forgives what was used above what was reserved.
func forgiving() conformance.Harness {
	return conformance.ModelHarness(&model.Points{
		StandFor: func(s *model.Settled, right []weir.Part) []weir.Part {
			to := slices.Clone(right)
			for i, p := range s.Parts {
				to[i].Units = min(to[i].Units, p.Units)
			}
			return to
		},
	})
}

func TestDifferenceIsFoundReducedAndReplayed(t *testing.T) {
	t.Parallel()
	wrong := forgiving()
	r := &recorder{T: t}
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
	// A reservation, its growth, and one that sees it.
	if len(s.Ops) > 6 {
		t.Errorf("the script has %d operations, want a handful:\n%s", len(s.Ops), text)
	}
	again := &recorder{T: t}
	conformance.Replay(again, wrong, text)
	if len(again.lines) == 0 {
		t.Errorf("the script finds nothing when it is replayed:\n%s", text)
	}
	conformance.Replay(t, conformance.ModelHarness(nil), text)
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

// panicking panics at its tenth reservation.
type panicking struct {
	conformance.World
	reserved int
}

func (p *panicking) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
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
		return &panicking{World: open(t, s)}
	}
	got := conformance.FirstDifference(t, h, 1, 2000)
	if !strings.Contains(got, "panic: ten") {
		t.Errorf("got %q, want the panic", got)
	}
}
