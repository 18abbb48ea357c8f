package chart_test

import (
	"encoding/xml"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/chart"
)

// drawing is an SVG of a page.
type drawing struct {
	ViewBox string `xml:"viewBox,attr"`
	Role    string `xml:"role,attr"`
	Label   string `xml:"aria-label,attr"`
	Title   string `xml:"title"`
	Desc    string `xml:"desc"`
	Paths   []struct {
		Class string `xml:"class,attr"`
		D     string `xml:"d,attr"`
	} `xml:"path"`
	Groups []struct {
		Rects []struct {
			X      int    `xml:"x,attr"`
			Width  int    `xml:"width,attr"`
			Height int    `xml:"height,attr"`
			Title  string `xml:"title"`
		} `xml:"rect"`
	} `xml:"g"`

	width, height int
}

// drawings returns the SVGs of a page, without those that are decoration. Each must be well-formed.
func drawings(t *testing.T, page string) []*drawing {
	t.Helper()
	var out []*drawing
	for _, text := range regexp.MustCompile(`(?s)<svg class="(?:drawing|bar)".*?</svg>`).FindAllString(page, -1) {
		d := &drawing{}
		if err := xml.Unmarshal([]byte(text), d); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		box := strings.Fields(d.ViewBox)
		if len(box) != 4 || box[0] != "0" || box[1] != "0" {
			t.Fatalf("the box is %q", d.ViewBox)
		}
		d.width, d.height = number(t, box[2]), number(t, box[3])
		if d.Role != "img" || d.Label == "" || d.Title == "" || d.Desc == "" {
			t.Errorf("not described: %+v", d)
		}
		out = append(out, d)
	}
	return out
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// bar is a rectangle of a path.
type bar struct{ x, y, width, height int }

// bars returns the rectangles of the paths with a class.
func (d *drawing) bars(t *testing.T, class string) []bar {
	t.Helper()
	one := regexp.MustCompile(`M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z`)
	var out []bar
	for _, p := range d.Paths {
		if p.Class != class {
			continue
		}
		if rest := one.ReplaceAllString(p.D, ""); rest != "" {
			t.Fatalf("no bars: %q", rest)
		}
		for _, m := range one.FindAllStringSubmatch(p.D, -1) {
			b := bar{number(t, m[1]), number(t, m[2]), number(t, m[3]), number(t, m[4])}
			if b.x+b.width > d.width || b.y+b.height > d.height || m[3] != m[5] {
				t.Fatalf("%+v stands out of %s", b, d.ViewBox)
			}
			out = append(out, b)
		}
	}
	return out
}

func TestColumnsAreInProportion(t *testing.T) {
	t.Parallel()
	columns := &chart.Columns{Title: "Calls", Times: minutes(), Series: calls()}
	d := drawings(t, written(t, one(columns)))[0]
	want := []bar{{10, 875, 9, 125}, {20, 750, 9, 250}, {30, 625, 9, 375}, {40, 500, 9, 500}, {50, 500, 9, 500}}
	if got := d.bars(t, "good"); !slices.Equal(got, want) {
		t.Errorf("admitted: got %v, want %v", got, want)
	}
	want = []bar{{40, 487, 9, 13}, {50, 0, 9, 500}} // no bar in intervals without a denial
	if got := d.bars(t, "bad"); !slices.Equal(got, want) {
		t.Errorf("denied: got %v, want %v", got, want)
	}
	hits := d.Groups[1].Rects
	if len(hits) != 6 || hits[4].Title != "08:04: admitted 40, denied 1" || hits[4].X != 40 ||
		hits[4].Width != 10 || hits[4].Height != 1000 {
		t.Errorf("hits %+v", hits)
	}
	if want := "2026-01-02 08:00:00 to 08:06:00 UTC: admitted at most 40, denied at most 40"; d.Desc != want {
		t.Errorf("got %q, want %q", d.Desc, want)
	}
}

// TestColumnsOfAnySize draws random numbers. Each sum must be at its place, within a pixel or two
// of a plot that is 200 high, and no column may hide another.
func TestColumnsOfAnySize(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(21, 22))
	for range 60 {
		n := 1 + random.IntN(120)
		good, bad := make([]int64, n), make([]int64, n)
		limit := int64(1) << random.IntN(50)
		var top int64
		for i := range n {
			good[i], bad[i] = random.Int64N(limit+1), random.Int64N(limit+1)*int64(random.IntN(2))
			top = max(top, good[i]+bad[i])
		}
		d := drawings(t, written(t, one(&chart.Columns{Title: "t", Series: []chart.Series{
			{Tone: chart.Good, Values: good}, {Tone: chart.Bad, Values: bad},
		}})))[0]
		heights := make([]int, n)
		for _, b := range append(d.bars(t, "good"), d.bars(t, "bad")...) {
			if b.y+b.height != d.height-heights[b.x/10] {
				t.Fatalf("%+v does not stand on %d", b, heights[b.x/10])
			}
			heights[b.x/10] += b.height
		}
		highest := int64(slices.Max(heights))
		for i := range n {
			off := int64(heights[i])*top - (good[i]+bad[i])*highest
			if max(off, -off) > 20*top {
				t.Fatalf("%d + %d is %d high, and %d is %d", good[i], bad[i], heights[i], top, highest)
			}
		}
	}
}

