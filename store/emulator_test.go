//go:build cgo

package store_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/store"
)

// TestOpenTigerBeetle: what a store is opened with is in force, on an emulator and, where one is
// named, on a server. Who only looks may not take.
func TestOpenTigerBeetle(t *testing.T) {
	t.Parallel()
	urls := []string{"tigerbeetle://emulator", "tigerbeetle://emulator?namespace=a+b"}
	if at := os.Getenv("WEIR_TEST_TIGERBEETLE"); at != "" {
		address, cluster, given := strings.Cut(at, "/")
		if !given {
			cluster = "0"
		}
		urls = append(urls, "tigerbeetle://"+address+"?namespace=store-test&cluster="+cluster)
	}
	for _, u := range urls {
		b, err := store.Open(t.Context(), u, &store.Options{Definitions: definitions()})
		if err != nil {
			t.Fatalf("%s: %v", u, err)
		}
		l, err := weir.New(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		ask := &weir.Request{Entity: "e", Resource: "r", Costs: weir.Costs{"x": 1}}
		lease, err := l.Reserve(t.Context(), ask)
		if err != nil {
			t.Errorf("%s: reserve: %v", u, err)
		} else if _, err := lease.Cancel(t.Context()); err != nil {
			t.Errorf("%s: cancel: %v", u, err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("%s: close: %v", u, err)
		}
		if strings.Contains(u, "emulator") {
			continue
		}
		looking, err := store.Open(t.Context(), u, &store.Options{Definitions: definitions(), ReadOnly: true})
		if err != nil {
			t.Fatalf("%s: %v", u, err)
		}
		if l, err = weir.New(looking, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Reserve(t.Context(), ask); !errors.Is(err, weir.Unsupported) {
			t.Errorf("%s: reserve while looking: got %v, want %v", u, err, weir.Unsupported)
		}
		if err := l.Close(); err != nil {
			t.Errorf("%s: close: %v", u, err)
		}
	}
}

// TestOpenTigerBeetleNobody: where nobody answers, the store is unavailable when the context ends.
func TestOpenTigerBeetleNobody(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	b, err := store.Open(ctx, "tigerbeetle://127.0.0.1:1?cluster=340282366920938463463374607431768211455", nil)
	if !errors.Is(err, weir.Unavailable) || b != nil ||
		!strings.Contains(err.Error(), "nobody answered at 127.0.0.1:1 as TigerBeetle cluster 340282366920938463463374607431768211455") {
		t.Errorf("got %v, %v", b, err)
	}
}
