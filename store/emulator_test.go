//go:build cgo

package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/store"
)

// TestOpenTigerBeetle checks that the definitions that a store is opened with are in force.
func TestOpenTigerBeetle(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"tigerbeetle://emulator", "tigerbeetle://emulator?namespace=a+b"} {
		take(t, u, &store.Options{Definitions: definitions()}, nil)
	}
}

// TestOpenTigerBeetleServer checks the same on a server, and that a read-only store refuses to
// reserve.
func TestOpenTigerBeetleServer(t *testing.T) {
	t.Parallel()
	u := testkit.TigerBeetleURL(t, "store-test")
	take(t, u, &store.Options{Definitions: definitions()}, nil)
	take(t, u, &store.Options{Definitions: definitions(), ReadOnly: true}, weir.Unsupported)
}

// take opens a store and checks the error of a reservation. If there is none, it cancels the lease.
func take(t *testing.T, u string, o *store.Options, want error) {
	t.Helper()
	b, err := store.Open(t.Context(), u, o)
	if err != nil {
		t.Fatalf("%s: %v", u, err)
	}
	l, err := limiter.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := &weir.Request{Entity: "e", Resource: "r", Costs: weir.Costs{"x": 1}}
	lease, err := l.Reserve(t.Context(), ask)
	if !errors.Is(err, want) {
		t.Errorf("%s: reserve: got %v, want %v", u, err, want)
	}
	if err == nil {
		if _, err := lease.Cancel(t.Context()); err != nil {
			t.Errorf("%s: cancel: %v", u, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Errorf("%s: close: %v", u, err)
	}
}

// TestOpenTigerBeetleUnreachable checks that a store whose cluster does not answer is unavailable
// when the context ends.
func TestOpenTigerBeetleUnreachable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	b, err := store.Open(ctx, "tigerbeetle://127.0.0.1:1?cluster=340282366920938463463374607431768211455", nil)
	if !errors.Is(err, weir.Unavailable) || b != nil ||
		!strings.Contains(err.Error(), "no replica answered at 127.0.0.1:1 as TigerBeetle cluster 340282366920938463463374607431768211455") {
		t.Errorf("got %v, %v", b, err)
	}
}
