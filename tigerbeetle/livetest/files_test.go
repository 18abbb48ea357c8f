//go:build cgo

package livetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// slotsFile returns a limits file with a number of slots, and 100 tokens for each slot.
func slotsFile(slots int) string {
	return fmt.Sprintf(`version: 1
system:
  limits:
    slots: {kind: concurrency, timeout: 3600, capacity: %d}
    tokens: {capacity: %d, refill_amount: 1, refill_period: 86400}
`, slots, 100*slots)
}

const keys = 20

// key returns a request for one slot of a key.
func key(i int) *weir.Request {
	return &weir.Request{
		Entity: fmt.Sprintf("key-%d", i), Resource: "llm", Costs: weir.Costs{"slots": 1, "tokens": 50},
	}
}

// fill reserves on every key until it is denied, and checks that n fit.
func fill(t *testing.T, n int, servers ...*served) []*weir.Lease {
	t.Helper()
	var leases []*weir.Lease
	for i := range keys {
		for turn := range n {
			l, err := servers[rand.IntN(len(servers))].Reserve(t.Context(), key(i))
			if err != nil {
				t.Fatalf("key %d, call %d of %d, which fits: %v", i, turn+1, n, err)
			}
			leases = append(leases, l)
		}
		var denied *weir.DeniedError
		_, err := servers[rand.IntN(len(servers))].Reserve(t.Context(), key(i))
		if !errors.As(err, &denied) {
			t.Errorf("key %d, which is full: got %v, want a denial", i, err)
		}
	}
	return leases
}

// readiness reports whether a server is ready, or else whether it says that version is in force.
func (s *served) readiness(t *testing.T, version int) (ready, told bool) {
	t.Helper()
	status, body := s.get(t, "/readyz")
	other := status == http.StatusServiceUnavailable &&
		strings.Contains(body, fmt.Sprintf("which are version %d,", version))
	return status == http.StatusOK, other
}

// TestServersWithDifferentFiles checks two servers with different files. The one whose limits are
// not in force reserves nothing, but settles. The file in force makes it ready, and nothing that
// fits is denied after that.
func TestServersWithDifferentFiles(t *testing.T) {
	t.Parallel()
	store, weirProgram, dir := storeURL(t), program(t), t.TempDir()
	older, newer := filepath.Join(dir, "older.yaml"), filepath.Join(dir, "newer.yaml")
	write(t, older, slotsFile(2))
	write(t, newer, slotsFile(4))

	one := serve(t, weirProgram, store, older)
	if ready, _ := one.readiness(t, 1); !ready {
		t.Error("alone: not ready")
	}
	leases := fill(t, 2, one)

	two := serve(t, weirProgram, store, newer)
	if ready, _ := two.readiness(t, 2); !ready {
		t.Error("the newer file: not ready")
	}
	took := within(t, 2*time.Second, "the older file is not ready, and says why", func() bool {
		_, told := one.readiness(t, 2)
		return told
	})
	t.Logf("the older file was told of within %v", took)
	const ask = `{"entity":"key-0","resource":"llm","costs":{"slots":1,"tokens":1}}`
	if status, body := one.send(t, http.MethodPost, "/v1/reserve", ask); status != http.StatusServiceUnavailable {
		t.Errorf("reserve with the older file: got %d %s, want 503", status, body)
	}
	for i, l := range leases { // one of the two leases on each key, on the server that took it
		if i%2 == 0 {
			if _, err := one.Complete(t.Context(), l.ID, nil); err != nil {
				t.Errorf("complete with the older file: %v", err)
			}
		}
	}

	write(t, older, slotsFile(4))
	one.hangUp(t)
	within(t, 2*time.Second, "ready with the newer file", func() bool {
		ready, _ := one.readiness(t, 2)
		return ready
	})
	if ready, _ := two.readiness(t, 2); !ready {
		t.Error("the same file again made the other server's old")
	}

	// Each key has three of four slots in use and 100 tokens as before, so two more fit, on either
	// server.
	fill(t, 2, one, two)

	write(t, older, slotsFile(2))
	again := serve(t, weirProgram, store, older)
	if _, told := again.readiness(t, 2); !told {
		t.Error("the older file, started again: not told that version 2 is in force")
	}
	if _, err := again.Reserve(t.Context(), key(0)); !errors.Is(err, weir.Superseded) {
		t.Errorf("reserve there: got %v, want %q", err, weir.Superseded)
	}
}
