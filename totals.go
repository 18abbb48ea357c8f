package weir

import (
	"fmt"
	"math"
)

// parts turns what a settlement names into what each holding shall stand for, or says which name is
// wrong. A limit that is not named keeps what it stands for; slots return when the lease ends.
func (s *settling) parts(e *leaseEntry) ([][]Part, error) {
	if err := s.checkNames(e); err != nil {
		return nil, err
	}
	count := 0
	for i := range e.Holdings {
		count += len(e.Holdings[i].Parts)
	}
	all := make([]Part, 0, count)
	totals := make([][]Part, len(e.Holdings))
	for i := range e.Holdings {
		h := &e.Holdings[i]
		from := len(all)
		for _, p := range h.Parts {
			if n, ok := s.named(p.Charge, h.Limit.Name); ok {
				p.Units = n
			}
			if s.verb == VerbCancel || s.verb == VerbComplete && h.Limit.Kind == Concurrency {
				p.Units = 0
			}
			all = append(all, p)
		}
		totals[i] = all[from:len(all):len(all)]
		if err := s.checkSum(h, totals[i]); err != nil {
			return nil, err
		}
	}
	return totals, nil
}

// named is what a settlement says of one limit of a charge.
func (s *settling) named(charge int, name string) (int64, bool) {
	if len(s.totals) == 0 {
		return 0, false
	}
	if len(s.totals) == 1 {
		charge = 0 // one set for all charges
	}
	n, ok := s.totals[charge][name]
	return n, ok
}

// checkNames holds every name that a settlement gives against what was reserved.
func (s *settling) checkNames(e *leaseEntry) error {
	if len(s.totals) > 1 && len(s.totals) != e.Charges {
		return invalid(s.field, len(s.totals),
			fmt.Sprintf("give one set for all charges, or one for each of the %d", e.Charges))
	}
	for i, c := range s.totals {
		for _, name := range c.names() {
			charge, field := -1, s.field+"."+name
			if len(s.totals) > 1 {
				charge, field = i, fmt.Sprintf("%s[%d].%s", s.field, i, name)
			}
			if err := checkReserved(e.Holdings, charge, name, field, c[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkReserved refuses a name that a charge did not reserve, or more slots than it stands for. Charge
// -1 means any, but only one may have the name.
func checkReserved(holdings []Holding, charge int, name, field string, n int64) error {
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
				return invalid(field, n, "several charges have it: give one set for each charge")
			}
			found = p.Charge
			if h.Limit.Kind == Concurrency && n > p.Units {
				return invalid(field, n, fmt.Sprintf("is more slots than the lease has: %d", p.Units))
			}
		}
	}
	if found < 0 {
		return invalid(field, n, "was not reserved")
	}
	return nil
}

// checkSum refuses a sum that its counter could not hold.
func (s *settling) checkSum(h *Holding, parts []Part) error {
	sum := sumParts(parts)
	if h.Limit.Kind == Bucket && sum > maxBucketUnits || sum == math.MaxInt64 && len(parts) > 1 {
		return invalid(s.field+"."+h.Limit.Name, sum, "is more than a limit can count")
	}
	return nil
}
