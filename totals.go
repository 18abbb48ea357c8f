package weir

import (
	"fmt"
	"math"
)

// splitTotals turns what a settlement names into what each holding shall stand for, or says which name
// is wrong. A limit that is not named keeps what it stands for; slots return when the lease ends.
func (c *call) splitTotals(e *leaseEntry) ([][]Part, error) {
	s := &c.settling
	if len(s.lists) > 0 {
		if err := s.checkNames(e); err != nil {
			return nil, err
		}
	}
	c.parts, c.totals = c.parts[:0], c.totals[:0]
	cancels, completes := s.verb == VerbCancel, s.verb == VerbComplete
	for i := range e.holdings {
		h := &e.holdings[i]
		from := len(c.parts)
		for _, p := range h.Parts {
			if n, ok := s.named(p.Charge, h.Limit.Name); ok {
				p.Units = n
			}
			if cancels || completes && h.Limit.Kind == Concurrency {
				p.Units = 0
			}
			c.parts = append(c.parts, p)
		}
		parts := c.parts[from:len(c.parts):len(c.parts)]
		c.totals = append(c.totals, parts)
		if err := s.checkSum(h, parts); err != nil {
			return nil, err
		}
	}
	return c.totals, nil
}

// Restated is what Totals are for a lease that stands for something else than Holdings by now:
// another server has adjusted it since. What was not named stays as it is there. It fails with
// [Invalid] where a total is more than its limit can count, or where the lease has fewer slots by now.
func (s *Settlement) Restated(holdings []Holding) ([][]Part, error) {
	if s.call == nil || s.Totals == nil {
		return s.Totals, nil
	}
	again := call{settling: s.call.settling} // Totals are in the call's own memory
	return again.splitTotals(&leaseEntry{holdings: holdings, charges: again.settling.charges})
}

// named is what a settlement says of one limit of a charge.
func (s *settling) named(charge int, name string) (int64, bool) {
	if len(s.lists) == 0 {
		return 0, false
	}
	if len(s.lists) == 1 {
		charge = 0 // one set for all charges
	}
	return s.lists[charge].find(name)
}

// checkNames holds every name that a settlement gives against what was reserved.
func (s *settling) checkNames(e *leaseEntry) error {
	if len(s.lists) > 1 && len(s.lists) != int(e.charges) {
		return invalid(s.field, len(s.lists),
			fmt.Sprintf("give one set for all charges, or one for each of the %d", int(e.charges)))
	}
	for i, list := range s.lists {
		charge := -1
		if len(s.lists) > 1 {
			charge = i
		}
		for j := range list {
			if err := checkReserved(e.holdings, charge, list[j].name, list[j].units); err != nil {
				field := s.field + "." + list[j].name
				if charge >= 0 {
					field = fmt.Sprintf("%s[%d].%s", s.field, i, list[j].name)
				}
				err.Field = field
				return err
			}
		}
	}
	return nil
}

// checkReserved refuses a name that a charge did not reserve, or more slots than it stands for. Charge
// -1 means any, but only one may have the name. The field is the caller's to add.
func checkReserved(holdings []Holding, charge int, name string, n int64) *Error {
	found := -1
	for i := range holdings {
		h := &holdings[i]
		if h.Limit.Name != name {
			continue
		}
		for _, p := range h.Parts {
			if charge >= 0 && p.Charge != charge {
				continue
			}
			if found >= 0 && p.Charge != found {
				return invalid("", n, "several charges have it: give one set for each charge")
			}
			found = p.Charge
			if h.Limit.Kind == Concurrency && n > p.Units {
				return invalid("", n, fmt.Sprintf("is more slots than the lease has: %d", p.Units))
			}
		}
	}
	if found < 0 {
		return invalid("", n, "was not reserved")
	}
	return nil
}

// checkSum refuses a sum that its counter could not hold.
func (s *settling) checkSum(h *Holding, parts []Part) error {
	sum, most := int64(0), int64(math.MaxInt64)
	if h.Limit.Kind == Bucket {
		most = maxBucketUnits
	}
	for _, p := range parts {
		if p.Units > most-sum {
			return invalid(s.field+"."+h.Limit.Name, sumParts(parts), "is more than a limit can count")
		}
		sum += p.Units
	}
	return nil
}
