package weir

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// splitTotals turns what a settlement names into what each holding shall stand for, or says which
// name is wrong. A limit that is not named keeps what it stands for; slots return when the lease
// ends.
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
			if n, ok := s.named(e, p.Charge, h.Limit.Name); ok {
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
// [Invalid] where a total is more than its limit can count, or where the lease has fewer slots by
// now.
func (s *Settlement) Restated(holdings []Holding) ([][]Part, error) {
	if s.call == nil || s.Totals == nil {
		return s.Totals, nil
	}
	again := call{settling: s.call.settling} // Totals are in the call's own memory
	return again.splitTotals(&leaseEntry{
		id: s.ID, holdings: holdings, charges: again.settling.charges, keys: again.settling.keys,
	})
}

// named is what a settlement says of one limit of a charge.
func (s *settling) named(e *leaseEntry, charge int, name string) (int64, bool) {
	if len(s.lists) == 0 {
		return 0, false
	}
	if charge < len(e.keys) {
		if n, ok := s.lists[0].findKey(e.keys[charge], name); ok {
			return n, true
		}
	}
	if len(s.lists) == 1 {
		charge = 0 // one set for all charges
	}
	return s.lists[charge].find(name)
}

// checkNames holds every name that a settlement gives against what was reserved.
func (s *settling) checkNames(e *leaseEntry) error {
	if len(s.lists) > 1 && len(e.keys) > 1 {
		return invalid(s.field, len(s.lists), mustNameKeys)
	}
	if len(s.lists) > 1 && len(s.lists) != int(e.charges) {
		return invalid(s.field, len(s.lists),
			fmt.Sprintf("give one set for all charges, or one for each of the %d", int(e.charges)))
	}
	var keys []error // every mistake that is about a key
	for i, list := range s.lists {
		charge := -1
		if len(s.lists) > 1 {
			charge = i
		}
		for j := range list {
			err := e.checkNamed(list, j, charge)
			if err == nil {
				continue
			}
			if err.Code == Invalid {
				err.Field = s.field + "." + shortenName(list[j].name)
				if charge >= 0 {
					err.Field = fmt.Sprintf("%s[%d].%s", s.field, i, list[j].name)
				}
			}
			if list[j].key == 0 || err.Code != Invalid {
				return err
			}
			keys = append(keys, err)
		}
	}
	if len(keys) == 1 {
		return keys[0]
	}
	return errors.Join(keys...)
}

// mustNameKeys refuses what does not say which of several keyed charges it is for.
const mustNameKeys = "must name the keys: several were reserved"

// checkNamed refuses one name of a list. The field is the caller's to add.
func (e *leaseEntry) checkNamed(list costList, at, charge int) *Error {
	c := &list[at]
	if c.key == 0 {
		err := checkReserved(e.holdings, charge, c.name, c.units)
		if err != nil && err.Reason == severalHave && e.keys != nil {
			err.Reason = mustNameKeys
		}
		return err
	}
	if e.keys == nil {
		return fault(UnknownLease, "lease_id", e.id, "is not known here as one with keys")
	}
	limit := c.limit()
	if charge = slices.Index(e.keys, c.key); charge < 0 || !reserves(e.holdings, charge, limit) {
		return invalid("", c.name, "was not reserved")
	}
	if _, twice := list.find(limit); twice { // by the name alone as well
		return invalid("", c.name, "is given twice")
	}
	return checkReserved(e.holdings, charge, limit, c.units)
}

// reserves reports whether a charge has reserved something under a limit's name.
func reserves(holdings []Holding, charge int, name string) bool {
	return slices.ContainsFunc(holdings, func(h Holding) bool {
		return h.Limit.Name == name &&
			slices.ContainsFunc(h.Parts, func(p Part) bool { return p.Charge == charge })
	})
}

const severalHave = "several charges have it: give one set for each charge"

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
				return invalid("", n, severalHave)
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
			return invalid(s.field+"."+h.Limit.Name, (&Take{Parts: parts}).Cost(), "is more than a limit can count")
		}
		sum += p.Units
	}
	return nil
}
