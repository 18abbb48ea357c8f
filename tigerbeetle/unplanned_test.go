//go:build cgo

package tigerbeetle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
)

// TestAbandonedUnplanned checks that a caller that repeats an abandoned reservation gets its lease
// even if the request can no longer be planned, and that the lease is then not withdrawn.
func TestAbandonedUnplanned(t *testing.T) {
	t.Parallel()
	inOutages(t, func(b *outageWorld) {
		l, s := b.serve()
		if _, err := l.Reserve(b.Context(), several()); err != nil {
			b.Fatal(err)
		}
		b.down()
		r := several()
		b.leave(l, r)
		b.up()
		synctest.Wait()
		d := cascading(20) // without b
		d.System = d.System[1:]
		if err := s.WriteConfig(b.Context(), time.Now(), d); err != nil {
			b.Fatal(err)
		}
		lease, err := l.Reserve(b.Context(), r)
		if err != nil {
			b.Fatalf("the repeat: %v", err)
		}
		if len(lease.Limits) != 8 {
			b.Errorf("got %d statuses, want 8", len(lease.Limits))
		}
		time.Sleep(5 * time.Second)
		if _, err := l.Adjust(b.Context(), lease.ID, 1, []weir.Costs{{"m": 1}, {"m": 1}}); err != nil {
			b.Errorf("a lease that somebody was told of: %v", err)
		}
		if n := s.Stats().Withdrawn; n != 0 {
			b.Errorf("%d were withdrawn", n)
		}
	})
}

// TestAbandonedUnplannedElsewhere is TestAbandonedUnplanned for a reservation that another server
// carried out.
func TestAbandonedUnplannedElsewhere(t *testing.T) {
	t.Parallel()
	inOutages(t, func(b *outageWorld) {
		l, s := b.serve()
		other, os := b.serve()
		if _, err := l.Reserve(b.Context(), several()); err != nil {
			b.Fatal(err)
		}
		b.down()
		r := several()
		b.leave(l, r)
		b.up()
		synctest.Wait()
		d := cascading(20) // without b
		d.System = d.System[1:]
		if err := os.WriteConfig(b.Context(), time.Now(), d); err != nil {
			b.Fatal(err)
		}
		lease, err := other.Reserve(b.Context(), r)
		if err != nil {
			b.Fatalf("the repeat: %v", err)
		}
		time.Sleep(5 * time.Second)
		if _, err := other.Adjust(b.Context(), lease.ID, 1, []weir.Costs{{"m": 1}, {"m": 1}}); err != nil {
			b.Errorf("a lease that somebody was told of: %v", err)
		}
		if n := s.Stats().Withdrawn; n != 0 {
			b.Errorf("%d were withdrawn", n)
		}
	})
}
