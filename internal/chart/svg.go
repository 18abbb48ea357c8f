package chart

import (
	"bufio"
	"encoding/xml"
	"io"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir/internal/text"
)

// The geometry of an SVG, in pixels.
const (
	svgWidth  = 960
	svgPlot   = 260 // height of the plot
	svgLeft   = 64  // beside the plot, for the scale
	svgRight  = 24
	svgLine   = 20 // of a line of text
	svgCell   = 8  // of a character, at most
	svgSwatch = 18 // of a mark in the legend, with its gap
	svgBand   = 9  // of a gap above the plot
)

// svgStyle has a colour for each of the first series, which have a contrast of 3 to 1 on white. The
// drawing has a white background, so that it can be put on any page.
const svgStyle = `text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}` +
	`text{fill:#15201f}.title{font-size:17px;font-weight:650}text.note{fill:#53625f}` +
	`.line{stroke:#dbe2e0}.axis{stroke:#7c8b88}` +
	`.gap{fill:url(#gap)}.hit{fill:transparent}.s0{fill:#0072b2}.s1{fill:#b87400}.s2{fill:#a4508b}` +
	`.s3{fill:#178a91}.s4{fill:#c8421c}.s5{fill:#5b7a1f}.s6{fill:#6b5bd2}.s7{fill:#74827f}` +
	`.good{fill:#178a91}.bad{fill:#c8421c}`

// SVGSeries is the number of series that an SVG can show in different colours.
const SVGSeries = 8

// WriteSVG draws columns as an SVG that needs nothing else. Each column shows its values to a mouse
// that rests on it. The error is the writer's.
func WriteSVG(w io.Writer, c *Columns) error {
	n := most(c.Series)
	each := mergeCount(n, maxPlaces)
	series := merge(c.Series, each, false)
	d := &svgDrawing{
		columns: c, series: series, n: most(series), times: c.Times.normal(n).each(each),
		gaps: gapsOf(c.Gaps, each, most(series)), top: roundTop(highest(series), c.Unit),
	}
	d.legend()
	d.head()
	d.plot()
	d.b.WriteString("</svg>\n")
	b := bufio.NewWriter(w)
	_, _ = b.WriteString(d.b.String())
	return b.Flush()
}

// svgDrawing is an SVG that is being written.
type svgDrawing struct {
	columns *Columns
	series  []Series // as drawn, with neighbours merged
	n       int
	times   Times
	gaps    []Gap
	top     uint64
	keys    []svgKey
	y       int // where the next part begins
	b       strings.Builder
}

// svgKey is an entry of the legend.
type svgKey struct {
	x, line     int
	class, name string
}

// legend places the entries in lines.
func (d *svgDrawing) legend() {
	x, line := svgLeft, 0
	add := func(class, name string) {
		name = text.Shorten(printable(name, false), (svgWidth-svgLeft-svgRight-svgSwatch)/svgCell)
		width := svgSwatch + svgCell*text.Width(name) + svgSwatch
		if x > svgLeft && x+width > svgWidth-svgRight {
			x, line = svgLeft, line+1
		}
		d.keys = append(d.keys, svgKey{x, line, class, name})
		x += width
	}
	for i, class := range d.classes() {
		if d.series[i].Name != "" {
			add(class, d.series[i].Name)
		}
	}
	if len(d.gaps) > 0 {
		add("gap", "values may be missing")
	}
}

// classes returns the classes of the series: by their tone, or by their index.
func (d *svgDrawing) classes() []string {
	out := make([]string, len(d.series))
	others := 0
	for i := range d.series {
		switch d.series[i].Tone {
		case Good:
			out[i] = "good"
		case Bad:
			out[i] = "bad"
		default:
			out[i] = "s" + strconv.Itoa(others%SVGSeries)
			others++
		}
	}
	return out
}

// head writes the beginning, the title, the note and the legend.
func (d *svgDrawing) head() {
	lines := 0
	if len(d.keys) > 0 {
		lines = d.keys[len(d.keys)-1].line + 1
	}
	d.y = 36
	if d.columns.Note != "" {
		d.y += svgLine
	}
	height := strconv.Itoa(d.y + svgLine*lines + 2*svgLine + svgPlot + 3*svgLine)
	title := requireTitle(printable(d.columns.Title, false))
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 `, strconv.Itoa(svgWidth), ` `, height,
		`" width="`, strconv.Itoa(svgWidth), `" height="`, height, `" role="img"><title>`, escaped(title),
		`</title><desc>`, escaped(d.times.span(d.n)+": "+described(d.series, d.columns.Unit)),
		`</desc><style>`, svgStyle, `</style><defs><pattern id="gap" width="8" height="8" `,
		`patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" `,
		`fill="#eef2f1"/><rect width="3" height="8" fill="#c3cecb"/></pattern></defs>`,
		`<rect width="100%" height="100%" fill="#fff"/>`, "\n")
	const room = (svgWidth - svgLeft) / svgCell
	d.text(svgLeft, 26, "title", "start", text.Shorten(title, room-room/4))
	if d.columns.Note != "" {
		d.text(svgLeft, 46, "note", "start", text.Shorten(printable(d.columns.Note, false), room))
	}
	for _, k := range d.keys {
		y := d.y + k.line*svgLine + 14
		d.add(`<rect class="`, k.class, `" x="`, strconv.Itoa(k.x), `" y="`, strconv.Itoa(y-11),
			`" width="12" height="12" rx="2"/>`)
		d.text(k.x+svgSwatch, y, "", "start", k.name)
	}
	d.y += svgLine * lines
}

