package report

import (
	"bytes"
	"fmt"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// Result is what a replay came to, as it is printed in JSON, and what a page shows besides.
type Result struct {
	*replay.Report

	// Compare is absent where nothing was compared.
	Compare *replay.Comparison `json:"compare,omitempty"`
	// Suggest is absent where nothing was to be suggested.
	Suggest *Suggested `json:"suggest,omitempty"`

	// samples are those of the first and of the second replay; nil without a page.
	samples [2]*replaySamples
}

// NewResult makes an outcome that is still empty. For a page, samples are kept.
func NewResult(withPage bool) *Result {
	o := &Result{}
	if withPage {
		o.samples = [2]*replaySamples{newReplaySamples(), newReplaySamples()}
	}
	return o
}

// Watchers are told what the page wants to know of a replay.
func (o *Result) Watchers(number int) []replay.Watcher {
	if o.samples[number] == nil {
		return nil
	}
	return []replay.Watcher{o.samples[number]}
}

// Table prints the outcome for people.
func (o *Result) Table(b *bytes.Buffer, drawn *chart.TextOptions) {
	if o.Compare != nil {
		o.compared(b, drawn)
		return
	}
	(&reportPrinter{Report: o.Report, chart: drawn}).table(b)
	if o.Suggest != nil {
		o.Suggest.table(b)
	}
}

// Page makes the page; command is how to make it again.
func (o *Result) Page(command string) *chart.Page {
	p := &replayPage{compare: o.Compare}
	p.add("", o.Report, o.samples[0])
	first := p.sides[0]
	out := &chart.Page{
		Title:    "Replay of " + first.Trace,
		Subtitle: fmt.Sprintf("%s against %s", text.Plural(first.Calls, "call", "calls"), first.against()),
		Facts:    facts(first.Report),
		Footer:   "Made by: " + command,
	}
	if o.Compare != nil {
		p.add(secondName, o.Compare.Second, o.samples[1])
		first.name = firstName
		out.Subtitle = fmt.Sprintf("%s against two limits files: %s is %s, %s is %s",
			text.Plural(first.Calls, "call", "calls"), firstName, first.LimitsFile,
			secondName, p.sides[1].LimitsFile)
		out.Facts, out.Tiles = comparedFacts(first.Report, o.Compare.Second), p.comparedTiles()
	} else {
		out.Tiles = first.tiles()
	}
	if first.Live != nil && first.Live.Stopped != "" {
		out.Facts = append(out.Facts, chart.Fact{Name: "stopped early", Value: first.Live.Stopped})
	}
	for _, s := range [][]chart.Section{
		p.differences(), {p.overTime(), p.limitsSection()}, o.Suggest.sections(), p.uses(), p.waits(),
		p.estimated(),
		{reading(first.Report, o.Compare != nil)},
	} {
		out.Sections = append(out.Sections, s...)
	}
	return out
}

// compared prints two replays beside each other.
func (o *Result) compared(b *bytes.Buffer, drawn *chart.TextOptions) {
	first, second := o.Report, o.Compare.Second
	writeFacts(b, comparedFacts(first, second))
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
