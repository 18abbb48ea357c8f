package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// sideResults holds the replies of one side in all rounds, and their sum.
type sideResults struct {
	rounds []reply
	total  reply
}

// column is a column of the table of sides. The report leaves out a column whose cells are all
// empty.
type column struct {
	head string
	cell func(f *sideResults) string // empty if nothing is known
}

// totalColumns returns the columns for short slices: costs per operation over all rounds together.
func totalColumns() []column {
	perOp := func(head string, places int, of func(*reply) int64) column {
		return column{head, func(f *sideResults) string { return number(f.total.perOp(of(&f.total)), places) }}
	}
	return []column{
		perOp("ns/op", 1, func(r *reply) int64 { return r.NS }),
		perOp("CPU ns/op", 1, func(r *reply) int64 { return r.CPU }),
		perOp("allocs/op", 2, func(r *reply) int64 { return r.Mallocs }),
		perOp("B/op", 0, func(r *reply) int64 { return r.Bytes }),
		{"admitted", func(f *sideResults) string { return number(float64(f.total.Admitted), 0) }},
		{"denied", func(f *sideResults) string { return number(float64(f.total.Denied), 0) }},
		{"ops/s", func(f *sideResults) string { return number(f.total.speed(), 0) }},
		{"generator CPU ns/op", func(f *sideResults) string {
			return unless0(f.total.perOp(f.total.Other), 1)
		}},
	}
}

// storeColumns returns the columns for long rounds: medians of the rounds, and the counts with
// these names per operation.
func storeColumns(operation, server string, counts ...string) []column {
	const micro, milli = 1e3, 1e6
	speeds := func(f *sideResults) spread { return f.of((*reply).speed) }
	cpu := func(r *reply) float64 { return r.perOp(r.CPU) / micro }
	other := func(r *reply) float64 { return r.perOp(r.Other) / micro }
	halfIn := func(r *reply) float64 { return float64(r.P50) / milli }
	mostIn := func(r *reply) float64 { return float64(r.P99) / milli }
	out := []column{
		{operation + "s/s", func(f *sideResults) string { return number(speeds(f).median, 0) }},
		{"range", func(f *sideResults) string { return speeds(f).ends(0) }},
		{"p50 ms", func(f *sideResults) string { return unless0(f.of(halfIn).median, 2) }},
		{"p99 ms", func(f *sideResults) string { return unless0(f.of(mostIn).median, 2) }},
		{"CPU µs per " + operation, func(f *sideResults) string { return number(f.of(cpu).median, 0) }},
		{"of " + server, func(f *sideResults) string { return unless0(f.of(other).median, 0) }},
		{"admitted", func(f *sideResults) string { return number(float64(f.total.Admitted), 0) }},
	}
	for _, name := range counts {
		perOp := func(r *reply) float64 { return r.perOp(r.Counts[name]) }
		out = append(out, column{name + " per " + operation, func(f *sideResults) string {
			if f.total.Counts == nil {
				return ""
			}
			return number(f.of(perOp).median, 3)
		}})
	}
	return out
}

// of returns the spread of a number over the rounds.
func (f *sideResults) of(number func(*reply) float64) spread {
	var all []float64
	for i := range f.rounds {
		all = append(all, number(&f.rounds[i]))
	}
	return spreadOf(all)
}

