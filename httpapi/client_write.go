package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
)

// What follows writes requests. The server judges them; refused here is only what the wire would
// silently change, in the limiter's words.

// write encodes a body. Only strings and whole numbers go in, so that it cannot fail.
func write(body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, invalid("body", "", "cannot be written as JSON: "+err.Error())
	}
	return text, nil
}

// reserveBodyOf is a request on the wire, but for its lease ID.
func reserveBodyOf(r *weir.Request) (*reserveBody, error) {
	if len(r.Charges) > 0 && (r.Entity != "" || r.Resource != "" || r.Costs != nil) {
		return nil, invalid("charges", len(r.Charges), "must not stand beside entity, resource or costs")
	}
	b := &reserveBody{Entity: r.Entity, Resource: r.Resource, Costs: r.Costs, Keyed: r.Keyed}
	check := func(at string, entity, resource string, c weir.Costs) error {
		if err := checkText(at+"entity", entity); err != nil {
			return err
		}
		if err := checkText(at+"resource", resource); err != nil {
			return err
		}
		return checkNames(at+"costs", c)
	}
	if err := check("", r.Entity, r.Resource, r.Costs); err != nil {
		return nil, err
	}
	for i, c := range r.Charges {
		if err := check(fmt.Sprintf("charges[%d].", i), c.Entity, c.Resource, c.Costs); err != nil {
			return nil, err
		}
		b.Charges = append(b.Charges, chargeBody{c.Entity, c.Resource, c.Costs})
	}
	if len(r.Limits) == 0 {
		return b, nil
	}
	if err := checkLimits(r.Limits); err != nil {
		return nil, err
	}
	b.Limits = limitBodies(r.Limits)
	return b, nil
}

// checkText refuses what JSON would put something else for.
func checkText(field, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return invalid(field, s, "must be valid UTF-8")
}

func checkNames(field string, c weir.Costs) error {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if err := checkText(field+"."+shorten(name), name); err != nil {
			return err
		}
	}
	return nil
}

// checkLimits refuses limits that the wire cannot say: a name twice, a duration that is no whole
// number of its units. Then every mistake is told, as the limiter does.
func checkLimits(limits []weir.Limit) error {
	seen := make(map[string]bool, len(limits))
	said := true
	for i := range limits {
		l := &limits[i]
		said = said && !seen[l.Name] && sayable(l)
		seen[l.Name] = true
	}
	if said {
		return nil
	}
	var errs []error
	clear(seen)
	for i := range limits {
		l := &limits[i]
		field := "limits." + shorten(l.Name)
		if err := l.Validate(); err != nil {
			for _, f := range faultsOf(err) {
				f.Field = field + "." + f.Field
				errs = append(errs, f)
			}
			continue
		}
		if seen[l.Name] {
			errs = append(errs, invalid(field, l.Name, "is given twice"))
		}
		seen[l.Name] = true
	}
	return errors.Join(errs...)
}

func sayable(l *weir.Limit) bool {
	for _, s := range []string{l.Name, string(l.Kind), l.Every, l.Zone} {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return l.Window%time.Second == 0 && l.Timeout%time.Second == 0 &&
		l.RefillPeriod%time.Millisecond == 0 && l.RefillPeriod >= 0
}

// totalsBodyOf is one object where there is one set for all charges, an array where there is one
// for each of them. Nothing named is an empty object.
func totalsBodyOf(field string, totals []weir.Costs) (totalsBody, error) {
	for i, c := range totals {
		at := field
		if len(totals) > 1 {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		if err := checkNames(at, c); err != nil {
			return nil, err
		}
	}
	switch len(totals) {
	case 0:
		return write(weir.Costs{})
	case 1:
		return write(orEmpty(totals[0]))
	}
	whole := make([]weir.Costs, len(totals))
	for i, c := range totals {
		whole[i] = orEmpty(c)
	}
	return write(whole)
}

// orEmpty keeps null off the wire.
func orEmpty(c weir.Costs) weir.Costs {
	if c == nil {
		return weir.Costs{}
	}
	return c
}
