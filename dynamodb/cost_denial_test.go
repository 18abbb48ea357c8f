package dynamodb

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestCostOfDenials makes one caller ask for too much every ten milliseconds.
func TestCostOfDenials(t *testing.T) {
	t.Parallel()
	s := newCostWorld(t, madeTable(t), processLeases)
	p := s.first
	p.set("", costResource, perMinute("rpm", 10))
	lease := p.take("solo", weir.Costs{"rpm": 10})
	two := weir.Costs{"rpm": 2}
	p.settled()
	p.reset()
	const denials = 1000
	for range denials {
		denied := p.denial("solo", two)
		st := denied.Limits[0]
		if !st.Exceeded || st.Requested != 2 || denied.RetryAfter > 12*time.Second {
			t.Fatalf("got %+v, retry after %v", st, denied.RetryAfter)
		}
		s.clock.Advance(10 * time.Millisecond)
	}
	p.settled()
	got := p.calls.Snapshot()
	t.Logf("%d denials in ten seconds: %s", denials, inCalls(got))
	if want := "10 UpdateItem (10 refused)"; inCalls(got) != want {
		t.Errorf("%d denials: got %s, want %s", denials, inCalls(got), want)
	}

	// A denial ends exactly after its retry-after.
	denied := p.denial("solo", two)
	if denied.RetryAfter != 2*time.Second || denied.AtLeast {
		t.Fatalf("got retry after %v, want the two seconds that are left of twelve", denied.RetryAfter)
	}
	s.clock.Advance(denied.RetryAfter - time.Millisecond)
	if d := p.denial("solo", two); d.RetryAfter != time.Millisecond {
		t.Errorf("a millisecond before: got retry after %v", d.RetryAfter)
	}
	s.clock.Advance(time.Millisecond)
	p.settled()
	p.reset()
	p.take("solo", two)
	p.settled()
	if got := inCalls(p.calls.Snapshot()); got != "1 UpdateItem" {
		t.Errorf("after the wait: got %s, want one write", got)
	}

	// A settlement makes the process forget the denial at once.
	p.refused("solo", two)
	if _, err := lease.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.take("solo", two)
}

// TestDenialAfterTake checks that a denial from memory right after another reservation reports the
// units that this one has left.
func TestDenialAfterTake(t *testing.T) {
	t.Parallel()
	p := newCostWorld(t, madeTable(t), processLeases).first
	p.set("", costResource, perMinute("rpm", 10), perMinute("tpm", 10_000))
	p.take("solo", weir.Costs{"rpm": 10})
	p.refused("solo", weir.Costs{"rpm": 1})
	for i := range int64(500) {
		p.take("solo", weir.Costs{"tpm": 1})
		denied := p.denial("solo", weir.Costs{"rpm": 1, "tpm": 1})
		if got, want := denied.Limits[1].Available, 10_000-i-1; got != want {
			t.Fatalf("take %d: got %d units left, want %d", i+1, got, want)
		}
	}
}
