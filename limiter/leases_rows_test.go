package limiter_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// rowOf returns the first ID of the row of an ID.
func rowOf(id weir.LeaseID) weir.LeaseID {
	id[len(id)-1] &^= 7
	return id
}

// TestLeaseRows checks that the IDs of one caller come in rows of eight if the store asks for them,
// and that no two callers share a row, however many there are.
func TestLeaseRows(t *testing.T) {
	t.Parallel()
	const callers = 6_000 // more than have a quota of their own
	for _, rows := range []bool{true, false} {
		store := newFakeStore()
		store.traits.LeaseRows = rows
		store.config.Levels[0].Limits[0].Capacity = 1 << 40
		at := time.Now()
		l, err := limiter.New(store, &limiter.Options{Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		rowsOf := make(map[weir.LeaseID][]int)
		for i := range callers {
			ctx := weir.ContextWithCaller(t.Context(), fmt.Sprintf("caller %d", i))
			for range 8 {
				lease, err := l.Reserve(ctx, ask())
				if err != nil {
					t.Fatal(err)
				}
				row := rowOf(lease.ID)
				rowsOf[row] = append(rowsOf[row], i)
			}
		}
		whole := 0
		for row, of := range rowsOf {
			if slices.Min(of) != slices.Max(of) {
				t.Errorf("row %v has IDs of several callers: %v", row, of)
			}
			if len(of) == 8 {
				whole++
			}
		}
		if want := 4096; rows && whole != want || !rows && whole != 0 {
			t.Errorf("rows %t: %d callers have a row of their own, want %d or none", rows, whole, want)
		}
	}
}
