package cli

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

type (
	usagePlotBody struct {
		Limit  string            `json:"limit"`
		Window weir.UsageWindow  `json:"window"`
		Starts []string          `json:"starts"`
		Series []usageSeriesBody `json:"series"`
		Gaps   []gapBody         `json:"gaps"`
	}
	// usageSeriesBody has the units of each window. It names the entity if the query does not.
	usageSeriesBody struct {
		Entity   string  `json:"entity,omitempty"`
		Resource string  `json:"resource,omitempty"`
		Units    []int64 `json:"units"`
	}
)

func plotUsageCommand(a *console.App) *cobra.Command {
	f := &usageFlags{}
	var svg string
	cmd := &cobra.Command{
		Use:   "plot [ENTITY]",
		Short: "Draw usage over time",
		Long: `Draw what an entity used over time of one limit, in a colour for each resource, or what all
entities used of a resource, in a colour for each entity. If there are too many, the smallest
are drawn together as "others". Windows in which usage may be missing are marked with "?" on the
axis.` + usageHelp,
		Example: `  weir usage plot acme --limit tpm --month 2026-10
  weir usage plot --resource gpt-4o --limit usd_micros --window monthly
  weir usage plot acme --limit tpm --month 2026-10 --svg october.svg`,
	}
	f.add(cmd)
	cmd.Flags().StringVar(&svg, "svg", "",
		"`FILE` to write the drawing to as SVG, or - for standard output")
	do := usagePlan(f, func(ctx context.Context, r httpapi.Records) (*connect.Answer, error) {
		p, err := plotUsage(ctx, r, f, time.Now())
		if err != nil {
			return nil, err
		}
		return p.answer(a, svg)
	})
	plan := func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if svg == standardOutput && cmd.Flags().Changed("output") {
			return nil, console.UsageError(cmd,
				"--svg - and --output cannot be combined: both write to standard output")
		}
		return do(cmd, args)
	}
	return connect.Command(a, cmd, connect.Reads, plan)
}

// standardOutput is the file name that stands for standard output.
const standardOutput = "-"

// usagePlot is the usage of one limit over time.
type usagePlot struct {
	flags *usageFlags
	limit string
	// starts are the starts of the windows, one after the other.
	starts []time.Time
	series []usageSeries
	gaps   []weir.UsageGap
	// none reports whether nothing was found.
	none bool
}

type usageSeries struct {
	entity, resource string
	units            []int64
	sum              int64
}

// plotUsage reads the usage of one limit, in a series for each resource, or for each entity if the
// query names none.
func plotUsage(
	ctx context.Context, r httpapi.Records, f *usageFlags, now time.Time,
) (*usagePlot, error) {
	found, err := readUsage(ctx, r, &f.q, maxPlotted)
	if err != nil {
		return nil, err
	}
	if found.more {
		return nil, weir.NewError(weir.Invalid, "window", string(f.q.Window),
			"has too many windows to draw: name a longer window, or a shorter time")
	}
	p := &usagePlot{flags: f, limit: f.q.Limit, gaps: found.gaps, none: len(found.usage) == 0}
	if limits := limitsOf(found.usage); p.limit == "" && len(limits) > 0 {
		if p.limit = limits[0]; len(limits) > 1 {
			return nil, weir.NewError(weir.Invalid, "limit", "",
				"must be given, and be one of "+strings.Join(limits, ", "))
		}
	}
	p.windows(found.usage, now)
	p.add(found.usage)
	return p, nil
}

// maxPlotted bounds the windows of a plot.
const maxPlotted = 100_000

// windows sets the windows from the query's bounds. If these are far apart, it takes only those
// from the first to the last that has usage.
func (p *usagePlot) windows(usage []weir.Usage, now time.Time) {
	q := &p.flags.q
	from, to := q.From, q.To
	if to.IsZero() {
		to = q.Window.End(now)
	}
	const usual = 800 * 24 * time.Hour
	if to.Sub(from) > usual && q.Window != weir.Monthly || to.Sub(from) > 30*usual {
		from, to = now, now
		for i := range usage {
			if i == 0 || usage[i].Start.Before(from) {
				from = usage[i].Start
			}
			if i == 0 || usage[i].End.After(to) {
				to = usage[i].End
			}
		}
	}
	at := q.Window.Start(from)
	if at.Before(from) {
		at = q.Window.End(from)
	}
	for ; at.Before(to) && len(p.starts) < maxPlotted; at = q.Window.End(at) {
		p.starts = append(p.starts, at)
	}
}

// add sorts the records into series, those with the most units first.
func (p *usagePlot) add(usage []weir.Usage) {
	index := make(map[string]int)
	for i := range usage {
		u := &usage[i]
		s := usageSeries{resource: u.Resource}
		if p.flags.q.Entity == "" {
			s = usageSeries{entity: u.Entity}
		}
		k, ok := index[s.name()]
		if !ok {
			k = len(p.series)
			index[s.name()] = k
			s.units = make([]int64, len(p.starts))
			p.series = append(p.series, s)
		}
		at, ok := slices.BinarySearchFunc(p.starts, u.Start, time.Time.Compare)
		if n := u.Units[p.limit]; ok {
			p.series[k].units[at] = plusUnits(p.series[k].units[at], n)
			p.series[k].sum = plusUnits(p.series[k].sum, n)
		}
	}
	slices.SortStableFunc(p.series, func(a, b usageSeries) int {
		return cmp.Or(cmp.Compare(b.sum, a.sum), strings.Compare(a.name(), b.name()))
	})
}

