package main

import (
	"fmt"
	"io"
	"slices"
)

// extent is the median of some numbers and how far they reach.
type extent struct{ least, median, most int64 }

func extentOf(numbers []int64) extent {
	if len(numbers) == 0 {
		return extent{}
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return extent{sorted[0], sorted[len(sorted)/2], sorted[len(sorted)-1]}
}

// of returns the median and range of a number of one figure in all runs.
func (r *contestResult) of(figure int, number func(*contestReply) int64) extent {
	var all []int64
	for _, run := range r.runs {
		all = append(all, number(&run[figure]))
	}
	return extentOf(all)
}

// ratios are those of two figures' speeds in each run, in thousandths.
func (r *contestResult) ratios(x *ratio) []int64 {
	var out []int64
	for _, run := range r.runs {
		out = append(out, thousandths(run[x.over].speed(), run[x.under].speed()))
	}
	return out
}

// perCall is a number divided by the calls, in thousandths.
func (r *contestReply) perCall(n int64) int64 { return n * 1000 / max(1, r.Admitted) }

// contestResult prints one contest.
func (p *reporter) contestResult(r *contestResult) error {
	p.text.Reset()
	p.heading(r.contest.title+" ("+r.contest.name+")", fmt.Sprintf("%s %s of %s each, after %s.",
		r.contest.note, counted(r.setting.runs, "run"), r.setting.length, counted(r.setting.warm, "call")))
	var rows [][]string
	for i, f := range r.contest.figures {
		speed := r.of(i, (*contestReply).speed)
		// Thousandths of a nanosecond for a call are nanoseconds for a thousand calls.
		cpu := r.of(i, func(c *contestReply) int64 { return c.perCall(c.CPU) / 1_000_000 })
		row := []string{
			f.label, grouped(speed.median), grouped(speed.least) + "–" + grouped(speed.most),
			decimal(cpu.median, 3), r.serverCPU(i),
		}
		if r.contest.players[f.world].name == contestPython {
			row = append(row, "", "", "")
		} else {
			for _, count := range []func(*contestReply) int64{
				func(c *contestReply) int64 { return c.perCall(c.Writes) },
				func(c *contestReply) int64 { return c.perCall(c.ParentWrites) },
				func(c *contestReply) int64 { return c.perCall(c.Reads) },
			} {
				row = append(row, decimal(r.of(i, count).median, 3))
			}
		}
		rows = append(rows, row)
	}
	p.table([]string{
		"", "calls/s", "range", "CPU s per 1,000 calls", "of DynamoDB Local",
		"writes per call", "of them to the parent", "reads per call",
	}, rows)
	rows = nil
	for _, x := range r.contest.ratios {
		at := extentOf(r.ratios(&x))
		over, under := r.contest.figures[x.over].label, r.contest.figures[x.under].label
		rows = append(rows, []string{
			over + " : " + under, decimal(at.median, 2),
			decimal(at.least, 2) + "–" + decimal(at.most, 2), x.bound(), x.verdict(at.median, at.median),
		})
	}
	if len(rows) > 0 {
		p.table([]string{"ratio of calls/s", "median", "range", "goal", ""}, rows)
	}
	_, err := io.WriteString(p.w, p.text.String())
	return err
}

// serverCPU is the processor time of DynamoDB Local for a thousand calls; empty where it is not known.
func (r *contestResult) serverCPU(figure int) string {
	var all []int64
	for i, run := range r.runs {
		all = append(all, run[figure].perCall(r.server[i][figure])/1_000_000)
	}
	at := extentOf(all)
	if at.most == 0 {
		return ""
	}
	return decimal(at.median, 3)
}
