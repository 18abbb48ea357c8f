package report

import (
	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// pageRows is how many limits a figure of bars has.
const pageRows = 40

// limitsSection shows what each limit admitted and denied.
func (p *replayPage) limitsSection() chart.Section {
	s := chart.Section{Title: "Limits"}
	var shadow bool
	note := shadowNote + ", “only it” what nothing else denied."
	if p.compare != nil {
		var rows [][]string
		rows, shadow = limitsRows(p.compare.Limits, p.sides[0].Resource == "")
		s.Table = pageTable(&text.Table{Heads: limitsHeads(p.sides[0].Resource == "", true), Rows: rows})
		note = shadowNote + "."
	} else {
		var t *text.Table
		t, shadow = p.sides[0].limitsTable()
		s.Table = pageTable(t)
	}
	if shadow {
		s.Table.Note = note
	}
	if bars := p.denials(); bars != nil {
		s.Figures = []chart.Figure{bars}
	}
	return s
}

const shadowNote = "* A shadow limit denies nothing: “denied” is what it would have denied"

// denials draws how often each limit denied: alone and with others, or in each of two files. It
// returns nil if none did.
func (p *replayPage) denials() *chart.Bars {
	side := p.sides[0]
	b := &chart.Bars{
		Title: "Denials by limit", Unit: side.asked(), Grouped: p.compare != nil,
		Note: "One denial counts on every limit that was exceeded. Limits that denied nothing are left out.",
	}
	var x, y []int64
	add := func(l *replay.LimitReport, first, second int64) {
		if first+second > 0 && len(b.Labels) < pageRows {
			b.Labels = append(b.Labels, side.limitTitle(l))
			x, y = append(x, first), append(y, second)
		}
	}
	if p.compare == nil {
		for _, l := range side.Limits {
			add(l, l.DeniedOnly, l.Denied-l.DeniedOnly)
		}
		b.Series = []chart.Series{
			{Name: "only this limit", Tone: chart.Bad, Values: x}, {Name: "others too", Values: y},
		}
	} else {
		denied := func(r *replay.LimitReport) int64 {
			if r == nil {
				return 0
			}
			return r.Denied
		}
		for _, l := range p.compare.Limits {
			add(eitherRow(l), denied(l.First), denied(l.Second))
		}
		b.Series = []chart.Series{{Name: firstName, Values: x}, {Name: secondName, Values: y}}
	}
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
