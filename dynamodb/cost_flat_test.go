package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
)

// one returns the costs of most of these reservations.
func one() weir.Costs { return weir.Costs{"rpm": 1, "tpm": 100} }

// twoLimits limits every entity of a world in requests and in tokens.
func (s *costWorld) twoLimits() {
	s.t.Helper()
	s.first.set("", costResource, perMinute("rpm", 1000), perMinute("tpm", 100_000))
}

// isRead reports whether a request is a read.
func isRead(r sentRequest) bool { return r.operation == "BatchGetItem" || r.operation == "GetItem" }

// flatCosts returns the rows of reservations on one bucket that the process knows.
func flatCosts() []costRow {
	return []costRow{
		{
			what:    "reserve, warm",
			python:  "1 UpdateItem; 2",
			prepare: warmFlat,
			do:      func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before:  "1 UpdateItem",
			full:    costUnits{0, 2000}, lean: costUnits{0, 1000},
		},
		{
			what:   "reserve, refill due",
			python: "2 BatchGetItem, 2 UpdateItem (1 refused); 3",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				p.take("solo", weir.Costs{"rpm": 900})
				s.clock.Advance(30 * time.Second)
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("solo", weir.Costs{"rpm": 300, "tpm": 100}) },
			before: "1 UpdateItem",
			full:   costUnits{0, 2000}, lean: costUnits{0, 1000},
		},
		{
			what: "reserve, refill due, and another process was faster",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				p.take("solo", weir.Costs{"rpm": 900})
				s.clock.Advance(30 * time.Second)
				s.join().take("solo", weir.Costs{"rpm": 200})
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("solo", weir.Costs{"rpm": 200}) },
			before: "2 UpdateItem (1 refused)",
			full:   costUnits{0, 3000}, lean: costUnits{0, 2000},
		},
	}
}

// unknownCosts returns the rows of reservations by a process without an image of the bucket, and on
// a bucket that does not exist.
func unknownCosts() []costRow {
	return []costRow{
		{
			what:   "reserve, cold: the process never saw the item",
			python: "1 GetItem, 1 UpdateItem; 2",
			prepare: func(s *costWorld) *costProcess {
				warmFlat(s)
				return s.join()
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "1 BatchGetItem, 1 UpdateItem",
			full:   costUnits{1000, 2000}, lean: costUnits{1000, 1000},
		},
		{
			what: "reserve, cold, on a bucket that had been full for long",
			prepare: func(s *costWorld) *costProcess {
				warmFlat(s)
				s.clock.Advance(5 * time.Minute)
				return s.join()
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "1 BatchGetItem, 2 UpdateItem (1 refused)",
			full:   costUnits{1000, 3000}, lean: costUnits{1000, 2000},
		},
		{
			what:   "reserve, first ever: the item is made",
			python: "2 BatchGetItem, 1 GetItem, 1 TransactWriteItems, 1 UpdateItem (1 refused); 11",
			prepare: func(s *costWorld) *costProcess {
				s.twoLimits()
				return s.join()
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "2 BatchGetItem, 1 PutItem, 1 UpdateItem (1 refused)",
			full:   costUnits{2000, 5000}, lean: costUnits{2000, 5000},
		},
	}
}

// deniedCosts returns the rows of denials on one bucket, and of a status call.
func deniedCosts() []costRow {
	return []costRow{
		{
			what:    "denied",
			python:  "1 UpdateItem (1 refused); 1",
			prepare: warmFlat,
			do:      func(_ *costWorld, p *costProcess) { p.refused("solo", weir.Costs{"rpm": 1000}) },
			before:  "1 UpdateItem (1 refused)",
			full:    costUnits{0, 1000}, lean: costUnits{0, 1000},
		},
		{
			what:   "denied again within a second",
			python: "none",
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				p.refused("solo", weir.Costs{"rpm": 1000})
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.refused("solo", weir.Costs{"rpm": 1000}) },
			before: "none",
		},
		{
			what:    "status",
			prepare: warmFlat,
			do: func(_ *costWorld, p *costProcess) {
				if _, err := p.Status(p.t.Context(), "solo", costResource); err != nil {
					p.t.Fatal(err)
				}
			},
			before: "1 BatchGetItem",
			full:   costUnits{1000, 0}, lean: costUnits{1000, 0},
		},
	}
}

// warmFlat returns a process that has reserved once.
func warmFlat(s *costWorld) *costProcess {
	s.t.Helper()
	s.twoLimits()
	s.first.take("solo", one())
	return s.first
}
