package report

import (
	"strings"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// pageRows is how many limits a figure of bars has.
const pageRows = 40

// pageTable makes a table of a page from one for a terminal.
func pageTable(t *text.Table) *chart.Table {
	out := &chart.Table{Rows: t.Rows}
	for i := range t.Heads {
		head, right := t.Head(i)
		out.Columns = append(out.Columns, chart.Column{
			Name: pageHead(head), Number: right,
			Alarm: strings.HasPrefix(head, "DENIED") || head == "ONLY IT",
		})
	}
	return out
}

// pageHead writes a head without capitals but the first letter, and A and B, which are names.
func pageHead(head string) string {
	words := strings.Fields(head)
	for i, word := range words {
		if word == firstName || word == secondName {
			continue
		}
		words[i] = strings.ToLower(word)
		if i == 0 {
			words[i] = word[:1] + words[i][1:]
		}
	}
	return strings.Join(words, " ")
}

// limitsSection shows what each limit admitted and denied.
func (p *replayPage) limitsSection() chart.Section {
	s := chart.Section{Title: "Limits"}
	if p.compare != nil {
		rows, shadow := limitsRows(p.compare.Limits, p.sides[0].Resource == "")
		heads := limitsHeads(p.sides[0].Resource == "", true)
		s.Table = pageTable(&text.Table{Heads: heads, Rows: rows})
		if shadow {
			s.Table.Note = shadowNote + "."
		}
		if bars := p.denialsCompared(); bars != nil {
			s.Figures = []chart.Figure{bars}
		}
		return s
	}
	t, shadow := p.sides[0].limitsTable()
	s.Table = pageTable(t)
	if shadow {
		s.Table.Note = shadowNote + ", “only it” what nothing else denied."
	}
	if bars := p.sides[0].denials(); bars != nil {
		s.Figures = []chart.Figure{bars}
	}
	return s
}

const shadowNote = "* A shadow limit denies nothing: “denied” is what it would have denied"

// denials shows which limits denied, and which of them denied alone; nil where none did.
func (s *pageReplay) denials() *chart.Bars {
	b := &chart.Bars{
		Title: "Denials by limit", Unit: s.asked(),
		Note: "One denial counts on every limit that was exceeded. Limits that denied nothing are left out.",
	}
	var only, others []int64
	for _, l := range s.Limits {
		if l.Denied == 0 || len(b.Labels) == pageRows {
			continue
		}
		b.Labels = append(b.Labels, s.limitTitle(l))
		only, others = append(only, l.DeniedOnly), append(others, l.Denied-l.DeniedOnly)
	}
	b.Series = []chart.Series{
		{Name: "only this limit", Tone: chart.Bad, Values: only}, {Name: "others too", Values: others},
	}
	if len(b.Labels) == 0 {
		return nil
	}
	return b
}

// denialsCompared shows the denials by each limit of both files; nil where there are none.
func (p *replayPage) denialsCompared() *chart.Bars {
	b := &chart.Bars{
		Title: "Denials by limit", Unit: p.sides[0].asked(), Grouped: true,
		Note: "One denial counts on every limit that was exceeded. Limits that denied nothing are left out.",
	}
	denied := func(r *replay.LimitReport) int64 {
		if r == nil {
			return 0
		}
		return r.Denied
	}
	var first, second []int64
	for _, l := range p.compare.Limits {
		x, y := denied(l.First), denied(l.Second)
		if x+y == 0 || len(b.Labels) == pageRows {
			continue
		}
		either := l.First
		if either == nil {
			either = l.Second
		}
		b.Labels = append(b.Labels, p.sides[0].limitTitle(either))
		first, second = append(first, x), append(second, y)
	}
	b.Series = []chart.Series{{Name: firstName, Values: first}, {Name: secondName, Values: second}}
	if len(b.Labels) == 0 {
		return nil
	}
	return b
}

// asked is what asks: a call, or each of its attempts.
func (s *pageReplay) asked() string {
	if s.Retry != nil {
		return "attempts"
	}
	return "calls"
}

// limitTitle names a row of the report.
func (s *pageReplay) limitTitle(l *replay.LimitReport) string {
	title := replay.RowEntity(l)
	if s.Resource == "" {
		title += " " + rowResource(l.Resource)
	}
	title += " " + l.Limit
	if l.Shadow {
		title += " *"
	}
	return title
}
