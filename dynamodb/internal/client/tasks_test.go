package client

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestParallel(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad")
	for _, tt := range []struct {
		name           string
		n, fails       int // fails is the index of the call that fails; -1: none
		together, most int // the calls running at first, and the most that are started in all
	}{
		{"none", 0, -1, 0, 0},
		{"one", 1, -1, 1, 1},
		{"a few", 5, -1, 5, 5},
		{"many", 100, -1, MaxParallel, 100},
		{"one that fails", 1, 0, 1, 1},
		{"many, and the first fails", 100, 0, MaxParallel, MaxParallel},
		{"many, and the last fails", 100, 99, MaxParallel, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var begun atomic.Int64
				gate := make(chan struct{})
				done := make(chan error, 1)
				did := make([]atomic.Int64, tt.n)
				go func() {
					done <- Parallel(tt.n, func(i int) error {
						begun.Add(1)
						did[i].Add(1)
						<-gate
						if i == tt.fails {
							return bad
						}
						time.Sleep(time.Second) // let the failing call fail first
						return nil
					})
				}()
				synctest.Wait()
				if got := int(begun.Load()); got != tt.together {
					t.Errorf("got %d calls at the same time, want %d", got, tt.together)
				}
				close(gate)
				if err := <-done; errors.Is(err, bad) != (tt.fails >= 0) {
					t.Errorf("got %v", err)
				}
				if got := int(begun.Load()); got > tt.most || tt.fails < 0 && got != tt.n {
					t.Errorf("got %d calls started, want at most %d", got, tt.most)
				}
				for i := range did {
					if n := did[i].Load(); n > 1 {
						t.Errorf("%d was done %d times", i, n)
					}
				}
			})
		})
	}
}
