package chart_test

import (
	"encoding/xml"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/chart"
)

// svgFile is a drawing as a file of its own.
type svgFile struct {
	Title string `xml:"title"`
	Desc  string `xml:"desc"`
	Texts []struct {
		X    int    `xml:"x,attr"`
		Y    int    `xml:"y,attr"`
		Text string `xml:",chardata"`
	} `xml:"text"`
	Paths []struct {
		Class string `xml:"class,attr"`
		D     string `xml:"d,attr"`
	} `xml:"path"`
	Rects []struct {
		Class string `xml:"class,attr"`
		Title string `xml:"title"`
	} `xml:"rect"`
}

// drawn draws columns, and checks the properties of every drawing.
func drawn(t *testing.T, c *chart.Columns) *svgFile {
	t.Helper()
	var b strings.Builder
	if err := chart.WriteSVG(&b, c); err != nil {
		t.Fatal(err)
	}
	var f svgFile
	if err := xml.Unmarshal([]byte(b.String()), &f); err != nil {
		t.Fatal(err)
	}
	if f.Title == "" || f.Desc == "" {
		t.Errorf("described by %q and %q", f.Title, f.Desc)
	}
	checkElements(t, b.String())
	for _, x := range f.Texts {
		if x.X < 0 || x.X > 960 || x.Y < 0 {
			t.Errorf("%q is at %d, %d", x.Text, x.X, x.Y)
		}
	}
	return &f
}

// checkElements checks that a drawing has only the elements and attributes that it needs, and no
// invisible characters.
func checkElements(t *testing.T, svg string) {
	t.Helper()
	const elements = " svg title desc style defs pattern rect path text "
	const attributes = " xmlns viewBox width height role id patternUnits patternTransform class x y rx d " +
		"text-anchor fill "
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !strings.Contains(elements, " "+token.Name.Local+" ") {
				t.Errorf("has the element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				if !strings.Contains(attributes, " "+a.Name.Local+" ") {
					t.Errorf("has the attribute %s", a.Name.Local)
				}
			}
		case xml.CharData:
			for _, r := range string(token) {
				if r != '\n' && !strconv.IsPrint(r) {
					t.Fatalf("has %q", r)
				}
			}
		case xml.Comment, xml.Directive, xml.ProcInst:
			t.Errorf("has %T", token)
		}
	}
}

// bars returns the rectangles of a class.
func (f *svgFile) bars(t *testing.T, class string) []bar {
	t.Helper()
	d := &drawing{width: 960, height: math.MaxInt32}
	for _, p := range f.Paths {
		if p.Class == class {
			d.Paths = append(d.Paths, p)
		}
	}
	return d.bars(t, class)
}

func TestSVG(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	f := drawn(t, &chart.Columns{
		Title: "acme: tpm", Note: "a note", Unit: "units",
		Times: chart.Times{Start: start, Step: 24 * time.Hour},
		Series: []chart.Series{
			{Name: "gpt-4o", Values: []int64{50, 0, 100, -7}}, {Name: "mini", Values: []int64{50, 25}},
		},
		Gaps: []chart.Gap{{From: 1, To: 2}, {From: -5, To: 0}, {From: 3, To: 99}},
	})
	// 872 pixels for four days, and 260 for a hundred units.
	if got, want := f.bars(t, "s0"), []bar{{64, 0, 217, 130}, {500, 0, 217, 260}}; !sameBars(got, want) {
		t.Errorf("gpt-4o: got %v, want %v", got, want)
	}
	if got, want := f.bars(t, "s1"), []bar{{64, 0, 217, 130}, {282, 0, 217, 65}}; !sameBars(got, want) {
		t.Errorf("mini: got %v, want %v", got, want)
	}
	if got, want := f.bars(t, "gap"), []bar{{282, 0, 218, 269}, {718, 0, 218, 269}}; !sameBars(got, want) {
		t.Errorf("gaps: got %v, want %v", got, want)
	}
	var words []string
	for _, x := range f.Texts {
		words = append(words, x.Text)
	}
	holds := " " + strings.Join(words, " ") + " "
	for _, want := range []string{
		"acme: tpm", "a note", "gpt-4o", "mini", "values may be missing", "units each day", "100", "50",
		"0", "Oct 1", "time (UTC)",
	} {
		if !strings.Contains(holds, " "+want+" ") {
			t.Errorf("no %q in %q", want, holds)
		}
	}
	var hits []string
	for _, r := range f.Rects {
		if r.Class == "hit" {
			hits = append(hits, r.Title)
		}
	}
	if len(hits) != 4 || hits[1] != "Oct 2: gpt-4o 0 units, mini 25 units" {
		t.Errorf("the columns say %q", hits)
	}
}