// plot writes the scale, the gaps, the columns, the times and the labels of the axes.
func (d *svgDrawing) plot() {
	const width = svgWidth - svgLeft - svgRight
	d.text(svgLeft, d.y+svgLine, "note", "start",
		strings.TrimSpace(d.columns.Unit+" each "+d.times.step()))
	top := d.y + svgLine + svgLine/2
	labels := scaleLabels(d.top, d.columns.Unit)
	for i, label := range labels {
		y := top + svgPlot*i/(len(labels)-1)
		d.add(`<path class="`, [...]string{"line", "axis"}[i/(len(labels)-1)], `" d="M`,
			strconv.Itoa(svgLeft), ` `, strconv.Itoa(y), `.5h`, strconv.Itoa(width), `"/>`)
		d.text(svgLeft-8, y+4, "note", "end", label)
	}
	if d.n == 0 {
		d.text(svgLeft+width/2, top+svgPlot/2, "note", "middle", "nothing to show")
		return
	}
	edge := func(i int) int { return svgLeft + width*i/d.n }
	for _, g := range d.gaps {
		// The band is higher than the plot, so that a full column does not hide it.
		band := rect{edge(g.From), top - svgBand, edge(g.To) - edge(g.From), svgPlot + svgBand}
		d.path("gap", band.path())
	}
	d.bars(top, edge)
	for _, t := range d.times.ticks(d.n, 10) {
		x := svgLeft + width*t.at/10_000
		d.add(`<path class="axis" d="M`, strconv.Itoa(x), `.5 `, strconv.Itoa(top+svgPlot), `v5"/>`)
		anchor := "middle"
		if x < svgLeft+20 {
			anchor = "start"
		}
		d.text(x, top+svgPlot+svgLine, "note", anchor, t.label)
	}
	zone := "time"
	if !d.times.relative() {
		zone += " (" + d.times.Start.Location().String() + ")"
	}
	d.text(svgLeft+width, top+svgPlot+2*svgLine, "note", "end", zone)
}

// bars writes the columns, and over them the areas that show the values.
func (d *svgDrawing) bars(top int, edge func(i int) int) {
	bars := make([]string, len(d.series))
	for i := range d.n {
		x, width := edge(i), edge(i+1)-edge(i)
		if width > 2 {
			width--
		}
		edges := stack(column(d.series, i), d.top, svgPlot, 1)
		for k := range d.series {
			if height := edges[k+1] - edges[k]; height > 0 {
				bars[k] += rect{x, top + svgPlot - edges[k+1], max(width, 1), height}.path()
			}
		}
	}
	for k, class := range d.classes() {
		d.path(class, bars[k])
	}
	for i := range d.n {
		d.add(`<rect class="hit" x="`, strconv.Itoa(edge(i)), `" y="`, strconv.Itoa(top), `" width="`,
			strconv.Itoa(edge(i+1)-edge(i)), `" height="`, strconv.Itoa(svgPlot), `"><title>`,
			escaped(describePlace(d.times.label(i, d.n), d.series, i, d.columns.Unit)),
			"</title></rect>\n")
	}
}

func (d *svgDrawing) add(parts ...string) {
	for _, p := range parts {
		d.b.WriteString(p)
	}
}

func (d *svgDrawing) path(class, path string) {
	if path != "" {
		d.add(`<path class="`, class, `" d="`, path, `"/>`, "\n")
	}
}

func (d *svgDrawing) text(x, y int, class, anchor, words string) {
	d.add(`<text x="`, strconv.Itoa(x), `" y="`, strconv.Itoa(y), `" text-anchor="`, anchor, `"`)
	if class != "" {
		d.add(` class="`, class, `"`)
	}
	d.add(`>`, escaped(words), "</text>\n")
}

// escaped returns a text as XML has it, with invisible characters escaped.
func escaped(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(printable(s, false))); err != nil {
		panic(err) // the builder never fails
	}
	return b.String()
}
