package manifest

import (
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// limitFields are the fields of a limit, in the order in which a file is written.
func limitFields() []string {
	return []string{
		"kind", "capacity", "refill_amount", "refill_period", "window", "timeout", "every", "zone",
		"enforce",
	}
}

// limitReader reads one limit.
type limitReader struct {
	*decoder
	path  string
	limit weir.Limit
	given map[string]*node
	done  []string // the fields whose mistakes are noted already
}

// limit reads one limit and notes its mistakes. What is wrong with a number or a text on its own is
// found here; what the kinds demand is the root package's to say.
func (d *decoder) limit(name, path string, n *node) weir.Limit {
	r := &limitReader{
		decoder: d, path: path, limit: weir.Limit{Name: name},
		given: make(map[string]*node, len(n.entries)), done: []string{"name"},
	}
	if !d.fields(n, path, limitFields(), r.set) {
		return weir.Limit{}
	}
	r.check(n)
	return r.limit
}

// set reads one field.
func (r *limitReader) set(field string, n *node) {
	r.given[field] = n
	switch field {
	case "kind":
		r.limit.Kind = weir.Kind(r.text(field, n))
		if r.limit.Kind == "" {
			r.limit.Kind = "?" // not the default: then no kind's rules are asked for
		}
	case "capacity":
		r.limit.Capacity = r.number(field, n, "a whole number")
	case "refill_amount":
		r.limit.RefillAmount = r.aboveZero(field, n, "a whole number")
	case "refill_period":
		r.limit.RefillPeriod = r.seconds(field, n)
	case "window":
		r.limit.Window = r.seconds(field, n)
	case "timeout":
		r.limit.Timeout = r.seconds(field, n)
	case "every":
		r.limit.Every = r.text(field, n)
	case "zone":
		r.limit.Zone = r.text(field, n)
	case "enforce":
		r.limit.Shadow = !r.boolean(n, r.path+".enforce")
	}
}

// check asks the root package for the mistakes that are left, and notes those of fields that the
// file has, and of fields that it must have.
func (r *limitReader) check(n *node) {
	err := r.limit.Validate()
	kindless := slices.ContainsFunc(faults(err), func(e *weir.Error) bool { return e.Field == "kind" })
	for _, e := range faults(err) {
		field, given := e.Field, r.given[e.Field]
		switch {
		case slices.Contains(r.done, field):
		case kindless && field != "kind" && field != "capacity":
			// What belongs to an unknown kind cannot be said.
		case given != nil:
			r.found.add(given.at, r.path+"."+field, given.source(), e.Reason)
		case field == "capacity" || field == "window" || field == "timeout" || field == "every":
			r.found.add(n.at, r.path+"."+field, "", "is missing")
		}
	}
}

// wrong notes a mistake in a field that was given.
func (r *limitReader) wrong(field string, n *node, reason string) {
	r.done = append(r.done, field)
	r.found.add(n.at, r.path+"."+field, n.source(), reason)
}

func (r *limitReader) text(field string, n *node) string {
	if n.kind != scalarNode {
		r.wrong(field, n, "must be text, not "+n.kindName())
		return ""
	}
	if n.text == "" {
		r.wrong(field, n, "must not be empty")
	}
	return n.text
}

func (r *limitReader) number(field string, n *node, what string) int64 {
	v, reason := n.integer()
	if reason != "" {
		r.wrong(field, n, "must be "+what+", "+reason)
	}
	return v
}

// aboveZero reads a number that has a default: an explicit zero does not mean the default.
func (r *limitReader) aboveZero(field string, n *node, what string) int64 {
	v := r.number(field, n, what)
	if v <= 0 && !slices.Contains(r.done, field) {
		r.wrong(field, n, "must be above zero")
	}
	return v
}

// seconds reads a duration. What no duration can hold becomes the longest one, which is refused.
func (r *limitReader) seconds(field string, n *node) time.Duration {
	v := r.aboveZero(field, n, "whole seconds")
	return time.Duration(min(max(v, 0), math.MaxInt64/int64(time.Second))) * time.Second
}