// sameBars compares bars without their heights above the axis.
func sameBars(got, want []bar) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		got[i].y = want[i].y
		if got[i] != want[i] {
			return false
		}
	}
	return true
}

func TestSVGOfAnything(t *testing.T) {
	t.Parallel()
	drawn(t, &chart.Columns{})
	drawn(t, &chart.Columns{Title: hostile, Note: hostile, Unit: hostile})
	many := make([]chart.Series, 30)
	for i := range many {
		many[i] = chart.Series{Name: strings.Repeat("n", i*7) + hostile, Values: make([]int64, 2000)}
		many[i].Values[i] = math.MaxInt64
	}
	for _, times := range []chart.Times{
		{}, {Step: -1}, {Start: start(), Step: math.MaxInt64}, {Months: 1}, {Months: math.MaxInt},
		{Start: start(), Months: 3},
	} {
		drawn(t, &chart.Columns{Title: hostile, Times: times, Series: many})
	}
}

func FuzzSVG(f *testing.F) {
	f.Add([]byte("12345678abcdefgh"), 2, hostile, int64(time.Minute), 0, 1)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 127, 1}, 3, "\xff\u202e\ufffe", int64(-1), 5, -1)
	f.Fuzz(func(t *testing.T, data []byte, n int, name string, step int64, from, months int) {
		drawn(t, &chart.Columns{
			Title: name, Note: name, Unit: name, Series: seriesOf(data, min(max(n, 0), 9)),
			Times: chart.Times{
				Start: time.Unix(step%4_000_000_000, 0), Step: time.Duration(step), Months: months,
			},
			Gaps: []chart.Gap{{From: from, To: months}, {From: months, To: from}},
		})
	})
}

// TestSVGColours checks that the colours of the series can be told from the background.
func TestSVGColours(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("svg.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.(s\d|good|bad)\{fill:#(\w{6})\}`).FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseUint(m[2], 16, 24)
		if err != nil {
			t.Fatal(err)
		}
		color := [3]float64{linear(v >> 16), linear(v >> 8 & 255), linear(v & 255)}
		if c := contrast(color, [3]float64{1, 1, 1}); c < 3 {
			t.Errorf("%s: contrast %.2f on white, want 3", m[1], c)
		}
		seen[m[1]] = true
	}
	if len(seen) != chart.SVGSeries+2 {
		t.Errorf("%d colours, want %d", len(seen), chart.SVGSeries+2)
	}
}

// TestTextGaps checks that the axis marks the intervals in which values may be missing.
func TestTextGaps(t *testing.T) {
	t.Parallel()
	c := &chart.Columns{
		Times:  chart.Times{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Months: 1},
		Series: []chart.Series{{Values: []int64{1, 2, 3, 4}}},
		Gaps:   []chart.Gap{{From: 0, To: 1}, {From: 3, To: 9}},
	}
	got := text(t, c, &chart.TextOptions{Width: 30, Height: 2})
	if !strings.Contains(got, "0 └??????──────┬─────??????\n   Jan 2026    Mar") {
		t.Errorf("got\n%s", got)
	}
}
