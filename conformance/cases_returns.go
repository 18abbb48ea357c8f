package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// returnCases returns the cases about when a call that was denied a slot is told to come again.
func returnCases() []Case {
	slots := Needs{Kinds: only(weir.Concurrency).Kinds, Virtual: true}
	both := Needs{Kinds: []weir.Kind{weir.Concurrency, weir.Bucket}, Virtual: true}
	minutes, slow := slotsOf("slots", 4, 5*time.Minute), bucketOf("n", 60, 60, time.Minute)
	return []Case{
		{"a slot is back by its timeout at the latest", "4.4", slots,
			onWorld(system(minutes), slotsUnseen)},
		{"a slot is likely back when calls take seconds", "4.4", slots,
			onWorld(system(minutes), slotsSeen)},
		{"a likely slot and a bucket", "4.4", both, onWorld(system(minutes, slow), slotsAndBucket)},
	}
}

// askSlots is a request for slots.
func askSlots(n int64) *weir.Request { return ask("a", weir.Costs{"slots": n}) }

// slotOf returns the status of the slots in a denial.
func (s *caseWorld) slotOf(d *weir.DeniedError) *weir.LimitStatus {
	s.Helper()
	for i := range d.Limits {
		if st := &d.Limits[i]; st.Limit == "slots" {
			return st
		}
	}
	s.Fatalf("got %+v, want the status of the slots", d.Limits)
	return nil
}

func slotsUnseen(s *caseWorld) {
	s.admit(askSlots(4))
	s.Advance(2 * time.Minute)
	d := s.deny(askSlots(1))
	st := s.slotOf(d)
	minutes := st.RetryAfter.Round(time.Minute)
	if !st.AtMost() || st.RetryLikely != 0 || minutes != 3*time.Minute {
		s.Errorf("got %+v, want at most three minutes, and nothing that is likely", st)
	}
}

// takeSlots takes all slots, and returns one after eight seconds, so that the process has seen one.
// It takes that one again.
func (s *caseWorld) takeSlots() {
	s.Helper()
	first := s.admit(askSlots(1))
	s.admit(askSlots(3))
	s.Advance(8 * time.Second)
	if _, err := s.Complete(s.Context(), first.ID, nil); err != nil {
		s.Fatalf("complete: %v", err)
	}
	s.admit(askSlots(1))
}

// seen reports whether the status says when a slot is likely to return. If several servers answer,
// the one that denies may have seen none.
func (s *caseWorld) seen(st *weir.LimitStatus) bool {
	s.Helper()
	if st.RetryLikely == 0 && !s.h.SeveralServers {
		s.Fatalf("got %+v, want to be told when a slot is likely to return", st)
	}
	return st.RetryLikely > 0
}

func slotsSeen(s *caseWorld) {
	s.takeSlots()
	for range 3 {
		d := s.deny(askSlots(1))
		if st := s.slotOf(d); s.seen(st) && (st.RetryLikely > 30*time.Second || !st.AtMost()) {
			s.Errorf("got %+v, want seconds, and at most minutes", st)
		}
	}
}

func slotsAndBucket(s *caseWorld) {
	s.takeSlots()
	s.admit(ask("a", weir.Costs{"n": 60, "slots": 0}))
	d := s.deny(ask("a", weir.Costs{"n": 50, "slots": 1}))
	if s.seen(s.slotOf(d)) && d.RetryAfter.Round(10*time.Second) != 50*time.Second {
		s.Errorf("got %v, want the wait for the bucket, 50 s: %+v", d.RetryAfter, d.Limits)
	}
	for i := range d.Limits {
		if st := &d.Limits[i]; st.Limit == "n" && (st.AtMost() || st.RetryLikely != 0) {
			s.Errorf("got %+v, want the exact wait of a bucket", st)
		}
	}
}
