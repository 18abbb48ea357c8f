package loadtest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/joined"
	"github.com/weir-limiter/weir/internal/text"
)

// Bounds of a template.
const (
	maxWeight = 1_000_000
	maxName   = 999_999_999
	maxCosts  = 32 // as many as a request may have
)

// Template is a kind of request: the entity, the resource and the costs.
type Template struct {
	// Weight is the frequency of the template, relative to the others of a mix; at least 1.
	Weight   int64
	Entity   Names
	Resource string
	Costs    []Amount
}

// Names are one name, or numbered names that are equally likely.
type Names struct {
	prefix, suffix string
	first, last    int64
	numbered       bool
}

// Amount is the units asked of a limit, drawn evenly from a range.
type Amount struct {
	Limit       string
	Least, Most int64
}

// ParseTemplate reads "[Nx] ENTITY RESOURCE [NAME=N|NAME=A..B]...", such as
// "3x tenant-{1..100} gpt-4o rpm=1 tpm=500..4000". All mistakes are returned, joined; each is a
// [weir.Error] with code [weir.Invalid]. It does not check that the names exist.
func ParseTemplate(text string) (*Template, error) {
	fields := strings.Fields(text)
	t := &Template{Weight: 1}
	var errs []error
	if len(fields) > 0 && isWeight(fields[0]) {
		n, err := strconv.ParseInt(strings.TrimSuffix(fields[0], "x"), 10, 64)
		if err != nil || n < 1 || n > maxWeight {
			errs = append(errs, invalid("weight", fields[0], fmt.Sprintf("must be from 1x to %dx", maxWeight)))
		}
		t.Weight, fields = n, fields[1:]
	}
	if len(fields) < 2 || strings.Contains(fields[1], "=") {
		return nil, errors.Join(append(errs,
			invalid("request", text, "must be [Nx] ENTITY RESOURCE [NAME=N...]"))...)
	}
	var err error
	if t.Entity, err = parseNames(fields[0]); err != nil {
		errs = append(errs, err)
	}
	t.Resource = fields[1]
	if n := len(fields) - 2; n > maxCosts {
		return nil, errors.Join(append(errs,
			invalid("costs", n, fmt.Sprintf("a request has at most %d", maxCosts)))...)
	}
	seen := map[string]bool{}
	for _, field := range fields[2:] {
		a, err := parseAmount(field)
		if err == nil && seen[a.Limit] {
			err = invalid("costs."+clip.Text(a.Limit), field, "is given twice")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		seen[a.Limit] = true
		t.Costs = append(t.Costs, a)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// isWeight reports whether a word is a weight and not an entity. An entity that looks like a weight
// must follow one.
func isWeight(field string) bool {
	digits, ok := strings.CutSuffix(field, "x")
	return ok && text.IsDigits(digits)
}

// parseNames reads a name with at most one {A..B} in it. Identifiers cannot contain braces.
func parseNames(s string) (Names, error) {
	prefix, rest, opened := strings.Cut(s, "{")
	if !opened {
		return Names{prefix: s}, nil
	}
	inner, suffix, closed := strings.Cut(rest, "}")
	if !closed || !strings.Contains(inner, "..") || strings.ContainsAny(suffix, "{}") {
		inner = "" // parseRange refuses it
	}
	first, last, reason := parseRange(inner, maxName,
		"must have at most one range, like tenant-{1..100}", "must end at %d or before")
	if reason != "" {
		return Names{}, invalid("entity", s, reason)
	}
	return Names{prefix, suffix, first, last, true}, nil
}

// parseAmount reads NAME=N or NAME=A..B.
func parseAmount(s string) (Amount, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return Amount{}, invalid("costs", s, "must be NAME=N or NAME=A..B")
	}
	least, most, reason := parseRange(value, math.MaxInt64,
		"must be a whole number in decimal digits, or two like 500..4000", "must be at most %d")
	if reason != "" {
		return Amount{}, invalid("costs."+clip.Text(name), value, reason)
	}
	return Amount{name, least, most}, nil
}

// parseRange reads A..B, or one number for both, or returns the reason to refuse it.
func parseRange(s string, bound int64, form, tooLarge string) (least, most int64, reason string) {
	low, high, ranged := strings.Cut(s, "..")
	if !ranged {
		high = low
	}
	if !text.IsDigits(low) || !text.IsDigits(high) {
		return 0, 0, form
	}
	least, err1 := strconv.ParseInt(low, 10, 64)
	most, err2 := strconv.ParseInt(high, 10, 64)
	switch {
	case err1 != nil || err2 != nil || most > bound:
		return 0, 0, fmt.Sprintf(tooLarge, bound)
	case least > most:
		return 0, 0, "must not end before it begins"
	}
	return least, most, ""
}

// String returns the template as [ParseTemplate] reads it.
func (t *Template) String() string {
	var b strings.Builder
	if t.Weight != 1 || isWeight(t.Entity.String()) {
		fmt.Fprintf(&b, "%dx ", t.Weight)
	}
	b.WriteString(t.Entity.String() + " " + t.Resource)
	for _, a := range t.Costs {
		b.WriteString(" " + a.Limit + "=" + a.text())
	}
	return b.String()
}

func (a Amount) text() string {
	if a.Least == a.Most {
		return strconv.FormatInt(a.Least, 10)
	}
	return fmt.Sprintf("%d..%d", a.Least, a.Most)
}

// String returns the names as a template has them.
func (n Names) String() string {
	if !n.numbered {
		return n.prefix
	}
	return fmt.Sprintf("%s{%d..%d}%s", n.prefix, n.first, n.last, n.suffix)
}

// name returns one of the names, counting from 0.
func (n Names) name(at int64) string {
	if !n.numbered {
		return n.prefix
	}
	return n.prefix + strconv.FormatInt(n.first+at, 10) + n.suffix
}

// count returns the number of names.
func (n Names) count() int64 { return n.last - n.first + 1 }

// maxTemplates bounds a mix.
const maxTemplates = 1000

// ParseMix reads a file with a template on each line, as [ParseTemplate] reads it. It skips empty
// lines, and the text after a #. It returns all mistakes, each with its file and line.
func ParseMix(name string, data []byte) ([]Template, error) {
	var mix []Template
	var errs []error
	line := 0
	for text := range strings.SplitSeq(string(data), "\n") {
		line++
		text, _, _ = strings.Cut(text, "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if len(mix) == maxTemplates {
			errs = append(errs, fmt.Errorf("%s:%d: is one request too many: a file has at most %d",
				name, line, maxTemplates))
			break
		}
		t, err := ParseTemplate(text)
		if err != nil {
			errs = append(errs, located(name, line, err)...)
			continue
		}
		mix = append(mix, *t)
	}
	if len(errs) == 0 && len(mix) == 0 {
		errs = append(errs, fmt.Errorf("%s: has no requests", name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return mix, nil
}

// located adds a place to each error joined in err.
func located(name string, line int, err error) []error {
	errs := joined.Errors(err)
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return errs
}

// DurationRange is a range from which durations are drawn, evenly. It is the value of a flag.
type DurationRange struct {
	Least, Most time.Duration
}

// Set reads a duration like 100ms, or two with two dots between them.
func (r *DurationRange) Set(s string) error {
	low, high, ranged := strings.Cut(s, "..")
	if !ranged {
		high = low
	}
	least, err1 := time.ParseDuration(low)
	most, err2 := time.ParseDuration(high)
	switch {
	case err1 != nil || err2 != nil:
		return errors.New("must be a duration like 100ms, or two like 50ms..150ms")
	case least < 0 || most < 0:
		return errors.New("must not be negative")
	case least > most:
		return errors.New("must not end before it begins")
	}
	*r = DurationRange{least, most}
	return nil
}

// String returns the flag's text.
func (r DurationRange) String() string {
	if r.Least == r.Most {
		return r.Least.String()
	}
	return r.Least.String() + ".." + r.Most.String()
}

// Type names the value in the help.
func (r *DurationRange) Type() string { return "DURATION[..DURATION]" }

func invalid(field string, value any, reason string) *weir.Error {
	return &weir.Error{Code: weir.Invalid, Field: field, Value: clip.Text(fmt.Sprint(value)), Reason: reason}
}