// writeTo writes the result as text or as Markdown.
func (r *result) writeTo(w io.Writer, markdown bool) error {
	var text strings.Builder
	form := "\n%s (%s)\n%s\n"
	if markdown {
		form = "### %s (%s)\n\n%s\n\n"
	}
	fmt.Fprintf(&text, form, r.title, r.name, strings.TrimSpace(r.note+" "+r.store.rounds(r.settings)))
	table := printTable
	if markdown {
		table = printMarkdown
	}
	table(&text, r.sideRows())
	if len(r.ratios) > 0 {
		table(&text, r.ratioRows())
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// figures returns the results of each side.
func (r *result) figures() []sideResults {
	out := make([]sideResults, len(r.sides))
	for i := range out {
		for _, replies := range r.rounds {
			out[i].rounds = append(out[i].rounds, replies[i])
			out[i].total.add(&replies[i])
		}
	}
	return out
}

// sideRows returns the table of the sides, with its head.
func (r *result) sideRows() [][]string {
	all := r.figures()
	rows := [][]string{{""}}
	for _, s := range r.sides {
		rows = append(rows, []string{s.label})
	}
	for _, c := range r.store.columns {
		var cells []string
		for i := range all {
			cells = append(cells, c.cell(&all[i]))
		}
		if !slices.ContainsFunc(cells, func(s string) bool { return s != "" }) {
			continue
		}
		rows[0] = append(rows[0], c.head)
		for i, cell := range cells {
			rows[i+1] = append(rows[i+1], cell)
		}
	}
	return rows
}

// ratioRows returns the table of the ratios, with its head.
func (r *result) ratioRows() [][]string {
	all := r.figures()
	rows := [][]string{{"ratio", "median", "quartiles", "range", "of totals", "of CPU", "goal", ""}}
	for _, x := range r.ratios {
		var each []float64
		for _, replies := range r.rounds {
			each = append(each, x.of.of(&replies[x.over], &replies[x.under]))
		}
		at, over, under := spreadOf(each), &all[x.over].total, &all[x.under].total
		total := 0.0
		if x.of == cost || x.of == speed { // percentiles have no sum
			total = x.of.of(over, under)
		}
		name := r.sides[x.over].label + " : " + r.sides[x.under].label
		if x.of != cost {
			name = []string{speed: r.store.operation + "s/s", p50: "p50", p99: "p99"}[x.of] + ", " + name
		}
		rows = append(rows, []string{
			name, number(at.median, 2), number(at.low, 2) + "–" + number(at.high, 2), at.ends(2),
			unless0(total, 2), unless0(x.of.cpu(over, under), 2), x.bound(), x.result(at.median, total),
		})
	}
	return rows
}

// bound writes the goal.
func (x *ratio) bound() string {
	if x.goal == 0 {
		return ""
	}
	sign := "≤ "
	if x.of == speed {
		sign = "≥ "
	}
	out := sign + number(x.goal, 1)
	if x.aim != 0 {
		out += " (aim " + number(x.aim, 1) + ")"
	}
	return out
}

// result returns whether the goal is met, both in the median of the rounds and over their totals.
// The totals also count disturbances of fewer than half of the rounds.
func (x *ratio) result(median, total float64) string {
	kept := func(got float64) bool {
		if x.of == speed {
			return got >= x.goal
		}
		return got <= x.goal
	}
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

// printTable writes rows as text; the first row is the head.
func printTable(w *strings.Builder, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = t.Write([]byte("  " + strings.Join(row, "\t") + "\n")) // writing to memory never fails
	}
	_ = t.Flush()
}

// printMarkdown writes rows as Markdown; all columns but the first are numbers.
func printMarkdown(w *strings.Builder, rows [][]string) {
	for i, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|---|%s\n", strings.Repeat("--:|", len(row)-1))
		}
	}
	w.WriteByte('\n')
}

// spread is the range, the quartiles and the median of some numbers.
type spread struct{ least, low, median, high, most float64 }

// spreadOf returns the spread by nearest rank; zeros if there are no numbers.
func spreadOf(numbers []float64) spread {
	if len(numbers) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(numbers))
	rank := func(quarter int) float64 { return sorted[(len(sorted)*quarter+3)/4-1] }
	return spread{sorted[0], rank(1), rank(2), rank(3), rank(4)}
}

// ends writes the range with a number of decimal places.
func (s spread) ends(places int) string {
	return number(s.least, places) + "–" + number(s.most, places)
}

// number writes a number with commas and a number of decimal places.
func number(x float64, places int) string {
	s := strconv.FormatFloat(x, 'f', places, 64)
	end := len(s)
	if places > 0 {
		end -= places + 1
	}
	for i := end - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// unless0 writes a number like [number], and "" for 0.
func unless0(x float64, places int) string {
	if x == 0 {
		return ""
	}
	return number(x, places)
}

// counted writes a count with its noun.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(float64(n), 0) + " " + what
}
