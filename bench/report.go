package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// reporter prints results as they come, for people or as Markdown.
type reporter struct {
	w        io.Writer
	markdown bool
	text     strings.Builder // of the result under way
}

// heading prints what the following is about.
func (p *reporter) heading(title, note string) {
	form := "\n%s\n%s\n"
	if p.markdown {
		form = "### %s\n\n%s\n\n"
	}
	fmt.Fprintf(&p.text, form, title, note)
}

// table prints rows of cells under their heads; all columns but the first are numbers.
func (p *reporter) table(heads []string, rows [][]string) {
	if p.markdown {
		fmt.Fprintf(&p.text, "| %s |\n|---|%s\n", strings.Join(heads, " | "),
			strings.Repeat("--:|", len(heads)-1))
		for _, row := range rows {
			fmt.Fprintf(&p.text, "| %s |\n", strings.Join(row, " | "))
		}
		p.text.WriteByte('\n')
		return
	}
	t := tabwriter.NewWriter(&p.text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heads}, rows...) {
		_, _ = t.Write([]byte("  " + strings.Join(row, "\t") + "\n")) // into memory
	}
	_ = t.Flush()
}

// result prints one item, or says why the writer did not take it.
func (p *reporter) result(r *result) error {
	p.text.Reset()
	p.heading(r.item.title+" ("+r.item.name+")", r.item.note)
	var rows [][]string
	for i, s := range r.item.sides {
		m := &r.totals[i]
		row := []string{
			s.label, decimal(m.picoseconds(), 1), decimal(m.cpuPicoseconds(), 1),
			decimal(m.perOp(m.Mallocs*1000), 2), grouped(m.perOp(m.Bytes)),
			grouped(m.Admitted), grouped(m.Denied),
		}
		if r.item.speeds {
			row = append(row, grouped(m.speed()))
		}
		if r.item.served {
			row = append(row, decimal(m.perOp(m.LoadCPU*1000), 1))
		}
		rows = append(rows, row)
	}
	heads := []string{"", "ns/op", "CPU ns/op", "allocs/op", "B/op", "admitted", "denied"}
	if r.item.speeds {
		heads = append(heads, "ops/s")
	}
	if r.item.served {
		heads = append(heads, "generator CPU ns/op")
	}
	p.table(heads, rows)
	p.ratios(r)
	_, err := io.WriteString(p.w, p.text.String())
	return err
}

// ratios prints how the sides compare.
func (p *reporter) ratios(r *result) {
	var rows [][]string
	for _, x := range r.item.ratios {
		at := spreadOf(r.ratios(x))
		over, under := &r.totals[x.over], &r.totals[x.under]
		total := thousandths(over.picoseconds(), under.picoseconds())
		rows = append(rows, []string{
			x.name(r.item.sides),
			decimal(at.median, 2), decimal(at.low, 2) + "–" + decimal(at.high, 2),
			decimal(total, 2),
			decimal(thousandths(over.cpuPicoseconds(), under.cpuPicoseconds()), 2),
			x.bound(), x.verdict(at.median, total),
		})
	}
	if len(rows) > 0 {
		p.table([]string{"ratio", "median", "quartiles", "of totals", "of CPU", "goal", ""}, rows)
	}
}

// bound spells out the goal.
func (x *ratio) bound() string {
	if x.goal == 0 {
		return ""
	}
	sign := "≤ "
	if x.least {
		sign = "≥ "
	}
	out := sign + decimal(x.goal, 1)
	if x.aim != 0 {
		out += " (aim " + decimal(x.aim, 1) + ")"
	}
	return out
}

// name says what is compared.
func (x *ratio) name(sides []side) string {
	if x.label != "" {
		return x.label
	}
	return sides[x.over].label + " : " + sides[x.under].label
}

// verdict says whether the ratio keeps the goal: in the median of the rounds, and with everything
// counted that fell into fewer than half of them.
func (x *ratio) verdict(median, total int64) string {
	kept := func(got int64) bool { return x.least && got >= x.goal || !x.least && got <= x.goal }
	switch {
	case x.goal == 0:
		return ""
	case kept(median) && kept(total):
		return "kept"
	case kept(median):
		return "kept in the median alone"
	}
	return "missed"
}

// decimal writes thousandths with so many places, rounded half up.
func decimal(n int64, places int) string {
	unit := int64(1)
	for range 3 - places {
		unit *= 10
	}
	n = (n + unit/2) / unit
	scale := int64(1000) / unit
	if scale == 1 {
		return grouped(n)
	}
	return fmt.Sprintf("%s.%0*d", grouped(n/scale), places, n%scale)
}

// grouped writes a whole number with commas.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
