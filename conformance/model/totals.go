package model

import (
	"slices"

	"github.com/weir-limiter/weir"
)

// checkTotals: a negative amount is invalid (7.4), and so is a malformed name (6), full ones too
// (7.12).
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

// checkSeq: sequence numbers begin at 1 (7.1).
func checkSeq(seq int64) error {
	if seq < 1 {
		return invalid("seq", "is below 1")
	}
	return nil
}

// applies: a sequence number above the last one is applied, whatever the gap (7.1).
func applies(last, seq int64) bool { return seq > last }

// refusedSeq: a call that is refused uses none up (7.1).
func refusedSeq(last, _ int64) int64 { return last }

// standFor says what a lease shall stand for after a settlement: for each holding its parts.
func (m *Model) standFor(e *lease, s *settling) ([][]weir.Part, error) {
	totals, err := m.rules.ByKey(e.content, e.holdings, s.totals)
	if err != nil {
		return nil, err
	}
	to, err := m.rules.Assign(e.holdings, len(e.content.Charges), totals)
	if err != nil {
		return nil, err
	}
	for i, h := range e.holdings {
		if err := m.rules.CheckSlots(h, to[i]); err != nil {
			return nil, err
		}
		switch s.verb {
		case weir.VerbComplete:
			to[i] = m.rules.AtEnd(h, to[i])
		case weir.VerbCancel:
			to[i] = m.rules.AtCancel(h)
		}
		if total := cost(to[i]); !total.IsInt64() ||
			h.Limit.Kind == weir.Bucket && total.Cmp(num(m.rules.BucketMost())) > 0 {
			return nil, invalid("totals."+h.Limit.Name, "is more than can be counted")
		}
	}
	return to, nil
}

// assign: totals are one set for all charges, or one for each in order (7.4). They count on the
// entity and on every ancestor that the cost reached (7.1). A limit that is not named keeps what it
// stands for (7.2).
func assign(holdings []*Holding, charges int, totals []weir.Costs) ([][]weir.Part, error) {
	if len(totals) > 1 && len(totals) != charges {
		return nil, invalid("totals", "are neither one set nor one for each charge")
	}
	to := make([][]weir.Part, len(holdings))
	for i, h := range holdings {
		to[i] = slices.Clone(h.Parts)
	}
	for set, costs := range totals {
		for name, n := range costs {
			having := havingName(holdings, name)
			if len(totals) > 1 {
				having = slices.DeleteFunc(having, func(charge int) bool { return charge != set })
			}
			if len(having) == 0 {
				return nil, invalid("totals."+name, "was not reserved")
			}
			if len(having) > 1 {
				return nil, invalid("totals."+name, "was reserved by several")
			}
			assignOne(holdings, to, having[0], name, n)
		}
	}
	return to, nil
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

// checkSlots: more slots than the lease stands for are invalid (7.4), charge by charge. Slots that
// have timed out count as well (7.9).
func checkSlots(h *Holding, asked []weir.Part) error {
	for i, p := range asked {
		if h.Limit.Kind == weir.Concurrency && p.Units > h.Parts[i].Units {
			return invalid("totals."+h.Limit.Name, "is more slots than there are")
		}
	}
	return nil
}

// atEnd: a complete returns the slots of every concurrency limit (7.2).
func atEnd(h *Holding, asked []weir.Part) []weir.Part {
	if h.Limit.Kind == weir.Concurrency {
		return none(asked)
	}
	return asked
}

// atCancel: a cancel sets everything to 0 (7.3).
func atCancel(h *Holding) []weir.Part { return none(h.Parts) }

func none(parts []weir.Part) []weir.Part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].Units = 0
	}
	return out
}
