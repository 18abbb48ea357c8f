package conformance_test

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// memoryWorld is a limiter over the memory store.
type memoryWorld struct {
	*conformance.Clock
	*limiter.Limiter
}

func (w memoryWorld) Configure(d *weir.Definitions) error {
	return w.Limiter.Configure(context.Background(), d)
}

func memoryHarness() conformance.Harness {
	return conformance.Harness{
		Open: func(t conformance.T, s conformance.Setup) conformance.World {
			t.Helper()
			store, err := memory.Open(&memory.Options{Definitions: s.Definitions})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			clock := conformance.NewClock(s.Start)
			s.Options.Now = clock.Now
			lim, err := limiter.New(store, &s.Options)
			if err != nil {
				t.Fatalf("new: %v", err)
			}
			return memoryWorld{clock, lim}
		},
		Traits: (&memory.Store{}).Traits(),
	}
}

func TestRandomMemory(t *testing.T) {
	t.Parallel()
	table := conformance.RandomOperations(t, memoryHarness(), seedOf(t), soak.Amount(8_000, 20_000))
	t.Logf("\n%s", table)
}

// TestSoakRandomMemory checks that enough random operations meet every rare outcome.
func TestSoakRandomMemory(t *testing.T) {
	t.Parallel()
	soak.Only(t)
	h := memoryHarness()
	table := conformance.RandomOperations(t, h, seedOf(t), 1_000_000)
	t.Logf("\n%s", table)
	if t.Failed() {
		return
	}
	for _, rare := range table.Rare(&h, 1000) {
		t.Errorf("met too rarely: %s", rare)
	}
}

// seedOf returns WEIR_SEED, or 1.
func seedOf(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Attr("seed", strconv.FormatUint(seed, 10))
	return seed
}