func TestLinesWithReferenceLine(t *testing.T) {
	t.Parallel()
	lines := func(rule int64, values ...int64) string {
		d := drawings(t, written(t, one(&chart.Lines{
			Title: "t", Series: []chart.Series{{Name: "in use", Values: values}},
			Rule: &chart.ReferenceLine{Name: "capacity", Value: rule},
		})))[0]
		var out []string
		for _, p := range d.Paths {
			out = append(out, p.Class+" "+p.D)
		}
		return strings.Join(out, "; ")
	}
	for _, c := range []struct{ got, want string }{
		{
			lines(80, 100, 0, -7),
			"area s0 M0 0H10V1000H20V1000H30V1000H0z; line s0 M0 0H10V1000H20V1000H30; rule M0 200H30",
		},
		{lines(200, 50), "area s0 M0 750H10V1000H0z; line s0 M0 750H10; rule M0 0H10"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestComparisonHasOneScale(t *testing.T) {
	t.Parallel()
	d := drawings(t, written(t, one(&chart.Comparison{
		Title: "Calls", Above: chart.ComparisonSide{Name: "a", Series: calls()},
		Below: chart.ComparisonSide{Name: "b", Series: []chart.Series{{Name: "admitted", Tone: chart.Good, Values: []int64{40}}}},
	})))[0]
	good := d.bars(t, "good")
	if want := (bar{50, 500, 9, 500}); good[4] != want {
		t.Errorf("above: got %v, want %v", good[4], want)
	}
	if want := (bar{0, 1000, 9, 500}); good[5] != want || len(good) != 6 { // begins at the middle
		t.Errorf("below: got %v, want %v", good[5:], want)
	}
}

func TestBarsAndBins(t *testing.T) {
	t.Parallel()
	series := []chart.Series{
		{Name: "alone", Tone: chart.Bad, Values: []int64{30, 0}}, {Name: "both", Values: []int64{10, 20}},
	}
	all := drawings(t, written(t, one(&chart.Bars{Title: "t", Labels: []string{"rpm", "tpm"}, Series: series})))
	if len(all) != 2 || all[0].Title != "rpm: alone 30, both 10" {
		t.Fatalf("%+v", all)
	}
	if got, want := all[0].bars(t, "bad"), []bar{{0, 0, 750, 10}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := all[0].bars(t, "s0"), []bar{{750, 0, 250, 10}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := all[1].bars(t, "bad"); got != nil {
		t.Errorf("nothing is %v", got)
	}
	bars := &chart.Bars{Title: "t", Labels: []string{"rpm", "tpm"}, Series: series, Grouped: true}
	if all = drawings(t, written(t, one(bars))); len(all) != 4 {
		t.Fatalf("%+v", all)
	}
	if got, want := all[3].bars(t, "s0"), []bar{{0, 0, 667, 10}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d := drawings(t, written(t, one(&chart.Distribution{Title: "t", Bounds: []int64{1, 2}, Series: series})))[0]
	if got, want := d.bars(t, "s0"), []bar{{12, 667, 9, 333}, {36, 333, 9, 667}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHostileDrawingsAreWellFormed(t *testing.T) {
	t.Parallel()
	all := drawings(t, written(t, hostilePage()))
	if len(all) < 8 {
		t.Errorf("%d drawings", len(all))
	}
	for _, d := range all {
		if d.width > 0 {
			d.bars(t, "good")
			d.bars(t, "bad")
		}
	}
}

// TestLabelsHaveRoom counts the labels below a plot, on a screen and on a phone.
func TestLabelsHaveRoom(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`<text x="([\d.]+)%" y="16" class="(\w+)( minor)?">([^<]*)</text>`)
	for _, c := range []struct {
		name        string
		figure      chart.Figure
		wide, phone string
	}{
		{
			"alone", &chart.Columns{Times: minutes(), Series: []chart.Series{{Values: make([]int64, 60)}}},
			"08:00 08:10 08:20 08:30 08:40 08:50", "08:00 08:20 08:40",
		},
		{
			"beside another", &chart.Lines{Times: minutes(), Series: []chart.Series{{Values: make([]int64, 6)}}},
			"08:00 08:01 08:02 08:03 08:04 08:05", "08:00 08:02 08:04",
		},
		{
			"long names", &chart.Distribution{
				Bounds: []int64{1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000},
				Series: []chart.Series{{Values: make([]int64, 7)}},
			},
			"1,000,000 3,000,000 5,000,000 more", "1,000,000 5,000,000",
		},
	} {
		var wide, phone []string
		for _, m := range label.FindAllStringSubmatch(written(t, one(c.figure)), -1) {
			wide = append(wide, m[4])
			if m[3] == "" {
				phone = append(phone, m[4])
			}
		}
		if got := strings.Join(wide, " "); got != c.wide {
			t.Errorf("%s: got %q, want %q", c.name, got, c.wide)
		}
		if got := strings.Join(phone, " "); got != c.phone {
			t.Errorf("%s, on a phone: got %q, want %q", c.name, got, c.phone)
		}
	}
}
