package model

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
)

// Content is the part of a call that is compared with an earlier call with the same lease ID (6).
type Content struct {
	// Charges are the charges of a request, in their order and with their costs. Brought are its
	// limits.
	Charges []weir.Charge
	Brought []weir.Limit
	// Keyed is set if updates identify the charges by entity and resource. It is not compared
	// (7.12).
	Keyed bool
	// Totals are the totals of an update, which has nothing else.
	Totals []weir.Costs
}

// Same reports whether two calls have the same content. All updates that name nothing are the same,
// whether by no sets or by empty ones.
func (c *Content) Same(o *Content) bool {
	return slices.EqualFunc(c.Charges, o.Charges, func(x, y weir.Charge) bool {
		return x.Entity == y.Entity && x.Resource == y.Resource && sameCosts(x.Costs, y.Costs)
	}) && slices.EqualFunc(c.Brought, o.Brought, weir.Limit.Same) &&
		(slices.EqualFunc(c.Totals, o.Totals, sameCosts) || namesNothing(c.Totals) && namesNothing(o.Totals))
}

func namesNothing(totals []weir.Costs) bool {
	return !slices.ContainsFunc(totals, func(c weir.Costs) bool { return len(c) > 0 })
}

func sameCosts(a, b weir.Costs) bool { return maps.Equal(a, b) }

func (m *Model) same(was, is *Content) bool {
	return m.points.Same.pass(RepeatedCall{was, is}, was.Same(is))
}

func invalid(field, reason string) *weir.Error { return fault(weir.Invalid, field, reason) }

func fault(code weir.Code, field, reason string) *weir.Error {
	return &weir.Error{Code: code, Field: field, Reason: reason}
}

// content returns the content of a request, or an error for a mistake that the request alone shows.
func (m *Model) content(r *weir.Request) (*Content, error) {
	charges := r.Charges
	if len(charges) == 0 {
		charges = []weir.Charge{{Entity: r.Entity, Resource: r.Resource, Costs: r.Costs}}
	} else if r.Entity != "" || r.Resource != "" || r.Costs != nil {
		return nil, invalid("charges", "stand beside a charge")
	}
	if err := m.refuse("3.2", m.checkCharges(charges)); err != nil {
		return nil, err
	}
	if r.Keyed {
		if err := m.refuse("7.12", checkKeys(charges)); err != nil {
			return nil, err
		}
	}
	brought, err := normalize(r.Limits)
	if err != nil {
		return nil, err
	}
	c := &Content{Brought: brought, Keyed: r.Keyed}
	for _, charge := range charges {
		charge.Costs = maps.Clone(charge.Costs)
		c.Charges = append(c.Charges, charge)
	}
	return c, nil
}

// checkCharges refuses more than 16 charges or 32 costs (3.2), malformed names and negative costs
// (6).
func (m *Model) checkCharges(charges []weir.Charge) error {
	const maxCharges, maxCosts = 16, 32
	if len(charges) > maxCharges {
		return invalid("charges", "are too many")
	}
	costs := 0
	for _, c := range charges {
		if err := checkSubject(c.Entity, c.Resource); err != nil {
			return err
		}
		if err := checkAmounts(c.Costs); err != nil {
			return err
		}
		costs += len(c.Costs)
	}
	if costs > maxCosts {
		return invalid("costs", "are too many")
	}
	return nil
}

func checkAmounts(c weir.Costs) error {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if !isName(name, letters, letters+digits+"_.-", 64) || name == "wcu" {
			return invalid("costs."+name, "is no limit's name")
		}
		if c[name] < 0 {
			return invalid("costs."+name, "is negative")
		}
	}
	return nil
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

func checkSubject(entity, resource string) error {
	if !isSubjectName(entity, 256) {
		return invalid("entity", "is no entity's name")
	}
	if !isSubjectName(resource, 128) {
		return invalid("resource", "is no resource's name")
	}
	return nil
}

// isSubjectName reports whether an entity or a resource may be called s.
func isSubjectName(s string, most int) bool {
	for _, c := range s {
		if !unicode.IsPrint(c) || c == ' ' || c == '#' {
			return false
		}
	}
	return s != "" && len(s) <= most && utf8.ValidString(s) &&
		!slices.Contains([]string{".", "..", "_default_"}, s) &&
		!strings.HasPrefix(s, "$SYSTEM") && !strings.HasPrefix(s, "$RESOURCE:")
}

func isName(s, first, others string, most int) bool {
	if s == "" || len(s) > most || !strings.Contains(first, s[:1]) {
		return false
	}
	for _, c := range s {
		if !strings.ContainsRune(others, c) {
			return false
		}
	}
	return true
}

// normalize returns limits with their defaults filled in, ordered by name.
func normalize(limits []weir.Limit) ([]weir.Limit, error) {
	var errs []error
	var out []weir.Limit
	for _, l := range limits {
		n, err := l.Normalize()
		if err != nil {
			errs = append(errs, err)
		}
		if slices.ContainsFunc(out, func(o weir.Limit) bool { return o.Name == l.Name }) {
			errs = append(errs, invalid("limits."+l.Name, "is given twice"))
		}
		out = append(out, n)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &weir.Error{Code: weir.Invalid, Field: "limits", Reason: "are malformed", Err: err}
	}
	slices.SortFunc(out, func(a, b weir.Limit) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
