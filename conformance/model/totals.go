package model

import (
	"slices"

	"github.com/weir-limiter/weir"
)

func checkTotals(totals []weir.Costs) error {
	for _, c := range totals {
		for name, n := range c {
			if entity, resource, limit, full := fullName(name); full {
				if err := checkSubject(entity, resource, true); err != nil {
					return err
				}
				name = limit
			}
			if err := checkAmounts(weir.Costs{name: n}); err != nil {
				return err
			}
		}
	}
	return nil
}

// standFor says what a lease shall stand for after a settlement: for each holding its parts.
func (m *Model) standFor(e *lease, s *settling) ([][]weir.Part, error) {
	totals, err := byKey(e.content, e.holdings, s.totals)
	if err != nil {
		return nil, err
	}
	to, err := m.assign(e, totals)
	if err != nil {
		return nil, err
	}
	for i, h := range e.holdings {
		if err := m.refuse("7.4", checkSlots(h, to[i])); err != nil {
			return nil, err
		}
		to[i] = m.points.StandFor.pass(&Settled{h, s.verb, e.content, to[i], totals},
			ending(s.verb, h, to[i]))
		if !countable(h.Limit.Kind, cost(to[i])) {
			err := m.refuseTake("1.1", &h.Take, uncountable("totals."+h.Limit.Name))
			if err != nil {
				return nil, err
			}
		}
	}
	return to, nil
}

// ending: a complete returns the slots of every concurrency limit (7.2), and a cancel sets everything
// to 0 (7.3).
func ending(v weir.Verb, h *Holding, asked []weir.Part) []weir.Part {
	if v == weir.VerbCancel || v == weir.VerbComplete && h.Limit.Kind == weir.Concurrency {
		return none(asked)
	}
	return asked
}

func none(parts []weir.Part) []weir.Part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].Units = 0
	}
	return out
}

// assign: totals are one set for all charges, or one for each in order (7.4). They count on the entity
// and on every ancestor that the cost reached (7.1). A limit that is not named keeps what it stands for
// (7.2).
func (m *Model) assign(e *lease, totals []weir.Costs) ([][]weir.Part, error) {
	if err := checkSets(totals, len(e.content.Charges)); err != nil {
		return nil, err
	}
	to := make([][]weir.Part, len(e.holdings))
	for i, h := range e.holdings {
		to[i] = slices.Clone(h.Parts)
	}
	for set, costs := range totals {
		for name, n := range costs {
			having := havingName(e.holdings, name)
			if len(totals) > 1 {
				having = slices.DeleteFunc(having, func(charge int) bool { return charge != set })
			}
			if err := m.refuse("7.4", checkHaving(name, having)); err != nil {
				return nil, err
			}
			for _, charge := range having {
				assignOne(e.holdings, to, charge, name, n)
			}
		}
	}
	return to, nil
}

func checkSets(totals []weir.Costs, charges int) error {
	if len(totals) > 1 && len(totals) != charges {
		return invalid("totals", "are neither one set nor one for each charge")
	}
	return nil
}

// checkHaving: one set for several charges must name only limits that one charge alone has (7.4).
func checkHaving(name string, charges []int) error {
	switch len(charges) {
	case 0:
		return invalid("totals."+name, "was not reserved")
	case 1:
		return nil
	default:
		return invalid("totals."+name, "was reserved by several")
	}
}

// havingName lists the charges that reserved something under a name.
func havingName(holdings []*Holding, name string) []int {
	var having []int
	for _, h := range holdings {
		for _, p := range h.Parts {
			if h.Limit.Name == name && !slices.Contains(having, p.Charge) {
				having = append(having, p.Charge)
			}
		}
	}
	return having
}

func assignOne(holdings []*Holding, to [][]weir.Part, charge int, name string, n int64) {
	for i, h := range holdings {
		for j := range to[i] {
			if h.Limit.Name == name && to[i][j].Charge == charge {
				to[i][j].Units = n
			}
		}
	}
}

// checkSlots: more slots than a charge stands for are invalid (7.4). Slots that have timed out count as
// well (7.9).
func checkSlots(h *Holding, asked []weir.Part) error {
	for i, p := range asked {
		if h.Limit.Kind == weir.Concurrency && p.Units > h.Parts[i].Units {
			return invalid("totals."+h.Limit.Name, "is more slots than there are")
		}
	}
	return nil
}
