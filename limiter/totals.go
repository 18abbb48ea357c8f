package limiter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// splitTotals computes what each holding will stand for from the totals that the caller named, or
// returns an error for a name that is wrong. A limit that is not named keeps what it stands for.
// Complete returns the slots, and cancel returns everything.
func (c *scratch) splitTotals(e *leaseEntry) error {
	s := &c.op
	if len(s.lists) > 0 {
		if err := s.checkNames(e); err != nil {
			return err
		}
	}
	c.parts = c.parts[:0]
	cancels, completes := s.verb == weir.VerbCancel, s.verb == weir.VerbComplete
	for i := range e.holdings {
		h := &e.holdings[i]
		from := len(c.parts)
		for _, p := range h.Parts {
			if n, ok := s.named(e, p.Charge, h.Limit.Name); ok {
				p.Units = n
			}
			if cancels || completes && h.Limit.Kind == weir.Concurrency {
				p.Units = 0
			}
			c.parts = append(c.parts, p)
		}
		change := &c.update.Changes[i]
		change.Parts = c.parts[from:len(c.parts):len(c.parts)]
		var err error
		if change.To, err = s.sum(h, change.Parts); err != nil {
			return err
		}
		change.Used = change.To
		if completes && h.Limit.Kind == weir.Concurrency {
			change.Used = s.slotsUsed(e, h)
		}
	}
	return nil
}

// named returns the total that the caller named for a limit of a charge, and whether it named one.
func (s *updateOp) named(e *leaseEntry, charge int, name string) (int64, bool) {
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

// checkNames compares every name in the totals with what was reserved.
func (s *updateOp) checkNames(e *leaseEntry) error {
	if len(s.lists) > 1 && len(e.keys) > 1 {
		return invalid(s.totalsName, len(s.lists), mustNameKeys)
	}
	if len(s.lists) > 1 && len(s.lists) != int(e.charges) {
		return invalid(s.totalsName, len(s.lists),
			fmt.Sprintf("give one set for all charges, or one for each of the %d", int(e.charges)))
	}
	var keys []error // all mistakes in full names, reported together
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
			if err.Code == weir.Invalid {
				err.Field = s.totalsName + "." + shortenName(list[j].name)
				if charge >= 0 {
					err.Field = fmt.Sprintf("%s[%d].%s", s.totalsName, i, list[j].name)
				}
			}
			if list[j].key == 0 || err.Code != weir.Invalid {
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

// mustNameKeys is the reason to refuse totals that do not say which of several keyed charges they
// are for.
const mustNameKeys = "must name the keys, because several were reserved"

// checkNamed checks one name of a list. The caller sets the field of the error.
func (e *leaseEntry) checkNamed(list costList, at, charge int) *weir.Error {
	c := &list[at]
	if c.key == 0 {
		err := checkReserved(e.holdings, charge, c.name, c.units)
		if err != nil && err.Reason == severalHave && e.keys != nil {
			err.Reason = mustNameKeys
		}
		return err
	}
	if e.keys == nil {
		return weir.NewError(weir.UnknownLease, "lease_id", e.id,
			"is not known as a lease with keys")
	}
	limit := c.limit()
	if charge = slices.Index(e.keys, c.key); charge < 0 || !reserves(e.holdings, charge, limit) {
		return invalid("", c.name, "was not reserved")
	}
	if _, twice := list.find(limit); twice { // also without the key
		return invalid("", c.name, "is given twice")
	}
	return checkReserved(e.holdings, charge, limit, c.units)
}

// reserves reports whether a charge has reserved something under a limit's name.
func reserves(holdings []driver.Holding, charge int, name string) bool {
	return slices.ContainsFunc(holdings, func(h driver.Holding) bool {
		return h.Limit.Name == name &&
			slices.ContainsFunc(h.Parts, func(p driver.Part) bool { return p.Charge == charge })
	})
}

// severalHave is the reason to refuse a name that is reserved by more than one charge.
const severalHave = "several charges have it: give one set for each charge"

// checkReserved refuses a name that a charge did not reserve, and more slots than it stands for.
// Charge -1 means the only charge that reserved the name. The caller sets the field of the error.
func checkReserved(holdings []driver.Holding, charge int, name string, n int64) *weir.Error {
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
			if h.Limit.Kind == weir.Concurrency && n > p.Units {
				return invalid("", n, fmt.Sprintf("is more slots than the lease has: %d", p.Units))
			}
		}
	}
	if found < 0 {
		return invalid("", n, "was not reserved")
	}
	return nil
}

// sum adds the parts that a holding will stand for, and refuses more than the limit can count.
func (s *updateOp) sum(h *driver.Holding, parts []driver.Part) (int64, error) {
	sum, fits := driver.SumParts(parts)
	if !fits || h.Limit.Kind == weir.Bucket && sum > weir.MaxBucketUnits {
		return 0, invalid(s.totalsName+"."+h.Limit.Name, sum, "is more than a limit can count")
	}
	return sum, nil
}
