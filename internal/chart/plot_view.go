package chart

import (
	"strconv"
	"strings"

	"github.com/weir-limiter/weir/internal/text"
)

// The units of a drawing: an interval is columnWidth wide, a side is plotHeight high. The page
// stretches the drawing to the available space, and writes all text outside of it.
const (
	columnWidth = 10
	columnGap   = 1
	plotHeight  = 1000
	minHeight   = 8   // of a value other than 0, so that it can be seen
	maxPlaces   = 480 // more are merged, because no screen has room for them
)

// plotView is a drawing with the text around it.
type plotView struct {
	Label, Desc   string
	Upper, Lower  string
	Scale         []string // from the top down, evenly
	Width, Height int
	Grid          []int
	Shapes        []shapeView
	Hits          []tooltipView
	Ticks         []tickView
}

// shapeView is a path with a CSS class.
type shapeView struct{ Class, Path string }

// tooltipView is an area with a description of what is drawn there.
type tooltipView struct {
	X, Width int
	Text     string
}

// tickView is a label below the plot, at a percentage of its width. Minor ones are hidden on a
// narrow screen.
type tickView struct {
	At, Anchor, Label string
	Minor             bool
}

// rect returns the path of a bar, from the upper left corner.
type rect struct{ x, y, width, height int }

// rects returns the bars of each series, stacked upwards from a base, or downwards.
func rects(series []Series, top uint64, base int, down bool) [][]rect {
	out := make([][]rect, len(series))
	for i := range most(series) {
		edges := stack(column(series, i), top, plotHeight, minHeight)
		for k := range series {
			height := edges[k+1] - edges[k]
			if height == 0 {
				continue
			}
			y := base - edges[k+1]
			if down {
				y = base + edges[k]
			}
			out[k] = append(out[k], rect{i * columnWidth, y, columnWidth - columnGap, height})
		}
	}
	return out
}

// shapes returns the bars of each series as one path.
func shapes(series []Series, bars [][]rect) []shapeView {
	classes := seriesClasses(series)
	var out []shapeView
	for k := range bars {
		var b strings.Builder
		for _, r := range bars[k] {
			b.WriteString(r.path())
		}
		if b.Len() > 0 {
			out = append(out, shapeView{classes[k], b.String()})
		}
	}
	return out
}

func (r rect) path() string {
	w, h := strconv.Itoa(r.width), strconv.Itoa(r.height)
	return "M" + strconv.Itoa(r.x) + " " + strconv.Itoa(r.y) + "h" + w + "v" + h + "h-" + w + "z"
}

// hits returns an area for each interval, with the description of its values as a tooltip.
func hits(width int, names []string, series []Series, unit string) []tooltipView {
	out := make([]tooltipView, len(names))
	for i, name := range names {
		out[i] = tooltipView{i * width, width, describePlace(name, series, i, unit)}
	}
	return out
}

// scaleLabels returns the labels beside a plot that begins at 0.
func scaleLabels(top uint64, unit string) []string {
	if top%2 != 0 {
		return []string{short(top, unit), "0"}
	}
	return []string{short(top, unit), short(top/2, unit), "0"}
}

// The room for labels below a plot, in pixels: on a phone, and on a screen if the plot stands
// beside another or alone.
const (
	phoneRoom = 200
	halfRoom  = 340
	wideRoom  = 570
	maxTicks  = 12
)

// labelRoom returns the pixels that the widest label takes, including the gap to the next one.
func labelRoom(ticks []tick) int {
	width := 1
	for _, t := range ticks {
		width = max(width, 12+8*text.Width(t.label))
	}
	return width
}

// timeTicks returns the round times for which there is room.
func timeTicks(times Times, n, room int) []tickView {
	var ticks []tick
	for most := maxTicks; most > 0; most-- {
		if ticks = times.ticks(n, most); len(ticks)*labelRoom(ticks) <= room {
			break
		}
	}
	return tickViews(ticks, room)
}

// tickViews places the labels for which there is room. The first and the last must not stick out of
// the plot.
func tickViews(ticks []tick, room int) []tickView {
	width := labelRoom(ticks)
	apart := mergeCount(len(ticks), max(room/width, 1))
	apartOnPhone := apart * mergeCount(len(ticks), apart*max(phoneRoom/width, 1))
	var out []tickView
	for i := 0; i < len(ticks); i += apart {
		t := ticks[i]
		v := tickView{Label: t.label, Anchor: "middle", Minor: i%apartOnPhone != 0}
		switch {
		case t.at < 500:
			v.Anchor = "start"
		case t.at > 9_500:
			v.Anchor = "end"
		}
		v.At = strconv.Itoa(t.at/100) + "." + strconv.Itoa(t.at%100/10) + "%"
		out = append(out, v)
	}
	return out
}