func (s *usageSeries) name() string { return s.entity + s.resource }

// plusUnits adds units. It stops at the largest and the smallest number.
func plusUnits(a, b int64) int64 {
	switch c := a + b; {
	case b > 0 && c < a:
		return math.MaxInt64
	case b < 0 && c > a:
		return math.MinInt64
	default:
		return c
	}
}

// columns returns the figure, with at most a number of series.
func (p *usagePlot) columns(most int) *chart.Columns {
	c := &chart.Columns{Title: p.title(), Unit: "units"}
	if len(p.starts) > 0 {
		c.Times.Start = p.starts[0]
	}
	switch p.flags.q.Window {
	case weir.Monthly:
		c.Times.Months = 1
	case weir.Daily:
		c.Times.Step = 24 * time.Hour
	default:
		c.Times.Step = time.Hour
	}
	for i := range p.series {
		s := &p.series[i]
		if i < most-1 || len(p.series) <= most {
			c.Series = append(c.Series, chart.Series{Name: s.name(), Values: s.units})
			continue
		}
		if i == most-1 {
			c.Series = append(c.Series, chart.Series{Name: "others", Values: make([]int64, len(p.starts))})
		}
		for k, n := range s.units {
			c.Series[most-1].Values[k] = plusUnits(c.Series[most-1].Values[k], n)
		}
	}
	for _, g := range p.gaps {
		c.Gaps = append(c.Gaps, p.gap(g))
	}
	return c
}

// gap returns the windows that a gap touches.
func (p *usagePlot) gap(g weir.UsageGap) chart.Gap {
	var out chart.Gap
	for i, start := range p.starts {
		end := p.flags.q.Window.End(start)
		if !g.From.IsZero() && !end.After(g.From) {
			out.From = i + 1
		}
		if start.Before(g.To) {
			out.To = i + 1
		}
	}
	return out
}

// title says whose usage of which limit it is.
func (p *usagePlot) title() string {
	q := &p.flags.q
	of := cmp.Or(q.Entity, q.Resource)
	if q.Entity != "" && q.Resource != "" {
		of += " on " + q.Resource
	}
	if p.limit == "" {
		return of
	}
	return of + ": " + p.limit
}

// The number of series that can be told apart on a terminal.
const textSeries = 4

// answer draws the plot on the terminal, or writes it to a file.
func (p *usagePlot) answer(a *console.App, svg string) (*connect.Answer, error) {
	body := &usagePlotBody{
		Limit: p.limit, Window: p.flags.q.Window, Starts: []string{}, Series: []usageSeriesBody{},
		Gaps: gapBodies(p.gaps),
	}
	for _, at := range p.starts {
		body.Starts = append(body.Starts, timeText(at))
	}
	for _, s := range p.series {
		body.Series = append(body.Series, usageSeriesBody{s.entity, s.resource, s.units})
	}
	notes := p.flags.notes(&usageRecords{gaps: p.gaps})
	answer := &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
		if p.none {
			b.WriteString("no usage is recorded\n")
		} else {
			_ = chart.WriteText(b, p.columns(textSeries), plotOptions(a)) // a buffer never fails
		}
		marked := slices.Clone(notes)
		for i := range p.gaps {
			marked[i] = "? " + marked[i]
		}
		writeNotes(b, marked)
	}}
	if svg == "" {
		return answer, nil
	}
	c := p.columns(chart.SVGSeries)
	if len(p.gaps) > 0 {
		c.Note = notes[0]
	}
	if svg == standardOutput {
		answer.Table = func(b *bytes.Buffer) { _ = chart.WriteSVG(b, c) } // a buffer never fails
		return answer, nil
	}
	answer.Table = func(b *bytes.Buffer) {
		word := windowWord(p.flags.q.Window)
		b.WriteString(text.Plural(len(p.starts), word, word+"s") + " in " + text.Printable(svg) + "\n")
		writeNotes(b, notes)
	}
	return answer, writeSVGFile(svg, c)
}

// writeSVGFile writes a figure to a file, completely or not at all.
func writeSVGFile(name string, c *chart.Columns) error {
	file, err := console.CreateAtomic("--svg", name)
	if err != nil {
		return err
	}
	defer file.Discard()
	if err := chart.WriteSVG(file, c); err != nil {
		return err
	}
	return file.Commit()
}

// plotColumns is the width of a plot without a terminal.
const plotColumns = 100

// plotOptions returns the abilities of standard output.
func plotOptions(a *console.App) *chart.TextOptions {
	o := &chart.TextOptions{Width: plotColumns, Height: 10, ASCII: !a.SpeaksUTF8()}
	if t := a.TerminalAt(a.Streams.Out); t != nil {
		columns, _ := t.Size()
		o.Width, o.Color = min(columns, 2*plotColumns), t.Style.Color
	}
	return o
}
