package cli

import (
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// usesNote says what the figures of uses draw.
const usesNote = "The most that was in use in each interval: the capacity less the least that an " +
	"answer said was available. Where no call asked, windows and budgets are drawn as last seen, and other limits at 0."

// uses show how full each limit was, those of two files beside each other.
func (p *replayPage) uses() []chart.Section {
	all := chart.Section{Title: "Use against capacity", Note: usesNote}
	if p.compare == nil {
		side := p.sides[0]
		for _, row := range side.Timeline.Limits {
			all.Figures = append(all.Figures, side.use(side.Timeline, row))
		}
		all.Note += leftOut(side.Timeline)
		return filled(all)
	}
	first, second := p.sides[0], p.sides[1]
	a, b := replay.AlignTimelines(first.Timeline, second.Timeline)
	onlyA := chart.Section{Title: "Use against capacity: only " + firstName}
	onlyB := chart.Section{Title: "Use against capacity: only " + secondName}
	rows := map[useKey][]*replay.LimitTimeline{}
	for _, row := range b.Limits {
		rows[keyOf(row)] = append(rows[keyOf(row)], row)
	}
	taken := map[*replay.LimitTimeline]bool{}
	for _, row := range a.Limits {
		others := rows[keyOf(row)]
		if len(others) == 0 {
			onlyA.Figures = append(onlyA.Figures, first.use(a, row))
			continue
		}
		rows[keyOf(row)], taken[others[0]] = others[1:], true
		all.Figures = append(all.Figures, first.use(a, row), second.use(b, others[0]))
	}
	for _, row := range b.Limits {
		if !taken[row] {
			onlyB.Figures = append(onlyB.Figures, second.use(b, row))
		}
	}
	all.Note += leftOut(a)
	return filled(all, onlyA, onlyB)
}

// useKey is what the limits of two files have in common that are drawn beside each other.
type useKey struct {
	group                   replay.Group
	entity, resource, limit string
}

func keyOf(row *replay.LimitTimeline) useKey {
	return useKey{row.Group, row.Entity, row.Resource, row.Limit}
}

// leftOut says how many limits are not drawn.
func leftOut(l *replay.Timeline) string {
	if l.RowsLeftOut == 0 {
		return ""
	}
	return fmt.Sprintf(" These are the first %d limits; %s not drawn.",
		len(l.Limits), text.Plural(l.RowsLeftOut, "more is", "more are"))
}

// filled are the sections that have figures.
func filled(sections ...chart.Section) []chart.Section {
	var out []chart.Section
	for _, s := range sections {
		if len(s.Figures) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// use draws how full a limit was.
func (s *pageSide) use(l *replay.Timeline, row *replay.LimitTimeline) *chart.Lines {
	f := &chart.Lines{
		Title: s.titled(s.rowTitle(row)), Unit: "units", Times: chartTimes(l),
		Series: []chart.Series{{Name: "most in use", Values: lastSeen(row)}},
		Rule:   &chart.ReferenceLine{Name: "capacity", Value: row.Capacity},
	}
	if row.Kind == weir.Concurrency {
		f.Unit = "slots"
	}
	if row.Shadow {
		f.Note = "A shadow limit: it denies nothing."
	}
	return f
}

// lastSeen are the peaks of a limit. What a window or a budget holds stays when nobody asks.
func lastSeen(row *replay.LimitTimeline) []int64 {
	out := make([]int64, len(row.PeakUse))
	last := int64(0)
	for i, use := range row.PeakUse {
		switch {
		case use >= 0:
			last = use
		case row.Kind != weir.Window && row.Kind != weir.Budget:
			last = 0
		}
		out[i] = last
	}
	return out
}
