package cli

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// compared prints two replays beside each other.
func (o *replayOutcome) compared(b *bytes.Buffer, drawn *chart.TextOptions) {
	first, second := o.Report, o.Compare.Second
	head := text.Table{}
	for _, f := range comparedFacts(first, second) {
		head.Add(f.Name, f.Value)
	}
	head.Write(b)
	b.WriteString("\n")
	rows, shadow := limitsRows(o.Compare.Limits, first.Resource == "")
	writeRows(b, limitsHeads(first.Resource == "", false), rows)
	if shadow {
		b.WriteString("\n* a shadow limit denies nothing: DENIED is what it would have denied\n")
	}
	if l := first.Timeline; l != nil && len(l.Intervals) > 1 {
		b.WriteString("\n")
		_ = chart.WriteText(b, callsComparison(first, second), drawn) // a buffer takes everything
	}
	b.WriteString("\n")
	writeRows(b, totalsHeads(), totalsRows(first, second, &o.Compare.Change))
	b.WriteString("\n")
	writeRows(b, callsHeads(), callsRows(&o.Compare.Calls))
	operations := first.Speed.Operations + second.Speed.Operations
	fmt.Fprintf(b, "\nreplayed in %s, against both: %s operations\n",
		wallText(first.Speed.WallMS+second.Speed.WallMS), text.FormatInt(operations))
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
