package livetest

import (
	"math/rand/v2"
	"testing"
)

// tight returns a simulation in which much more is asked of a bucket than it has.
func tight() simulation {
	return simulation{capacity: 1000, refill: 100, seconds: 30, perSecond: 200, cost: 2, jitterUS: 10_000}
}

// TestCheck checks that a correct history always passes, and one that is wrong by a hundredth of
// the capacity always fails.
func TestCheck(t *testing.T) {
	t.Parallel()
	raised, lowered := Limit{1500, 200, 1}, Limit{500, 50, 1}
	cases := []struct {
		name  string
		edit  func(s *simulation)
		wrong bool
	}{
		{"right", func(*simulation) {}, false},
		{"right, slow processes", func(s *simulation) { s.jitterUS = 200_000 }, false},
		{"right, raised", func(s *simulation) { s.changed = &raised }, false},
		{"right, lowered", func(s *simulation) { s.changed = &lowered }, false},
		{"right, a pause", func(s *simulation) { s.idleFrom, s.idleTo = 10, 20 }, false},
		{"right, doubled", func(s *simulation) { s.doubleAt = 10 }, false},
		{"right, odd figures", func(s *simulation) { s.capacity, s.refill, s.cost = 997, 7, 3 }, false},
		{"right, seldom denied", func(s *simulation) { s.refill = 350 }, false},
		{"capacity", func(s *simulation) { s.capacity, s.faultCapacity = 4000, 40*milli }, true},
		{"capacity, seen at once", func(s *simulation) { s.faultCapacity, s.jitterUS = 10*milli, 100 }, true},
		{"refill", func(s *simulation) { s.faultRefill = 3 * milli }, true},
		{"refund twice", func(s *simulation) { s.faultRefund = true }, true},
		{"refund above the capacity", func(s *simulation) {
			s.faultOver, s.jitterUS, s.idleFrom, s.idleTo = true, 100, 10, 20
			s.cost, s.refill, s.perSecond = 100, 20_000, 400
		}, true},
		{"late credit", func(s *simulation) { s.faultIdle, s.idleFrom, s.idleTo = true, 10, 20 }, true},
		{"lost charge", func(s *simulation) { s.faultForget = 50 }, true},
		{"lost overrun", func(s *simulation) { s.faultMore = true }, true},
		{"lowered too late", func(s *simulation) { s.changed, s.faultChange = &lowered, true }, true},
		{"doubled twice", func(s *simulation) { s.doubleAt, s.faultCapacity = 10, 100*milli }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(8) {
				s := tight()
				c.edit(&s)
				w, records := s.run(rand.New(rand.NewPCG(seed, 1)))
				h := Histories(w, records)[0]
				found := h.Check()
				if wrong := found.ExcessMilli > 0; wrong != c.wrong {
					t.Errorf("seed %d: excess %d milli-units in %d ms, want wrong %v",
						seed, found.ExcessMilli, (found.ToUS-found.FromUS)/1000, c.wrong)
				}
			}
		})
	}
}
