package dynamodb

import (
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// cascadeCosts returns the rows of reservations on a child and its parent.
func cascadeCosts() []costRow {
	take := func(_ *costWorld, p *costProcess) { p.take("bot", one()) }
	return []costRow{
		{
			what:    "cascade, warm",
			python:  "2 UpdateItem; 4",
			prepare: warmFamily, do: take, before: "2 UpdateItem",
			full: costUnits{0, 4000}, lean: costUnits{0, 2000},
		},
		{
			what:   "cascade, warm, the parent lacks a limit of the child",
			python: "4 BatchGetItem, 1 TransactWriteItems, 3 UpdateItem (1 refused); 13",
			prepare: func(s *costWorld) *costProcess {
				s.first.set("team", costResource, perMinute("rpm", 1000))
				return warmFamily(s)
			},
			do: take, before: "2 UpdateItem",
			full: costUnits{0, 4000}, lean: costUnits{0, 2000},
		},
		{
			what: "cascade, the configuration was kept long enough",
			prepare: func(s *costWorld) *costProcess {
				p := warmFamily(s)
				s.clock.Advance(61 * time.Second)
				return p
			},
			do: take, before: "2 BatchGetItem, 2 UpdateItem",
			full: costUnits{3000, 4000}, lean: costUnits{3000, 2000},
		},
		{
			what:   "cascade, cold: the parent is known from the child's item",
			python: "1 GetItem, 2 UpdateItem; 4",
			prepare: func(s *costWorld) *costProcess {
				warmFamily(s)
				return s.join()
			},
			do: take, before: "2 BatchGetItem, 2 UpdateItem",
			full: costUnits{3000, 4000}, lean: costUnits{3000, 2000},
		},
		{
			what: "cascade, the child's first: its item is made",
			prepare: func(s *costWorld) *costProcess {
				p := warmFamily(s)
				p.declare("bot2", "team")
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("bot2", one()) },
			before: "3 BatchGetItem, 1 PutItem, 2 UpdateItem (1 refused)",
			full:   costUnits{5000, 7000}, lean: costUnits{5000, 6000},
		},
	}
}

// familyCosts returns the rows of denials and updates of such reservations.
func familyCosts() []costRow {
	return []costRow{
		{
			what:    "cascade, denied by the parent: the child gets it back",
			python:  "3 UpdateItem (1 refused); 5",
			prepare: drainedParent,
			do:      func(_ *costWorld, p *costProcess) { p.refused("bot", weir.Costs{"rpm": 150}) },
			later:   secondWrite("bot"),
			before:  "2 UpdateItem (1 refused)", after: "1 UpdateItem",
			full: costUnits{0, 5000}, lean: costUnits{0, 3000},
		},
		{
			what:   "cascade, denied by the parent again within a second",
			python: "3 UpdateItem (1 refused); 5",
			prepare: func(s *costWorld) *costProcess {
				p := drainedParent(s)
				p.refused("bot", weir.Costs{"rpm": 150})
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.refused("bot", weir.Costs{"rpm": 150}) },
			before: "none",
		},
		settledFamily("cascade: complete with less", "", func(p *costProcess, l *weir.Lease) error {
			_, err := l.Complete(p.t.Context(), weir.Costs{"tpm": 50})
			return err
		}),
		settledFamily("cascade: cancel", "2 UpdateItem; 4", func(p *costProcess, l *weir.Lease) error {
			_, err := l.Cancel(p.t.Context())
			return err
		}),
	}
}

// warmFamily returns a process that has reserved once on a child and its parent.
func warmFamily(s *costWorld) *costProcess {
	s.t.Helper()
	s.twoLimits()
	s.first.declare("team", "")
	s.first.declare("bot", "team")
	s.first.take("bot", one())
	return s.first
}

// drainedParent returns a process for which the parent has less left than the child.
func drainedParent(s *costWorld) *costProcess {
	s.t.Helper()
	p := warmFamily(s)
	p.take("team", weir.Costs{"rpm": 900})
	return p
}

// secondWrite selects the second write of an entity's bucket item.
func secondWrite(entity string) func(sentRequest) bool {
	var n atomic.Int64
	return func(r sentRequest) bool { return r.entity == entity && n.Add(1)%2 == 0 }
}

// settledFamily returns the row of a settlement on a child and its parent.
func settledFamily(what, python string, settle func(p *costProcess, l *weir.Lease) error) costRow {
	var lease *weir.Lease
	return costRow{
		what: what, python: python,
		prepare: func(s *costWorld) *costProcess {
			p := warmFamily(s)
			lease = p.take("bot", one())
			return p
		},
		do: func(_ *costWorld, p *costProcess) {
			if err := settle(p, lease); err != nil {
				p.t.Fatal(err)
			}
		},
		before: "2 UpdateItem",
		full:   costUnits{0, 4000}, lean: costUnits{0, 2000},
	}
}
