package manifest

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/money"
)

// limitFields returns the fields of a limit, in the order in which they are written.
func limitFields() []string {
	return []string{
		"kind", "capacity", "refill_amount", "refill_period", "window", "timeout", "every", "zone",
		"enforce",
	}
}

// limitReader decodes one limit.
type limitReader struct {
	*decoder
	path  string
	limit weir.Limit
	given map[string]*node
	done  []string // fields with a mistake that is recorded already
}

// limit decodes one limit and records its mistakes. A value that is wrong by itself is found here;
// [weir.Limit.Validate] finds what is wrong for the limit's kind.
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

// set decodes one field.
func (r *limitReader) set(field string, n *node) {
	r.given[field] = n
	switch field {
	case "kind":
		r.limit.Kind = weir.Kind(r.text(field, n))
		if r.limit.Kind == "" {
			r.limit.Kind = "?" // an unknown kind: empty would mean the default one
		}
	case "capacity":
		r.limit.Capacity = r.number(field, n, "a whole number", r.amountHint(n))
	case "refill_amount":
		r.limit.RefillAmount = r.aboveZero(field, n, "a whole number", r.amountHint(n))
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

// check validates the limit. Of the mistakes that are left, it records those in fields that the
// file has, and the fields that are missing.
func (r *limitReader) check(n *node) {
	err := r.limit.Validate()
	kindless := slices.ContainsFunc(faults(err), func(e *weir.Error) bool { return e.Field == "kind" })
	for _, e := range faults(err) {
		field, given := e.Field, r.given[e.Field]
		switch {
		case slices.Contains(r.done, field):
		case kindless && field != "kind" && field != "capacity":
			// The rules of other fields depend on the kind, which is unknown.
		case given != nil:
			r.found.add(given.at, r.path+"."+field, given.source(), e.Reason)
		case field == "capacity" || field == "window" || field == "timeout" || field == "every":
			r.found.add(n.at, r.path+"."+field, "", "is missing: "+expected(field))
		}
	}
}

// expected returns what a required field has, with its unit.
func expected(field string) string {
	switch field {
	case "window":
		return "a number of seconds, such as 3600"
	case "timeout":
		return "a number of seconds, such as 60"
	case "every":
		return "hour, day, week or month"
	}
	return "a whole number"
}

// wrong records a mistake in a field that is given.
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

// number decodes a whole number. If it is none, the hint is added to the mistake.
func (r *limitReader) number(field string, n *node, what, hint string) int64 {
	v, reason := n.integer()
	if reason != "" {
		r.wrong(field, n, "must be "+what+", "+reason+hint)
	}
	return v
}

// amountHint returns how to write an amount that is not a whole number, or "".
func (r *limitReader) amountHint(n *node) string { return money.Hint(r.limit.Name, n.source()) }

// aboveZero decodes a number that has a default. Zero is a mistake, because it would mean the
// default.
func (r *limitReader) aboveZero(field string, n *node, what, hint string) int64 {
	v := r.number(field, n, what, hint)
	if v <= 0 && !slices.Contains(r.done, field) {
		r.wrong(field, n, "must be above zero")
	}
	return v
}

// seconds decodes a duration. A number that a duration cannot hold becomes the longest duration,
// which is refused later.
func (r *limitReader) seconds(field string, n *node) time.Duration {
	v := r.aboveZero(field, n, "whole seconds", secondsHint(n.source()))
	return time.Duration(min(max(v, 0), math.MaxInt64/int64(time.Second))) * time.Second
}

// secondsHint returns how to write a duration with a unit, such as "1m", or "" for a number.
func secondsHint(text string) string {
	if strings.Trim(text, "0123456789._-+") == "" {
		return ""
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 && d%time.Second == 0 {
		return "; write " + strconv.FormatInt(int64(d/time.Second), 10) + " for " + text
	}
	return "; write 60 for a minute"
}
