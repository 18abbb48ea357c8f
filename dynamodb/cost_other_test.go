package dynamodb

import (
	"github.com/weir-limiter/weir"
)

// togetherCosts returns the rows of transactional reservations.
func togetherCosts() []costRow {
	transactional := func(o *Options) { o.Transactional = true }
	return []costRow{
		{
			what: "transactional: reserve", tune: transactional,
			prepare: warmFlat, do: func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "1 BatchGetItem, 1 UpdateItem",
			full:   costUnits{1000, 2000}, lean: costUnits{1000, 1000},
		},
		{
			what: "transactional: reserve, first ever", tune: transactional,
			prepare: func(s *costWorld) *costProcess {
				s.twoLimits()
				return s.join(transactional)
			},
			do:     func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "3 BatchGetItem, 1 PutItem",
			full:   costUnits{2000, 4000}, lean: costUnits{2000, 4000},
		},
		{
			what: "transactional: reserve and cancel", tune: transactional,
			prepare: warmFlat,
			do: func(_ *costWorld, p *costProcess) {
				if _, err := p.take("solo", one()).Cancel(p.t.Context()); err != nil {
					p.t.Fatal(err)
				}
			},
			before: "1 BatchGetItem, 2 UpdateItem",
			full:   costUnits{1000, 4000}, lean: costUnits{1000, 2000},
		},
		{
			what: "transactional: denied", tune: transactional,
			prepare: warmFlat,
			do:      func(_ *costWorld, p *costProcess) { p.refused("solo", weir.Costs{"rpm": 1000}) },
			before:  "1 BatchGetItem",
			full:    costUnits{1000, 0}, lean: costUnits{1000, 0},
		},
		{
			what: "transactional: cascade", tune: transactional,
			python:  "4 BatchGetItem, 1 TransactWriteItems; 8",
			prepare: warmFamily, do: func(_ *costWorld, p *costProcess) { p.take("bot", one()) },
			before: "1 BatchGetItem, 1 TransactWriteItems",
			full:   costUnits{2000, 8000}, lean: costUnits{2000, 4000},
		},
		{
			what: "transactional: cascade, denied by the parent", tune: transactional,
			prepare: drainedParent,
			do:      func(_ *costWorld, p *costProcess) { p.refused("bot", weir.Costs{"rpm": 150}) },
			before:  "1 BatchGetItem",
			full:    costUnits{2000, 0}, lean: costUnits{2000, 0},
		},
	}
}

// readingCosts returns the rows of reservations that read before they write.
func readingCosts() []costRow {
	reading := func(o *Options) { o.NoSpeculation = true }
	return []costRow{
		{
			what: "speculation off: reserve", tune: reading,
			python:  "2 BatchGetItem, 1 UpdateItem; 2",
			prepare: warmFlat, do: func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "1 GetItem, 1 UpdateItem",
			full:   costUnits{1000, 2000}, lean: costUnits{1000, 1000},
		},
		{
			what: "speculation off: denied", tune: reading,
			prepare: warmFlat,
			do:      func(_ *costWorld, p *costProcess) { p.refused("solo", weir.Costs{"rpm": 1000}) },
			before:  "1 GetItem",
			full:    costUnits{1000, 0}, lean: costUnits{1000, 0},
		},
		{
			what: "speculation off: cascade", tune: reading,
			prepare: warmFamily, do: func(_ *costWorld, p *costProcess) { p.take("bot", one()) },
			before: "2 GetItem, 2 UpdateItem",
			full:   costUnits{2000, 4000}, lean: costUnits{2000, 2000},
		},
	}
}
