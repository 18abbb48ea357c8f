package dynamodb

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, harness(t, nil))
}

// harness opens a namespace of its own for each world, on one table.
func harness(t *testing.T, tune func(o *Options)) conformance.StoreHarness {
	t.Helper()
	table := madeTable(t)
	return conformance.StoreHarness{
		StoreTimeout: 2 * time.Minute,
		OpenSecond: func(t conformance.T, b driver.Store) driver.Store {
			t.Helper()
			o := b.(*Store).options
			store, err := Open(t.Context(), table.Name, &o)
			if err != nil {
				t.Fatalf("open elsewhere: %v", err)
			}
			return store
		},
		Leeway: conformance.Leeway{
			NoBubble: true, WholeSeconds: true, MayContend: true, NotAtomicAcrossEntities: true,
			NeverForgetsEarly: true, ChargesFirst: true,
		},
		Open: func(t conformance.T, s conformance.Setup) driver.Store {
			t.Helper()
			o := *table.Options
			o.Namespace, o.Principal = "w"+strings.ToLower(weir.NewLeaseID(s.Start).String()), "test"
			if _, _, err := table.RegisterNamespace(t.Context(), o.Namespace); err != nil {
				t.Fatalf("register: %v", err)
			}
			if tune != nil {
				tune(&o)
			}
			store, err := Open(t.Context(), table.Name, &o)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			conformance.Define(t, store, s)
			return store
		},
	}
}

// TestRandomOperations adds 120,000 operations to those of the suite, each compared with the model.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	soak.Only(t)
	h := harness(t, nil)
	for seed := uint64(1); seed <= 60; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			conformance.RandomOperations(t, h.Service(t), seed, 2000)
		})
	}
}

// TestRandomOperationsOnSlowNetwork delays one answer in 20 by three seconds, as on a busy machine.
func TestRandomOperationsOnSlowNetwork(t *testing.T) {
	t.Parallel()
	h := harness(t, func(o *Options) {
		o.HTTP = &http.Client{Transport: &slowNetwork{rng: rand.New(rand.NewPCG(8, 0))}}
	})
	conformance.RandomOperations(t, h.Service(t), 8, soak.Amount(100, 2000))
}

// slowNetwork delays some answers.
type slowNetwork struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (n *slowNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	n.mu.Lock()
	late := n.rng.IntN(20) == 0
	n.mu.Unlock()
	if late {
		select {
		case <-time.After(3 * time.Second):
		case <-r.Context().Done():
			if err == nil {
				_ = resp.Body.Close()
			}
			return nil, r.Context().Err()
		}
	}
	return resp, err
}

// TestConformanceOfOptions runs the suite without speculation and with transactions, neither of
// which changes an answer.
func TestConformanceOfOptions(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(o *Options){
		"without speculation": func(o *Options) { o.NoSpeculation = true },
		"transactional":       func(o *Options) { o.Transactional = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := harness(t, tune)
			for seed := range uint64(soak.Amount(1, 10)) {
				conformance.RandomOperations(t, h.Service(t), 20260101+seed, soak.Amount(500, 2000))
			}
		})
	}
}
