package dynamodb

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// leaseRow is a row of the table of costs with leases=table.
type leaseRow struct {
	costRow
	// process is the row of the same call with leases=process; nil if that has none.
	process *costRow
}

const leaseHeader = "| what | calls until the answer | and after it | read units " +
	"| write units: full table | lean table | leases=process: full table | lean table |\n" +
	"|---|---|---|--:|--:|--:|--:|--:|\n"

// String returns the row in Markdown.
func (r *leaseRow) String() string {
	var full, lean string
	if r.process != nil {
		full, lean = inUnits(r.process.full.write), inUnits(r.process.lean.write)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.what, r.before, r.after,
		inUnits(r.full.read), inUnits(r.full.write), inUnits(r.lean.write), full, lean)
}

// leaseRows returns the rows of the table for leases=table.
func leaseRows() []leaseRow {
	rows := sameCosts()
	cascade := slices.IndexFunc(rows, func(r leaseRow) bool { return r.what == "cascade, warm" })
	for _, r := range slices.Concat(
		newLeaseCosts(), ownIDCosts(), unknownLeaseCosts(), otherServerCosts(),
	) {
		rows = slices.Insert(rows, cascade, leaseRow{costRow: r})
		cascade++
	}
	return rows
}

// sameCosts returns the rows of calls that the table for leases=process has too.
func sameCosts() []leaseRow {
	process := make(map[string]costRow)
	for _, r := range processCosts() {
		process[r.what] = r
	}
	const (
		cold     = "reserve, cold: the process never saw the item"
		first    = "reserve, first ever: the item is made"
		refunded = "cascade, denied by the parent: the child gets it back"
	)
	var rows []leaseRow
	for _, of := range []struct {
		what, before, after string
		read, full, lean    int64
	}{
		{"reserve, warm", "2 UpdateItem", "", 0, 3000, 2000},
		{"reserve, refill due", "2 UpdateItem", "", 0, 3000, 2000},
		{cold, "1 BatchGetItem, 3 UpdateItem", "", 1000, 4000, 3000},
		{first, "2 BatchGetItem, 1 PutItem, 3 UpdateItem (1 refused)", "", 2000, 8000, 8000},
		{"denied", "1 UpdateItem (1 refused)", "", 0, 1000, 1000},
		{"denied again within a second", "none", "", 0, 0, 0},
		{"status", "1 BatchGetItem", "", 1000, 0, 0},
		{"adjust to the same", "1 UpdateItem", "", 0, 1000, 1000},
		{"adjust to more", "2 UpdateItem", "", 0, 3000, 2000},
		{"adjust to less", "2 UpdateItem", "", 0, 3000, 2000},
		{"complete with the same", "1 UpdateItem", "", 0, 1000, 1000},
		{"complete with more", "2 UpdateItem", "", 0, 3000, 2000},
		{"complete with less", "2 UpdateItem", "", 0, 3000, 2000},
		{"cancel", "2 UpdateItem", "", 0, 3000, 2000},
		{"extend", "1 UpdateItem", "", 0, 1000, 1000},
		{"cascade, warm", "3 UpdateItem", "", 0, 5000, 3000},
		{refunded, "2 UpdateItem (1 refused)", "1 UpdateItem", 0, 5000, 3000},
		{"cascade: complete with less", "3 UpdateItem", "", 0, 5000, 3000},
		{"cascade: cancel", "3 UpdateItem", "", 0, 5000, 3000},
		{"transactional: reserve", "1 BatchGetItem, 1 TransactWriteItems", "", 1000, 6000, 4000},
		{"transactional: reserve and cancel", "1 BatchGetItem, 1 TransactWriteItems, 2 UpdateItem", "", 1000, 9000, 6000},
		{"transactional: denied", "1 BatchGetItem", "", 1000, 0, 0},
		{"transactional: cascade", "1 BatchGetItem, 1 TransactWriteItems", "", 2000, 10000, 6000},
		{"4 shards: reserve, warm", "2 UpdateItem", "", 0, 3000, 2000},
	} {
		same := process[of.what]
		row := leaseRow{costRow: same, process: &same}
		row.before, row.after = of.before, of.after
		row.full, row.lean = costUnits{of.read, of.full}, costUnits{of.read, of.lean}
		rows = append(rows, row)
	}
	return rows
}

