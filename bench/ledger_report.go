package main

import (
	"fmt"
	"io"
	"time"
)

// ledgerNote says what is compared.
const ledgerNote = "A lease of a bucket, a window, a concurrency limit and a budget, which all callers share and " +
	"which are never used up; it is reserved and completed with less. The raw client makes the same calls with " +
	"the same events, copied from weir, and has nothing else to do."

// ledgerGoal is the least share of the raw client's leases a second that weir is to reach, in thousandths.
const ledgerGoal = 800

// of returns the median and range of a number of one side in all runs.
func (r *ledgerResult) of(side int, number func(*ledgerFigure) int64) extent {
	var all []int64
	for _, run := range r.runs {
		all = append(all, number(&run[side]))
	}
	return extentOf(all)
}

// ratio is that of weir's figure to the raw client's in each run, in thousandths.
func (r *ledgerResult) ratio(number func(*ledgerFigure) int64) extent {
	var all []int64
	for _, run := range r.runs {
		all = append(all, thousandths(number(&run[ledgerWeir]), number(&run[ledgerRaw])))
	}
	return extentOf(all)
}

// ledgerResult prints one comparison.
func (p *reporter) ledgerResult(r *ledgerResult) error {
	p.text.Reset()
	p.heading(r.contest.title+" ("+r.contest.name+")", fmt.Sprintf("%s %s of %s each, in turn.",
		ledgerNote, counted(r.setting.runs, "run"), r.setting.length))
	micro := func(ns int64) int64 { return ns / int64(time.Microsecond) } // thousandths of a millisecond
	half := func(f *ledgerFigure) int64 { return micro(f.half) }
	most := func(f *ledgerFigure) int64 { return micro(f.most) }
	var rows [][]string
	for i, label := range r.contest.labels {
		speed := r.of(i, (*ledgerFigure).speed)
		rows = append(rows, []string{
			label, grouped(speed.median), grouped(speed.least) + "–" + grouped(speed.most),
			decimal(r.of(i, half).median, 2), decimal(r.of(i, most).median, 2),
			grouped(r.of(i, func(f *ledgerFigure) int64 { return f.per(f.cpu) / 1_000_000 }).median),
			decimal(r.of(i, func(f *ledgerFigure) int64 { return f.per(f.sent.calls) }).median, 2),
			decimal(r.of(i, func(f *ledgerFigure) int64 { return f.per(f.sent.events) }).median, 2),
		})
	}
	p.table([]string{
		"", "leases/s", "range", "p50 ms", "p99 ms", "CPU µs per lease", "calls per lease", "events per lease",
	}, rows)
	rows = nil
	for _, x := range []struct {
		name   string
		number func(*ledgerFigure) int64
		ratio  ratio
	}{
		{"leases/s", (*ledgerFigure).speed, ratio{goal: ledgerGoal, least: true}},
		{"p50", half, ratio{}},
		{"p99", most, ratio{}},
	} {
		at := r.ratio(x.number)
		rows = append(rows, []string{
			x.name, decimal(at.median, 2), decimal(at.least, 2) + "–" + decimal(at.most, 2),
			x.ratio.bound(), x.ratio.verdict(at.median, at.median),
		})
	}
	p.table([]string{"weir : raw client", "median", "range", "goal", ""}, rows)
	_, err := io.WriteString(p.w, p.text.String())
	return err
}
