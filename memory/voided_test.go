package memory

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// TestVoidedIDHasEnded checks that an ID that was cancelled before its reserve has ended, even
// after a restart and for a request that cannot be planned.
func TestVoidedIDHasEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "snapshot")
	d := &weir.Definitions{System: []weir.Limit{{Name: "rpm", Kind: weir.Bucket, Capacity: 10, RefillAmount: 1, RefillPeriod: time.Second}}}
	open := func() *limiter.Limiter {
		s, err := OpenSnapshot(file, &SnapshotOptions{Definitions: d})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	id := weir.NewLeaseID(time.Now())
	if _, err := l.Cancel(t.Context(), id); !errors.Is(err, weir.UnknownLease) {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	defer l.Close() //nolint:errcheck // It never fails.
	_, err := l.Reserve(t.Context(), &weir.Request{LeaseID: id, Entity: "e", Resource: "r", Costs: weir.Costs{"none": 1}})
	if !errors.Is(err, weir.Ended) {
		t.Errorf("got %v, want %v", err, weir.Ended)
	}
}
