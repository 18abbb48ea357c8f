package chart_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/weir-limiter/weir/internal/chart"
)

// figures returns one figure of each kind, of the same series.
func figures(series []chart.Series, name string, times chart.Times) []chart.Figure {
	half := series[:len(series)/2]
	rule := &chart.ReferenceLine{Name: name, Value: 5}
	if len(series) > 0 && len(series[0].Values) > 0 {
		rule.Value = series[0].Values[0]
	}
	return []chart.Figure{
		&chart.Columns{Title: name, Unit: name, Times: times, Series: series},
		&chart.Lines{Title: name, Note: name, Times: times, Series: series, Rule: rule},
		&chart.Lines{Unit: chart.Milliseconds, Times: times, Series: half},
		&chart.Bars{Title: name, Labels: []string{name, "b"}, Series: series},
		&chart.Bars{Labels: []string{name}, Series: series, Grouped: true},
		&chart.Meters{Title: name, Note: name, Meters: []chart.Meter{
			{Label: name, Used: rule.Value, Capacity: 7, Text: name}, {Used: 1, Capacity: rule.Value},
		}},
		&chart.Distribution{Title: name, Unit: name, Bounds: []int64{-1, 0, 9}, Series: series},
		binned(name, chart.Milliseconds, series...),
		&chart.Comparison{
			Title: name, Times: times, Above: chart.ComparisonSide{Name: name, Series: series},
			Below: chart.ComparisonSide{Series: half},
		},
	}
}

// seriesOf returns n series of the numbers that the bytes encode, which are of every size.
func seriesOf(data []byte, n int) []chart.Series {
	series := make([]chart.Series, n)
	for i := 0; n > 0 && len(data) > 0 && i < 1000; i++ {
		var v [8]byte
		data = data[copy(v[:], data):]
		s := &series[i%n]
		s.Name, s.Tone = strings.Repeat("é", i%40), chart.Tone(i%3)
		s.Values = append(s.Values, int64(binary.LittleEndian.Uint64(v[:])))
	}
	return series
}

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// checkText draws figures as text, and checks every line.
func checkText(t *testing.T, all []chart.Figure, o chart.TextOptions) {
	t.Helper()
	var b strings.Builder
	var lines []*chart.Lines
	for _, f := range all {
		one := text(t, f, &o)
		checkAxis(t, one)
		b.WriteString(one)
		if l, ok := f.(*chart.Lines); ok {
			lines = append(lines, l)
		}
	}
	if err := chart.WriteSparks(&b, lines, &o); err != nil {
		t.Fatal(err)
	}
	width := o.Width
	if width == 0 {
		width = 80
	}
	width = min(max(width, 20), 400)
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		plain := escape.ReplaceAllString(line, "")
		if !o.Color && plain != line {
			t.Fatalf("colours unasked: %q", line)
		}
		n := 0
		for _, r := range plain {
			if r < ' ' || r == 0x7f || o.ASCII && r > '~' {
				t.Fatalf("%q in %q", r, line)
			}
			if !unicode.In(r, unicode.Mn, unicode.Me) { // combining marks take no cell
				n++
			}
		}
		if n > width || strings.HasSuffix(plain, " ") {
			t.Fatalf("%d of %d cells: %q", n, width, line)
		}
	}
}

// checkAxis checks that the axis is a straight line in each plot of a text.
func checkAxis(t *testing.T, figure string) {
	t.Helper()
	axis := -1
	for line := range strings.Lines(escape.ReplaceAllString(figure, "")) {
		cells := []rune(line)
		at := -1
		for i, r := range cells {
			if strings.ContainsRune("│┤└", r) {
				at = i
				break
			}
		}
		if at >= 0 && axis >= 0 && at != axis {
			t.Fatalf("the axis is at %d and %d:\n%s", axis, at, figure)
		}
		if axis = at; at >= 0 && cells[at] == '└' {
			axis = -1
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte{}, 0, "", int64(0), 80, byte(0))
	f.Add([]byte("12345678abcdefgh"), 2, "name\x1b[2J", int64(time.Minute), 60, byte(1))
	f.Add(bytes.Repeat([]byte{255, 255, 255, 255, 255, 255, 255, 127}, 30), 3, "\xff\u202e한", int64(-1), 1, byte(2))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 128, 7}, 999), 1, "", int64(math.MaxInt64), 999, byte(3))
	f.Fuzz(func(t *testing.T, data []byte, n int, name string, step int64, width int, flags byte) {
		times := chart.Times{Step: time.Duration(step)}
		if flags&4 != 0 {
			times.Start = time.Unix(step%4_000_000_000, 0)
		}
		o := chart.TextOptions{
			Width: width, Height: int(flags >> 3), ASCII: flags&1 != 0, Color: flags&2 != 0,
		}
		if !o.ASCII && strings.ContainsAny(name, "│┤└") {
			return // would look like an axis
		}
		checkText(t, figures(seriesOf(data, min(max(n, 0), 9)), name, times), o)
	})
}

// TestTextFitsEveryWidth draws numbers of all sizes on terminals of all sizes.
func TestTextFitsEveryWidth(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	for width := 1; width <= 410; width += 11 {
		series := make([]chart.Series, random.IntN(4))
		for i := range series {
			series[i].Name = []string{"admitted", "denied", ""}[i%3]
			for range random.IntN(150) {
				series[i].Values = append(series[i].Values, random.Int64()>>random.IntN(63))
			}
		}
		all := figures(series, "acme tpm", chart.Times{Start: start(), Step: time.Minute})
		for _, o := range []chart.TextOptions{
			{Width: width}, {Width: width, ASCII: true}, {Width: width, Color: true, Height: width % 60},
			{Width: width, Color: true, ASCII: true, Height: 1},
		} {
			checkText(t, all, o)
		}
	}
	for _, page := range []*chart.Page{sample(60, 13), hostilePage()} {
		for _, s := range page.Sections {
			checkText(t, s.Figures, chart.TextOptions{ASCII: true})
			checkText(t, s.Figures, chart.TextOptions{Width: 200, Color: true})
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add([]byte{}, 0, "", int64(0))
	f.Add([]byte("12345678abcdefgh"), 2, hostile, int64(time.Minute))
	f.Add(bytes.Repeat([]byte{255, 255, 255, 255, 255, 255, 255, 127}, 30), 3, "\xff\u202e\ufffe", int64(-1))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 128, 7}, 999), 1, "]]>", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, data []byte, n int, name string, step int64) {
		times := chart.Times{Start: time.Unix(step%4_000_000_000, 0), Step: time.Duration(step)}
		page := &chart.Page{Title: name, Sections: []chart.Section{{
			Title: name, Figures: figures(seriesOf(data, min(max(n, 0), 9)), name+"x", times),
			Table: &chart.Table{Columns: []chart.Column{{Name: name}}, Rows: [][]string{{name, name}, {}}},
		}}}
		for _, d := range drawings(t, written(t, page)) {
			if d.width <= 0 || d.height <= 0 {
				t.Fatalf("a drawing of %s", d.ViewBox)
			}
			d.bars(t, "good")
			d.bars(t, "bad")
		}
	})
}
