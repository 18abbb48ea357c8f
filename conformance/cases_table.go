package conformance

import (
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// tableStates are the columns of the table in section 6.
var tableStates = []string{"live", "completed", "cancelled", "expired", "unknown", "voided"}

// tableRow is a row of the table: a verb, and what it does to a lease in each state.
type tableRow struct {
	verb string
	does [6]string
}

// tableRows are the rows of the table in section 6. Complete has two: with the same actuals, and
// with others.
var tableRows = []tableRow{
	{
		"reserve, same content",
		[6]string{"same answer, charged once", "ended", "ended", "ended", "reserve", "ended"},
	},
	{"reserve, other content", [6]string{"conflict", "ended", "ended", "ended", "reserve", "ended"}},
	{"adjust", [6]string{"applied by sequence", "ended", "ended", "ended", "unknown lease", "unknown lease"}},
	{"complete, same actuals", [6]string{"done", "same answer", "conflict", "ended", "unknown lease", "unknown lease"}},
	{"complete, other actuals", [6]string{"done", "conflict", "conflict", "ended", "unknown lease", "unknown lease"}},
	{"cancel", [6]string{"done", "conflict", "same answer", "ended", "unknown lease", "unknown lease"}},
	{"extend", [6]string{"renewed", "ended", "ended", "ended", "unknown lease", "unknown lease"}},
}

// tableCases returns a case for each cell of the table, on every kind that the store has.
func tableCases() []Case {
	var cases []Case
	for _, row := range tableRows {
		for i, state := range tableStates {
			c := cell{verb: row.verb, state: state, does: row.does[i]}
			needs := Needs{Virtual: state == "expired"}
			run := func(t T, h Harness) {
				for _, k := range h.Traits.Kinds {
					onWorld(system(slowLimit(k, "n", 10)), func(s *caseWorld) { c.play(s, k) })(t, h)
				}
			}
			cases = append(cases, Case{row.verb + " on " + state + ": " + c.does, "6 table", needs, run})
		}
	}
	return cases
}

// cell is one cell of the table. The lease reserves 6 units of 10 and is completed with 4.
type cell struct {
	verb, state, does string
}

func (c cell) play(s *caseWorld, k weir.Kind) {
	id := weir.NewLeaseID(s.Now())
	var first *weir.Lease
	var ended *weir.Receipt
	if c.state != "unknown" && c.state != "voided" {
		first = s.admit(with(id, ask("a", cost(6))))
	}
	switch c.state {
	case "voided":
		s.refuses(weir.UnknownLease)(s.Cancel(s.Context(), id))
	case "completed":
		ended = s.complete(first, cost(4))
	case "cancelled":
		ended = s.cancel(first)
	case "expired":
		s.Advance(first.Expires.Sub(s.Now()))
	}
	before := s.available("a", "n")
	s.Advance(10 * time.Millisecond)
	lease, receipt, err := c.call(s, id)
	after := s.available("a", "n")
	if want := before + c.availableChange(k); after != want {
		s.Fatalf("%s on %s: got %d available, want %d", c.verb, c.state, after, want)
	}
	if code, refused := cellCodes[c.does]; refused {
		s.refused(code, err)
		return
	}
	if err != nil {
		s.Fatalf("%s on %s: got %v, want: %s", c.verb, c.state, err, c.does)
	}
	c.answer(s, first, ended, lease, receipt)
}

var cellCodes = map[string]weir.Code{
	"ended": weir.Ended, "conflict": weir.Conflict, "unknown lease": weir.UnknownLease,
}

// call makes the cell's call.
func (c cell) call(s *caseWorld, id weir.LeaseID) (l *weir.Lease, r *weir.Receipt, err error) {
	switch c.verb {
	case "reserve, same content":
		l, err = s.Reserve(s.Context(), with(id, ask("a", cost(6))))
	case "reserve, other content":
		l, err = s.Reserve(s.Context(), with(id, ask("a", cost(5))))
	case "adjust":
		r, err = s.Adjust(s.Context(), id, 1, []weir.Costs{cost(2)})
	case "complete, same actuals":
		r, err = s.Complete(s.Context(), id, []weir.Costs{cost(4)})
	case "complete, other actuals":
		r, err = s.Complete(s.Context(), id, []weir.Costs{cost(3)})
	case "cancel":
		r, err = s.Cancel(s.Context(), id)
	default:
		r, err = s.Extend(s.Context(), id)
	}
	return l, r, err
}

// availableChange returns by how much the cell's call changes what is available.
func (c cell) availableChange(k weir.Kind) int64 {
	switch {
	case c.does == "reserve" && c.verb == "reserve, same content":
		return -6
	case c.does == "reserve":
		return -5
	case c.state != "live":
		return 0
	case c.verb == "adjust":
		return 4
	case c.verb == "cancel", k == weir.Concurrency && c.does == "done":
		return 6
	case c.verb == "complete, same actuals":
		return 2
	case c.verb == "complete, other actuals":
		return 3
	}
	return 0
}

// answer checks what a call that was not refused returned.
func (c cell) answer(
	s *caseWorld,
	first *weir.Lease,
	ended *weir.Receipt,
	l *weir.Lease,
	r *weir.Receipt,
) {
	now := s.Now().Truncate(time.Millisecond)
	switch c.does {
	case "same answer, charged once":
		s.equalTime("reserved at", l.ReservedAt, first.ReservedAt)
		s.equalTime("expires", l.Expires, first.Expires)
		if l.ID != first.ID || !slices.Equal(l.Limits, first.Limits) {
			s.Fatalf("got another answer: %+v, want %+v", l, first)
		}
	case "same answer":
		s.equalTime("receipt", r.At, ended.At)
		s.equal("expires", r.Expires.IsZero(), true)
	case "done":
		s.equal("expires", []bool{r.Expires.IsZero(), r.HoldsUntil.IsZero()}, []bool{true, true})
		s.soon("receipt", r.At, now)
	case "applied by sequence":
		s.equalTime("expires", r.Expires, first.Expires)
		s.soon("receipt", r.At, now)
	case "renewed":
		s.soon("expires", r.Expires, first.Expires.Add(now.Sub(first.ReservedAt)))
	case "reserve":
		s.soon("reserved at", l.ReservedAt, now)
	}
}

// soon expects two instants to be equal; in real time the first may be a little later.
func (s *caseWorld) soon(what string, got, want time.Time) {
	s.Helper()
	if !s.h.RealTime {
		s.equalTime(what, got, want)
	}
}