// newLeaseCosts returns the rows of calls of the server that reserved.
func newLeaseCosts() []costRow {
	var lease *weir.Lease
	return []costRow{
		{
			what: "denied, after another server has taken what this one expects to be left",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				s.join().take("solo", weir.Costs{"rpm": 900})
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.refused("solo", weir.Costs{"rpm": 500}) },
			before: "3 UpdateItem (1 refused)",
			full:   costUnits{0, 3000}, lean: costUnits{0, 3000},
		},
		{
			what: "adjust to more of one limit and less of another",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				lease = p.take("solo", one())
				return p
			},
			do: func(_ *costWorld, p *costProcess) {
				_, err := lease.Adjust(p.t.Context(), weir.Costs{"rpm": 2, "tpm": 50})
				p.done(err)
			},
			before: "3 UpdateItem",
			full:   costUnits{0, 5000}, lean: costUnits{0, 3000},
		},
	}
}

// otherServerCosts returns the rows of calls about a lease that another server has reserved.
func otherServerCosts() []costRow {
	live := func(p *costProcess) *weir.Lease { return p.take("solo", one()) }
	completed := func(p *costProcess) *weir.Lease {
		l := live(p)
		_, err := l.Complete(p.t.Context(), weir.Costs{"tpm": 50})
		p.done(err)
		return l
	}
	read, slot := costUnits{1000, 0}, costUnits{1000, 1000} // the read, and the slot's write
	again := atOther("reserve again", live, func(p *costProcess, l *weir.Lease) error {
		r, err := p.Reserve(p.t.Context(), withID(l.ID, one()))
		if err == nil && !r.Replay {
			return errors.New("the lease was reserved once more")
		}
		return err
	})
	again.before = "1 BatchGetItem, 1 GetItem, 3 UpdateItem (1 refused)" // gives back, then reads the status
	again.full, again.lean = costUnits{2000, 5000}, costUnits{2000, 3000}
	with := func(r costRow, before string, full, lean costUnits) costRow {
		r.before, r.full, r.lean = before, full, lean
		return r
	}
	slotWritten := func(r costRow) costRow { return with(r, "1 GetItem, 1 UpdateItem", slot, slot) }
	bothWritten := func(r costRow) costRow {
		return with(r, "1 GetItem, 2 UpdateItem", costUnits{1000, 3000}, costUnits{1000, 2000})
	}
	return []costRow{
		again,
		bothWritten(atOther("adjust to more", live, func(p *costProcess, l *weir.Lease) error {
			_, err := p.Adjust(p.t.Context(), l.ID, 1, []weir.Costs{{"tpm": 150}})
			return err
		})),
		slotWritten(atOther("extend", live, func(p *costProcess, l *weir.Lease) error {
			_, err := p.Extend(p.t.Context(), l.ID)
			return err
		})),
		slotWritten(atOther("complete with the same", live, completeWith(100))),
		bothWritten(atOther("complete with less", live, completeWith(50))),
		with(atOther("complete again", completed, completeWith(50)), "1 GetItem", read, read),
		bothWritten(atOther("cancel", live, func(p *costProcess, l *weir.Lease) error {
			_, err := p.Cancel(p.t.Context(), l.ID)
			return err
		})),
	}
}

// atOther returns the row of a call about a lease of the first process at another one, which knows
// the bucket item.
func atOther(
	what string, lease func(p *costProcess) *weir.Lease,
	do func(p *costProcess, l *weir.Lease) error,
) costRow {
	var l *weir.Lease
	return costRow{
		what: "at another server: " + what,
		prepare: func(s *costWorld) *costProcess {
			warmFlat(s)
			other := s.join()
			other.take("solo", one())
			l = lease(s.first)
			return other
		},
		do: func(_ *costWorld, p *costProcess) { p.done(do(p, l)) },
	}
}

