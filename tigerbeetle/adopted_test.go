//go:build cgo

package tigerbeetle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
)

// TestAbandonedAnswer checks that a repeat of an abandoned reservation reports the statuses of that
// reservation, even if a limit has been changed in between.
func TestAbandonedAnswer(t *testing.T) {
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
		if err := s.WriteConfig(b.Context(), time.Now(), cascading(30)); err != nil {
			b.Fatal(err)
		}
		lease, err := l.Reserve(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		if len(lease.Limits) != 8 {
			b.Errorf("got %d statuses, want 8", len(lease.Limits))
		}
		if _, err := l.Complete(b.Context(), lease.ID, []weir.Costs{{"b": 3}, {"b": 3}}); err != nil {
			b.Error(err)
		}
	})
}
