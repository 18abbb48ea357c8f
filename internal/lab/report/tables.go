package report

import (
	"math/big"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// limitsTable returns the table of the attempts that each limit admitted and denied, and whether
// there is a shadow limit in it. On a page each head must make sense without those before it.
func (o *Result) limitsTable(page bool) (t *text.Table, shadow bool) {
	t = &text.Table{Heads: []string{"ENTITY", "RESOURCE", "LIMIT", "KIND"}}
	if o.Compare == nil {
		shadow = o.addLimits(t)
	} else {
		shadow = o.addComparedLimits(t, page)
	}
	if o.Resource != "" { // all rows have the same unit
		t.Heads = slices.Delete(t.Heads, 1, 2)
		for i, row := range t.Rows {
			t.Rows[i] = slices.Delete(row, 1, 2)
		}
	}
	return t, shadow
}

// addLimits adds the limits of one run to the table.
func (o *Result) addLimits(t *text.Table) (shadow bool) {
	t.Heads = append(t.Heads,
		">ADMITTED", ">DENIED", ">SOLE CAUSE", ">USED", ">AVAILABLE", "UNIT", ">USED %")
	for _, l := range o.Limits {
		name := l.Limit
		if l.Shadow {
			shadow = true
			name += " *"
		}
		t.Add(replay.RowEntity(l), rowResource(l.Resource), name, string(l.Kind),
			text.FormatInt(l.Admitted), text.FormatInt(l.Denied), text.FormatInt(l.DeniedOnly),
			text.FormatBig(l.Used), text.FormatBig(l.Available), strings.ReplaceAll(l.Unit, "_", "-"),
			orMissing(string(l.UsedPercent)))
	}
	return shadow
}

// addComparedLimits adds the limits of two runs to the table, side by side.
func (o *Result) addComparedLimits(t *text.Table, page bool) (shadow bool) {
	t.Heads = append(t.Heads,
		">ADMITTED A", ">B", ">CHANGE", ">DENIED A", ">B", ">CHANGE", ">USED % A", ">B")
	if page {
		t.Heads[5], t.Heads[8], t.Heads[11] = ">ADMITTED B", ">DENIED B", ">USED % B"
	}
	for _, l := range o.Compare.Limits {
		a, b := l.First, l.Second
		shadow = shadow || a != nil && a.Shadow || b != nil && b.Shadow
		cells := []string{replay.RowEntity(eitherRow(l)), rowResource(l.Resource), l.Limit, kindsText(a, b)}
		cells = append(cells, comparedCounts(a, b, func(r *replay.LimitReport) int64 { return r.Admitted })...)
		cells = append(cells, comparedCounts(a, b, func(r *replay.LimitReport) int64 { return r.Denied })...)
		for _, r := range []*replay.LimitReport{a, b} {
			if r == nil {
				r = &replay.LimitReport{}
			}
			cells = append(cells, orMissing(string(r.UsedPercent)))
		}
		t.Add(cells...)
	}
	return shadow
}

// comparedCounts returns the cells of a count in both runs and of the difference. Either of a and b
// may be nil.
func comparedCounts(a, b *replay.LimitReport, count func(*replay.LimitReport) int64) []string {
	cells := []string{missing, missing, ""}
	if a != nil {
		cells[0] = text.FormatInt(count(a))
	}
	if b != nil {
		cells[1] = text.FormatInt(count(b))
	}
	if a != nil && b != nil {
		cells[2] = text.FormatDifference(count(b) - count(a))
	}
	return cells
}

// missing stands for a figure that does not exist.
const missing = "-"

func orMissing(figure string) string {
	if figure == "" {
		return missing
	}
	return figure
}

// rowResource returns the name of a row's resources.
func rowResource(name string) string {
	if name == "" {
		return "all"
	}
	return name
}

// eitherRow returns the row of a limit in the first report, or else in the second.
func eitherRow(l *replay.LimitCompared) *replay.LimitReport {
	if l.First != nil {
		return l.First
	}
	return l.Second
}

// kindsText returns the kind of a limit, or the kinds if two files differ. A star marks a shadow
// limit.
func kindsText(x, y *replay.LimitReport) string {
	kind := func(r *replay.LimitReport) string {
		switch {
		case r == nil:
			return ""
		case r.Shadow:
			return string(r.Kind) + " *"
		}
		return string(r.Kind)
	}
	a, b := kind(x), kind(y)
	switch {
	case a == b:
		return a
	case a == "":
		return b + ", only B"
	case b == "":
		return a + ", only A"
	}
	return a + ", B: " + b
}

// totalsTable returns the totals of two runs, and their differences.
func totalsTable(a, b *replay.Report) *text.Table {
	t := &text.Table{Heads: []string{"", ">A", ">B", ">CHANGE"}}
	count := func(name string, a, b int64) {
		t.Add(name, text.FormatInt(a), text.FormatInt(b), text.FormatDifference(b-a))
	}
	sum := func(name string, a, b *big.Int) {
		t.Add(name, text.FormatBig(a), text.FormatBig(b), text.FormatBigDifference(new(big.Int).Sub(b, a)))
	}
	wait := func(name string, a, b *int64) { // milliseconds; nil if there were none
		row := []string{name, missing, missing, ""}
		for i, ms := range []*int64{a, b} {
			if ms != nil {
				row[i+1] = text.FormatMS(*ms)
			}
		}
		if a != nil && b != nil {
			row[3] = text.FormatMS(*b - *a)
			if *b > *a {
				row[3] = "+" + row[3]
			}
		}
		t.Add(row...)
	}
	x, y := &a.Totals, &b.Totals
	count("calls", x.Calls, y.Calls)
	count("admitted", x.Admitted, y.Admitted)
	t.Add("admitted %", string(x.AdmittedPercent), string(y.AdmittedPercent), "")
	count("denied", x.Denied, y.Denied)
	t.Add("denied %", string(x.DeniedPercent), string(y.DeniedPercent), "")
	count("errors", x.Errors, y.Errors)
	sum("tokens admitted", x.TokensAdmitted, y.TokensAdmitted)
	sum("tokens denied", x.TokensDenied, y.TokensDenied)
	if x.RetryAfterP50MS != nil || y.RetryAfterP50MS != nil {
		wait("retry after, half within", x.RetryAfterP50MS, y.RetryAfterP50MS)
		wait("retry after, 95 % within", x.RetryAfterP95MS, y.RetryAfterP95MS)
	}
	if x, y := a.Retry, b.Retry; x != nil && y != nil {
		count("attempts", x.Attempts, y.Attempts)
		count("gave up", x.GivenUp, y.GivenUp)
		wait("wait until admitted, half within", &x.WaitMS.P50, &y.WaitMS.P50)
		wait("wait until admitted, 95 % within", &x.WaitMS.P95, &y.WaitMS.P95)
	}
	if x, y := a.Estimates, b.Estimates; x != nil && y != nil {
		count("calls within their estimate", x.Covered, y.Covered)
		count("overruns", x.Overruns, y.Overruns)
		sum("tokens reserved and not used", x.TokensOver, y.TokensOver)
		sum("tokens not reserved", x.TokensUnder, y.TokensUnder)
	}
	return t
}

// callsTable returns the numbers of calls that both, one or none of two limits files admitted.
func callsTable(c *replay.CallsCompared) *text.Table {
	t := &text.Table{Heads: []string{"ADMITTED BY", ">CALLS", ">%", ">TOKENS"}}
	add := func(name string, n *replay.CallCount) {
		t.Add(name, text.FormatInt(n.Calls), string(n.Percent), text.FormatBig(n.Tokens))
	}
	add("both", &c.Both)
	add("only A", &c.OnlyFirst)
	add("only B", &c.OnlySecond)
	add("neither", &c.Neither)
	return t
}

// estimatesTable returns the scores of the callers, if there are several and not too many, and that
// of all calls.
func estimatesTable(r *replay.Report) *text.Table {
	e := r.Estimates
	t := &text.Table{Heads: []string{
		"ESTIMATE OF", ">CALLS", ">WITHIN", ">%", ">OVERRUNS",
		">TOKENS USED", ">NOT USED", ">%", ">NOT RESERVED",
	}}
	add := func(name string, s *replay.EstimateScore) {
		t.Add(name, text.FormatInt(s.Calls), text.FormatInt(s.Covered), string(s.CoveredPercent),
			text.FormatInt(s.Overruns), text.FormatBig(s.TokensUsed), text.FormatBig(s.TokensOver),
			orMissing(string(s.OverPercent)), text.FormatBig(s.TokensUnder))
	}
	if e.CallersTotal > 1 {
		for i := range e.Callers {
			c := &e.Callers[i]
			name := c.Entity
			if r.Resource == "" {
				name += " on " + c.Model
			}
			add(name, &c.EstimateScore)
		}
	}
	add("all calls", &e.EstimateScore)
	return t
}