func completeWith(tokens int64) func(p *costProcess, l *weir.Lease) error {
	return func(p *costProcess, l *weir.Lease) error {
		_, err := p.Complete(p.t.Context(), l.ID, []weir.Costs{{"tpm": tokens}})
		return err
	}
}

// done fails the test if there is an error.
func (p *costProcess) done(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// withID returns a request whose caller has made the ID.
func withID(id weir.LeaseID, c weir.Costs) *weir.Request {
	return &weir.Request{LeaseID: id, Entity: "solo", Resource: costResource, Costs: c}
}

// newID returns an ID that a caller has made.
func (s *costWorld) newID() weir.LeaseID { return weir.NewLeaseID(s.clock.Now()) }

// ownIDCosts returns the rows of reservations with an ID that the caller has made.
func ownIDCosts() []costRow {
	reserve := func(p *costProcess, id weir.LeaseID) {
		_, err := p.Reserve(p.t.Context(), withID(id, one()))
		p.done(err)
	}
	denied := func(s *costWorld, p *costProcess) {
		if _, err := p.Reserve(s.t.Context(), withID(s.newID(), weir.Costs{"rpm": 1000})); !isDenied(err) {
			s.t.Errorf("got %v, want denied", err)
		}
	}
	var id weir.LeaseID
	return []costRow{
		{
			what: "the caller's ID: reserve, warm", prepare: warmFlat,
			do:     func(s *costWorld, p *costProcess) { reserve(p, s.newID()) },
			before: "2 UpdateItem", full: costUnits{0, 3000}, lean: costUnits{0, 2000},
		},
		{
			what: "the caller's ID: reserve again at the same server",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				id = s.newID()
				reserve(p, id)
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { reserve(p, id) },
			before: "1 GetItem", full: costUnits{1000, 0}, lean: costUnits{1000, 0},
		},
		{
			what: "the caller's ID: denied", prepare: warmFlat, do: denied,
			before: "1 GetItem, 1 UpdateItem (1 refused)",
			full:   costUnits{1000, 1000}, lean: costUnits{1000, 1000},
		},
		{
			what: "the caller's ID: denied again within a second",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				denied(s, p)
				return p
			},
			do: denied, before: "1 GetItem", full: costUnits{1000, 0}, lean: costUnits{1000, 0},
		},
	}
}

// unknownLeaseCosts returns the rows of calls about leases that are in no record, and of the first
// record of a slice.
func unknownLeaseCosts() []costRow {
	unknown := func(s *costWorld, _ *weir.Receipt, err error) {
		if !errors.Is(err, weir.UnknownLease) {
			s.t.Errorf("got %v, want unknown lease", err)
		}
	}
	return []costRow{
		{
			what: "cancel an unknown lease: a tombstone", prepare: warmFlat,
			do: func(s *costWorld, p *costProcess) {
				r, err := p.Cancel(s.t.Context(), s.newID())
				unknown(s, r, err)
			},
			before: "1 GetItem, 1 UpdateItem", full: costUnits{1000, 1000}, lean: costUnits{1000, 1000},
		},
		{
			what: "complete an unknown lease", prepare: warmFlat,
			do: func(s *costWorld, p *costProcess) {
				r, err := p.Complete(s.t.Context(), s.newID(), []weir.Costs{one()})
				unknown(s, r, err)
			},
			before: "1 GetItem", full: costUnits{1000, 0}, lean: costUnits{1000, 0},
		},
		{
			what: "reserve, the first one of a slice of nine hours",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				s.clock.Advance(10 * time.Hour)
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "1 BatchGetItem, 3 UpdateItem",
			full:   costUnits{1000, 4000}, lean: costUnits{1000, 3000},
		},
	}
}
