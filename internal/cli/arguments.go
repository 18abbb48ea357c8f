package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/identifier"
	"github.com/weir-limiter/weir/internal/money"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

// nextCharge separates the arguments of two charges. In the place of an entity it is a name.
const nextCharge = "+"

// splitCharges splits arguments into charges, or into the totals of charges. It returns at least one
// part.
func splitCharges(args []string, totals bool) [][]string {
	parts := [][]string{nil}
	for _, arg := range args {
		last := len(parts) - 1
		if arg == nextCharge && (totals || len(parts[last]) > 0) {
			parts = append(parts, nil)
			continue
		}
		parts[last] = append(parts[last], arg)
	}
	return parts
}

// parseCharges reads ENTITY RESOURCE [NAME=N...] for each charge.
func parseCharges(args []string) (*weir.Request, error) {
	var errs []error
	parts := splitCharges(args, false)
	charges := make([]weir.Charge, len(parts))
	for i, part := range parts {
		at := ""
		if len(parts) > 1 {
			at = fmt.Sprintf("charges[%d].", i)
		}
		if len(part) < 2 || isAmount(part[1]) {
			errs = append(errs, argumentError(at+"resource", strings.Join(part, " "),
				"must be ENTITY RESOURCE [NAME=N...]"))
			continue
		}
		costs, err := parseAmounts(at+"costs", part[2:])
		charges[i] = weir.Charge{Entity: part[0], Resource: part[1], Costs: costs}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if one := charges[0]; len(charges) == 1 {
		return &weir.Request{Entity: one.Entity, Resource: one.Resource, Costs: one.Costs}, nil
	}
	return &weir.Request{Charges: charges}, nil
}

// isAmount reports whether an argument in the place of a resource is the NAME=N that should follow
// it. Other resources may contain '='.
func isAmount(arg string) bool {
	limit, digits, ok := strings.Cut(arg, "=")
	return ok && identifier.CheckLimit(limit) == "" && text.IsDigits(digits)
}

// parseTotals reads the totals or actuals of a settlement: one set for all charges, or one for each
// of them. The field is their name on the wire. It returns nil if there are no arguments.
func parseTotals(field string, args []string) ([]weir.Costs, error) {
	if len(args) == 0 {
		return nil, nil
	}
	var errs []error
	parts := splitCharges(args, true)
	totals := make([]weir.Costs, len(parts))
	for i, part := range parts {
		at := field
		if len(parts) > 1 {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		costs, err := parseAmounts(at, part)
		totals[i] = costs
		errs = append(errs, err)
	}
	return totals, errors.Join(errs...)
}

// parseAmounts reads NAME=N arguments. It returns all mistakes, joined.
func parseAmounts(field string, args []string) (weir.Costs, error) {
	var errs []error
	costs := make(weir.Costs, len(args))
	for _, arg := range args {
		name, n, err := parseAmount(field, arg)
		if _, again := costs[name]; err == nil && again {
			err = argumentError(field+"."+name, arg, "is given twice")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		costs[name] = n
	}
	return costs, errors.Join(errs...)
}

// parseAmount reads NAME=N. The library checks the name. The entity and the resource of a full name
// may contain '='.
func parseAmount(field, arg string) (name string, n int64, err error) {
	limitAt := strings.LastIndexByte(arg, weir.NameSeparator) + 1
	limit, digits, ok := strings.Cut(arg[limitAt:], "=")
	if !ok || limit == "" {
		return "", 0, argumentError(field, arg, "must be NAME=N")
	}
	name = arg[:limitAt] + limit
	whole := digits != "" && strings.Trim(digits, "0123456789") == ""
	n, numErr := strconv.ParseInt(digits, 10, 64)
	switch {
	case numErr == nil && n < 0:
		err = argumentError(field+"."+name, digits, "must not be negative")
	case !whole:
		err = argumentError(field+"."+name, digits, "must be a whole number in decimal digits"+money.Hint(name, digits))
	case numErr != nil:
		err = argumentError(field+"."+name, digits, fmt.Sprintf("must be at most %d", int64(math.MaxInt64)))
	}
	if err != nil {
		return "", 0, err
	}
	return name, n, nil
}

// argumentError returns a mistake on the command line, in the form of the library's errors.
func argumentError(field, value, reason string) error {
	const most = 64 // as the library quotes
	value = strings.ToValidUTF8(value, "\uFFFD")
	if runes := []rune(value); len(runes) > most {
		value = string(runes[:most]) + "…"
	}
	return &weir.Error{Code: weir.Invalid, Field: field, Value: value, Reason: reason}
}

// parseLimits reads limits in the syntax of the command line. It returns all mistakes, joined.
func parseLimits(args []string) ([]weir.Limit, error) {
	var errs []error
	limits := make([]weir.Limit, 0, len(args))
	for _, arg := range args {
		l, err := manifest.ParseLimit(arg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		limits = append(limits, l)
	}
	return limits, errors.Join(errs...)
}
