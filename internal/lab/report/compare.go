package report

import (
	"bytes"
	"maps"
	"math/big"
	"strings"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// The names of the two limits files that are compared.
const (
	firstName  = "A"
	secondName = "B"
)

// missing stands where a limits file lacks what the other has.
const missing = "-"

// totalsHeads are the heads of the totals of two replays.
func totalsHeads() []string {
	return []string{"", ">" + firstName, ">" + secondName, ">CHANGE"}
}

// totalsRows are the totals of two replays, with their differences.
func totalsRows(a, b *replay.Report, c *replay.Difference) [][]string {
	x, y := &a.Totals, &b.Totals
	rows := [][]string{
		countRow("calls", x.Calls, y.Calls),
		countRow("admitted", x.Admitted, y.Admitted),
		{"admitted %", string(x.AdmittedPercent), string(y.AdmittedPercent), ""},
		countRow("denied", x.Denied, y.Denied),
		{"denied %", string(x.DeniedPercent), string(y.DeniedPercent), ""},
		countRow("errors", x.Errors, y.Errors),
		sumRow("tokens admitted", x.TokensAdmitted, y.TokensAdmitted, c.TokensAdmitted),
		sumRow("tokens denied", x.TokensDenied, y.TokensDenied, c.TokensDenied),
	}
	if x.RetryAfterP50MS != nil || y.RetryAfterP50MS != nil {
		rows = append(rows,
			waitRow("retry after, half within", x.RetryAfterP50MS, y.RetryAfterP50MS, c.RetryAfterP50MS),
			waitRow("retry after, 95 % within", x.RetryAfterP95MS, y.RetryAfterP95MS, c.RetryAfterP95MS))
	}
	if p, q := a.Retry, b.Retry; p != nil && q != nil {
		rows = append(rows,
			countRow("attempts", p.Attempts, q.Attempts), countRow("gave up", p.GivenUp, q.GivenUp),
			waitRow("wait until admitted, half within", &p.WaitMS.P50, &q.WaitMS.P50, &c.Retry.WaitP50MS),
			waitRow("wait until admitted, 95 % within", &p.WaitMS.P95, &q.WaitMS.P95, &c.Retry.WaitP95MS))
	}
	if p, q := a.Estimates, b.Estimates; p != nil && q != nil {
		rows = append(rows,
			countRow("calls within their estimate", p.Covered, q.Covered),
			countRow("overruns", p.Overruns, q.Overruns),
			sumRow("tokens reserved in vain", p.TokensOver, q.TokensOver, c.Estimates.TokensOver),
			sumRow("tokens not reserved", p.TokensUnder, q.TokensUnder, c.Estimates.TokensUnder))
	}
	return rows
}

func countRow(name string, a, b int64) []string {
	return []string{name, text.FormatInt(a), text.FormatInt(b), text.FormatDifference(b - a)}
}

func sumRow(name string, a, b, change *big.Int) []string {
	return []string{name, text.FormatBig(a), text.FormatBig(b), text.FormatBigDifference(change)}
}

// waitRow compares durations in milliseconds, each of which may be missing.
func waitRow(name string, a, b, change *int64) []string {
	cell := func(ms *int64) string {
		if ms == nil {
			return missing
		}
		return text.FormatMS(*ms)
	}
	row := []string{name, cell(a), cell(b), ""}
	if change != nil {
		row[3] = text.FormatMS(*change)
		if *change > 0 {
			row[3] = "+" + row[3]
		}
	}
	return row
}

// callsHeads are the heads of what became of each call.
func callsHeads() []string {
	return []string{"ADMITTED BY", ">CALLS", ">%", ">TOKENS"}
}

// callsRows say how many calls both, one or none of two limits files admitted.
func callsRows(c *replay.CallsCompared) [][]string {
	row := func(name string, n *replay.CallCount) []string {
		return []string{name, text.FormatInt(n.Calls), string(n.Percent), text.FormatBig(n.Tokens)}
	}
	return [][]string{
		row("both", &c.Both), row("only "+firstName, &c.OnlyFirst),
		row("only "+secondName, &c.OnlySecond), row("neither", &c.Neither),
	}
}

// limitsHeads are the heads of the limits of two files; withResource where they belong to several.
// Long ones can be read without those before them.
func limitsHeads(withResource, long bool) []string {
	heads := []string{"ENTITY"}
	if withResource {
		heads = append(heads, "RESOURCE")
	}
	heads = append(heads, "LIMIT", "KIND")
	for _, what := range []string{"ADMITTED", "DENIED", "USED %"} {
		second := secondName
		if long {
			second = what + " " + secondName
		}
		heads = append(heads, ">"+what+" "+firstName, ">"+second)
		if what != "USED %" {
			heads = append(heads, ">CHANGE")
		}
	}
	return heads
}

// limitsRows put the limits of two files beside each other.
func limitsRows(limits []*replay.LimitCompared, withResource bool) (rows [][]string, shadow bool) {
	for _, l := range limits {
		row := []string{replay.RowEntity(eitherRow(l))}
		if withResource {
			row = append(row, rowResource(l.Resource))
		}
		row = append(row, l.Limit, kindsText(l))
		row = append(row, countCells(l, func(r *replay.LimitReport) int64 { return r.Admitted })...)
		row = append(row, countCells(l, func(r *replay.LimitReport) int64 { return r.Denied })...)
		rows = append(rows, append(row, usedCell(l.First), usedCell(l.Second)))
		for _, r := range []*replay.LimitReport{l.First, l.Second} {
			shadow = shadow || r != nil && r.Shadow
		}
	}
	return rows, shadow
}

// eitherRow returns the row of a limit in the first file, or that in the second if only it has one.
func eitherRow(l *replay.LimitCompared) *replay.LimitReport {
	if l.First != nil {
		return l.First
	}
	return l.Second
}

// kindsText is how a limit limits, in both files where they differ.
func kindsText(l *replay.LimitCompared) string {
	cell := func(r *replay.LimitReport) string {
		switch {
		case r == nil:
			return ""
		case r.Shadow:
			return string(r.Kind) + " *"
		}
		return string(r.Kind)
	}
	a, b := cell(l.First), cell(l.Second)
	switch {
	case a == b:
		return a
	case a == "":
		return b + ", only " + secondName
	case b == "":
		return a + ", only " + firstName
	}
	return a + ", " + secondName + ": " + b
}

// countCells are a count of both rows, and the difference where both are there.
func countCells(l *replay.LimitCompared, count func(*replay.LimitReport) int64) []string {
	cells := []string{missing, missing, ""}
	if l.First != nil {
		cells[0] = text.FormatInt(count(l.First))
	}
	if l.Second != nil {
		cells[1] = text.FormatInt(count(l.Second))
	}
	if l.First != nil && l.Second != nil {
		cells[2] = text.FormatDifference(count(l.Second) - count(l.First))
	}
	return cells
}

func usedCell(r *replay.LimitReport) string {
	if r == nil || r.UsedPercent == "" {
		return missing
	}
	return string(r.UsedPercent)
}

func writeRows(b *bytes.Buffer, heads []string, rows [][]string) {
	t := text.Table{Heads: heads}
	for _, row := range rows {
		t.Add(row...)
	}
	t.Write(b)
}

// comparedFacts say what was replayed, and against which two files.
func comparedFacts(first, second *replay.Report) []chart.Fact {
	var out []chart.Fact
	for _, f := range facts(first) {
		if f.Name != "limits" {
			if f.Name == "costs" { // one file may have limits that the other lacks
				f.Value = text.FormatMap(allCosts(first, second), strings.Clone)
			}
			out = append(out, f)
			continue
		}
		out = append(out, chart.Fact{Name: "limits " + firstName, Value: first.LimitsFile},
			chart.Fact{Name: "limits " + secondName, Value: second.LimitsFile})
	}
	return out
}

func allCosts(first, second *replay.Report) map[string]string {
	all := map[string]string{}
	for _, r := range []*replay.Report{first, second} {
		maps.Copy(all, r.Costs)
	}
	return all
}

// callsComparison draws what became of the calls when they came, the first file's above the
// second's.
func callsComparison(first, second *replay.Report) *chart.Comparison {
	a, b := replay.AlignTimelines(first.Timeline, second.Timeline)
	sides := [2][]chart.Series{arrivals(a, first), arrivals(b, second)}
	for i := range sides { // both must have the same series
		if len(sides[i]) < len(sides[1-i]) {
			sides[i] = append(sides[i], chart.Series{Name: "errors"})
		}
	}
	return &chart.Comparison{
		Title: "calls when they came", Times: chartTimes(a),
		Above: chart.ComparisonSide{Name: firstName, Series: sides[0]},
		Below: chart.ComparisonSide{Name: secondName, Series: sides[1]},
	}
}

// arrivals are the calls of a timeline, by what became of them when they came. Where they come
// back, the timeline does not tell the errors of those that came from the errors of those that came
// back.
func arrivals(l *replay.Timeline, r *replay.Report) []chart.Series {
	name := "admitted"
	split := r.Totals.Errors > 0 && r.Retry == nil
	if r.Totals.Errors > 0 && r.Retry != nil {
		name = "not denied"
	}
	var admitted, denied, errors []int64
	for i := range l.Intervals {
		n := &l.Intervals[i]
		went := n.Arrived - n.Denied
		if split {
			went -= n.Errors
			errors = append(errors, n.Errors)
		}
		admitted, denied = append(admitted, went), append(denied, n.Denied)
	}
	series := []chart.Series{
		{Name: name, Tone: chart.Good, Values: admitted},
		{Name: "denied", Tone: chart.Bad, Values: denied},
	}
	if split {
		series = append(series, chart.Series{Name: "errors", Values: errors})
	}
	return series
}
