package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/memory"
)

// overTCP serves on a port of the loopback address.
func overTCP(_ conformance.T, h http.Handler) *network {
	server := httptest.NewServer(h)
	return &network{url: server.URL, client: server.Client(), close: func() error {
		server.Close()
		return nil
	}}
}

// TestRandomClientOverTCP checks that the client agrees with the model over real connections,
// operation by operation.
func TestRandomClientOverTCP(t *testing.T) {
	t.Parallel()
	table := conformance.RandomOperations(t, conformance.Harness{
		Open: func(t conformance.T, s conformance.Setup) conformance.World {
			t.Helper()
			return openClientWorld(t, s, httpapi.ClientOptions{}, overTCP)
		},
		Traits: (&memory.Store{}).Traits(),
	}, 11, soak.Amount(1000, 6000))
	t.Logf("\n%s", table)
}

// proxiedHarness puts a proxy between client and server, and counts its faults. The function wrap
// may add a handler between the client and the proxy.
func proxiedHarness(
	seed uint64, counts map[string]int, wrap func(http.RoundTripper) http.RoundTripper,
) conformance.Harness {
	open := func(t conformance.T, s conformance.Setup) conformance.World {
		t.Helper()
		seed++
		var p *proxy
		w := openClientWorld(t, s, httpapi.ClientOptions{
			Attempts: 30, Backoff: time.Microsecond, Timeout: time.Minute,
		}, func(t conformance.T, h http.Handler) *network {
			net := overTCP(t, h)
			p = newProxy(net.url, seed, counts)
			net.client = &http.Client{Transport: wrap(&numberedAttempts{proxy: p, next: p.server.Client().Transport})}
			closeServer := net.close
			net.url, net.close = p.server.URL, func() error {
				p.close()
				return closeServer()
			}
			return net
		})
		return &proxiedWorld{w, p}
	}
	// If the clock steps back before the start of the server, the server refuses the client's own
	// IDs. After a lost attempt the client then reports an unknown outcome, but the model knows the
	// outcome.
	return conformance.Harness{Open: open, Traits: (&memory.Store{}).Traits(), NoSkew: true}
}

func unchanged(next http.RoundTripper) http.RoundTripper { return next }

// numberedAttempts writes the numbers of the call and of the attempt into every attempt, and
// abandons an attempt when the proxy tells it to. A timeout would do that too, but on a busy
// machine it would also end attempts that are being answered.
type numberedAttempts struct {
	proxy *proxy
	next  http.RoundTripper

	attempts atomic.Int64
}

func (n *numberedAttempts) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, giveUp := context.WithCancelCause(req.Context())
	attempt := strconv.FormatInt(n.attempts.Add(1), 10)
	n.proxy.givenUp.Store(attempt, func() { giveUp(context.DeadlineExceeded) })
	req = req.Clone(ctx)
	req.Header.Set(callHeader, n.proxy.current())
	req.Header.Set(attemptHeader, attempt)
	resp, err := n.next.RoundTrip(req)
	if err != nil {
		giveUp(nil)
	}
	return resp, err
}

// proxiedWorld ends a call only when all its requests have arrived, because the model has no late
// ones.
type proxiedWorld struct {
	*clientWorld

	proxy *proxy
}

// Reserve and the methods below implement [weir.Service].
func (w *proxiedWorld) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	defer w.proxy.over()
	return w.clientWorld.Reserve(ctx, r)
}

func (w *proxiedWorld) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	defer w.proxy.over()
	return w.clientWorld.Adjust(ctx, id, seq, totals)
}

func (w *proxiedWorld) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	defer w.proxy.over()
	return w.clientWorld.Complete(ctx, id, actuals)
}

func (w *proxiedWorld) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	defer w.proxy.over()
	return w.clientWorld.Cancel(ctx, id)
}

func (w *proxiedWorld) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	defer w.proxy.over()
	return w.clientWorld.Extend(ctx, id)
}

func (w *proxiedWorld) Status(
	ctx context.Context,
	entity, resource string,
) ([]weir.LimitStatus, error) {
	defer w.proxy.over()
	return w.clientWorld.Status(ctx, entity, resource)
}

func (w *proxiedWorld) Explain(
	ctx context.Context,
	entity, resource string,
) (*weir.Explanation, error) {
	defer w.proxy.over()
	return w.clientWorld.Explain(ctx, entity, resource)
}

// TestRandomClientThroughFaults checks that every answer equals the model's, whatever happens to
// connections, requests and answers: nothing is charged twice, and nothing is lost.
func TestRandomClientThroughFaults(t *testing.T) {
	t.Parallel()
	operations := soak.Amount(3000, 20_000)
	counts := map[string]int{}
	table := conformance.RandomOperations(t, proxiedHarness(1, counts, unchanged), 21, operations)
	t.Logf("\n%s%s", table, faultTable(counts))
	if table.Ops() != operations {
		t.Errorf("did %d operations, want %d", table.Ops(), operations)
	}
	faults := 0
	for _, f := range proxyFaults() {
		faults += counts[f.name]
		if counts[f.name] == 0 {
			t.Errorf("never met: %s", f.name)
		}
	}
	if faults < operations/5 {
		t.Errorf("met %d faults, want at least %d", faults, operations/5)
	}
}

func faultTable(counts map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%9d %s\n", counts[name], name)
	}
	return b.String()
}

// TestFaultsCatchNewIDs checks that the test above fails for a client that makes a new lease ID for
// each attempt, which would charge twice.
func TestFaultsCatchNewIDs(t *testing.T) {
	t.Parallel()
	harness := proxiedHarness(1, map[string]int{}, func(next http.RoundTripper) http.RoundTripper {
		return &newIDPerAttempt{next: next, names: map[string]string{}}
	})
	found := conformance.FirstDifference(t, harness, 21, 2000)
	if found == "" {
		t.Error("the answers are those of the model, although every attempt had an ID of its own")
	}
	t.Logf("found: %s", found)
}

// newIDPerAttempt gives every attempt of a reservation its own lease ID. Later verbs use the last
// one.
type newIDPerAttempt struct {
	next http.RoundTripper

	mu    sync.Mutex
	names map[string]string // the last ID of each lease, by the client's ID
}

func (n *newIDPerAttempt) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost {
		return n.next.RoundTrip(req)
	}
	given, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var body struct {
		LeaseID string `json:"lease_id"`
	}
	if err := json.Unmarshal(given, &body); err != nil {
		return nil, err
	}
	name := n.rename(body.LeaseID, req.URL.Path == "/v1/reserve")
	renamed := strings.Replace(string(given), body.LeaseID, name, 1)
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(renamed)), int64(len(renamed))
	resp, err := n.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(answer), name, body.LeaseID)))
	return resp, nil
}

// rename changes the last characters of an ID if an attempt follows another. The time in the ID
// stays.
func (n *newIDPerAttempt) rename(id string, reserves bool) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, known := n.names[id]
	switch {
	case !known:
		name = id
	case reserves:
		const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
		last := strings.IndexByte(digits, name[len(name)-1])
		name = name[:len(name)-1] + string(digits[(last+1)%len(digits)])
	}
	n.names[id] = name
	return name
}
