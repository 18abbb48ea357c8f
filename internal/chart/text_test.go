package chart_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/chart"
)

// minutes returns intervals of a minute from eight o'clock.
func minutes() chart.Times {
	return chart.Times{Start: time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC), Step: time.Minute}
}

// calls returns numbers of admitted and denied calls: none, some, one, and as many denied as
// admitted.
func calls() []chart.Series {
	return []chart.Series{
		{Name: "admitted", Tone: chart.Good, Values: []int64{0, 10, 20, 30, 40, 40}},
		{Name: "denied", Tone: chart.Bad, Values: []int64{0, 0, 0, 0, 1, 40}},
	}
}

// text draws a figure as text.
func text(t *testing.T, f chart.Figure, o *chart.TextOptions) string {
	t.Helper()
	var b strings.Builder
	if err := chart.WriteText(&b, f, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type picture struct {
	name   string
	figure chart.Figure
	o      chart.TextOptions
	want   string
}

func (p *picture) look(t *testing.T) {
	t.Helper()
	if got := text(t, p.figure, &p.o); got != p.want[1:] {
		t.Errorf("%s:\n%s\nwant\n%s", p.name, got, p.want[1:])
	}
}

func TestTextColumns(t *testing.T) {
	t.Parallel()
	columns := &chart.Columns{Title: "Calls", Unit: "calls", Times: minutes(), Series: calls()}
	for _, p := range []picture{
		{"columns", columns, chart.TextOptions{Width: 40, Height: 4}, `
Calls each 1 min    █ admitted  ▒ denied
80 ┤                              ▒▒▒▒▒▒
   │                              ▒▒▒▒▒▒
40 ┤                  ▄▄▄▄▄▄▒▒▒▒▒▒██████
   │      ▄▄▄▄▄▄████████████████████████
 0 └┬──────────┬────────────┬───────────
    08:00      08:02        08:04
`},
		{"in ASCII", columns, chart.TextOptions{Width: 40, Height: 4, ASCII: true}, `
Calls each 1 min    # admitted  ! denied
80 |                              !!!!!!
   |                              !!!!!!
40 |                  oooooo!!!!!!######
   |      oooooo########################
 0 ++----------+------------+-----------
    08:00      08:02        08:04
`},
		{"in colours", columns, chart.TextOptions{Width: 40, Height: 4, Color: true}, `
Calls each 1 min    ` + "\x1b[36m" + `█` + "\x1b[0m" + ` admitted  ` + "\x1b[31m" + `█` + "\x1b[0m" + ` denied
80 ┤                              ` + "\x1b[31m" + `██████` + "\x1b[0m" + `
   │                        ` + "\x1b[31m" + `▁▁▁▁▁▁██████` + "\x1b[0m" + `
40 ┤                  ` + "\x1b[36m" + `▄▄▄▄▄▄████████████` + "\x1b[0m" + `
   │      ` + "\x1b[36m" + `▄▄▄▄▄▄████████████████████████` + "\x1b[0m" + `
 0 └┬──────────┬────────────┬───────────
    08:00      08:02        08:04
`},
	} {
		p.look(t)
	}
}

func TestTextOverTime(t *testing.T) {
	t.Parallel()
	use := &chart.Lines{
		Title: "acme tpm", Times: minutes(), Rule: &chart.ReferenceLine{Name: "capacity", Value: 100},
		Series: []chart.Series{{Name: "in use", Values: []int64{100, 50, 0}}},
	}
	for _, p := range []picture{
		{"use", use, chart.TextOptions{Width: 40, Height: 4}, `
acme tpm, in use, capacity 100
100 ┤███████████╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
    │███████████
 50 ┤██████████████████████
    │██████████████████████
  0 └┬─────────┬───────────┬──────────
     08:00     08:01       08:02
`},
		{"use in ASCII", use, chart.TextOptions{Width: 22, Height: 2, ASCII: true}, `
acme tpm, in use, cap~
100 |#####----------
    |##########
  0 ++--------------
     08:00
`},
		{"without dates and in pieces", &chart.Columns{
			Title: "Waits", Unit: chart.Milliseconds, Times: chart.Times{Step: time.Minute},
			Series: []chart.Series{{Values: make([]int64, 100)}},
		}, chart.TextOptions{Width: 30, Height: 1}, `
Waits, each 5 min
1 ms ┤
   0 └┬───────────┬───────
      0           1 h
`},
		{"both sides are as long", &chart.Comparison{
			Title: "Calls", Unit: "calls", Times: minutes(),
			Above: chart.ComparisonSide{Name: "a.yaml", Series: calls()},
			Below: chart.ComparisonSide{Name: "b.yaml", Series: []chart.Series{{Name: "admitted", Values: []int64{80}}}},
		}, chart.TextOptions{Width: 40, Height: 1}, `
a.yaml, Calls each 1 min
█ admitted  ▒ denied
80 ┤      ▁▁▁▁▁▁▂▂▂▂▂▂▃▃▃▃▃▃▒▒▒▒▒▒▒▒▒▒▒▒
 0 └┬──────────┬────────────┬───────────
    08:00      08:02        08:04
b.yaml, Calls each 1 min      █ admitted
80 ┤██████
 0 └┬──────────┬────────────┬───────────
    08:00      08:02        08:04
`},
		{"nothing", &chart.Columns{Title: "Calls", Note: "None."}, chart.TextOptions{}, `
Calls
None.
nothing to show
`},
	} {
		p.look(t)
	}
}

func TestTextBars(t *testing.T) {
	t.Parallel()
	bars := func(grouped bool) *chart.Bars {
		return &chart.Bars{
			Title: "Denials", Unit: "calls", Labels: []string{"rpm", "tpm", "parallel"}, Grouped: grouped,
			Series: []chart.Series{
				{Name: "alone", Tone: chart.Bad, Values: []int64{1000, 0}},
				{Name: "both", Values: []int64{1000, 500}},
			},
		}
	}
	for _, p := range []picture{
		{"stacked", bars(false), chart.TextOptions{Width: 40}, `
Denials                  █ alone  ▒ both
rpm       1,000  1,000  ████████▒▒▒▒▒▒▒▒
tpm           0    500  ▒▒▒▒
parallel      0      0
`},
		{"grouped", bars(true), chart.TextOptions{Width: 40}, `
Denials                  █ alone  ▒ both
rpm       1,000  ███████████████████████
          1,000  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
tpm           0
            500  ▒▒▒▒▒▒▒▒▒▒▒▌
parallel      0
              0
`},
		{"in colours", &chart.Bars{
			Labels: []string{"rpm"}, Grouped: true,
			Series: []chart.Series{{Tone: chart.Bad, Values: []int64{2}}, {Values: []int64{1}}},
		}, chart.TextOptions{Width: 20, Color: true}, `
rpm  2  ` + "\x1b[31m████████████\x1b[0m" + `
     1  ` + "\x1b[33m██████\x1b[0m" + `
`},
		{"no room for bars", bars(false), chart.TextOptions{Width: 20}, `
Denials
█ alone  ▒ both
rpm     1,000  1,000
tpm         0    500
paral…      0      0
`},
		{"a distribution", &chart.Distribution{
			Title: "Waits", Note: "Most none.", Unit: chart.Milliseconds, Bounds: []int64{0, 1000},
			Series: []chart.Series{{Values: []int64{9, 3, 1}}},
		}, chart.TextOptions{Width: 40}, `
Waits
Most none.
0 ms       9  ██████████████████████████
up to 1 s  3  ████████▋
above 1 s  1  ██▉
`},
		{"nothing", &chart.Distribution{Title: "Waits"}, chart.TextOptions{}, `
Waits
nothing to show
`},
	} {
		p.look(t)
	}
}

func TestSparks(t *testing.T) {
	t.Parallel()
	lines := []*chart.Lines{
		{
			Title: "acme rpm", Series: []chart.Series{{Values: []int64{0, 50, 100, 150, 1, 25}}},
			Rule: &chart.ReferenceLine{Name: "capacity", Value: 100},
		},
		{
			Title: "acme input_tokens", Series: []chart.Series{{Values: []int64{7_000_000, 14_000_000}}},
			Rule: &chart.ReferenceLine{Name: "capacity", Value: 14_000_000},
		},
		{Title: "no rule", Series: []chart.Series{{Values: []int64{1, 2}}}},
		{Title: "no series"},
	}
	for _, c := range []struct {
		name string
		o    chart.TextOptions
		want string
	}{
		{"a cell each", chart.TextOptions{Width: 54}, `
acme rpm            ▄██▁▂         150 of        100
acme input_tokens  ▄█      14,000,000 of 14,000,000
no rule            ▄█               2
no series
`},
		{"two intervals a cell", chart.TextOptions{Width: 49, ASCII: true}, `
acme rpm          o#.         150 of        100
acme input_toke~  #    14,000,000 of 14,000,000
no rule           #             2
no series
`},
		{"the rule is reached", chart.TextOptions{Width: 54, Color: true}, `
acme rpm            ▄` + "\x1b[31m██\x1b[0m" + `▁▂         150 of        100
acme input_tokens  ▄` + "\x1b[31m█\x1b[0m" + `      14,000,000 of 14,000,000
no rule            ▄█               2
no series
`},
		{"no room", chart.TextOptions{Width: 40}, `
acme rpm              150 of        100
acme input_t…  14,000,000 of 14,000,000
no rule                 2
no series
`},
	} {
		var b strings.Builder
		if err := chart.WriteSparks(&b, lines, &c.o); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != c.want[1:] {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want[1:])
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriterFails(t *testing.T) {
	t.Parallel()
	full := failing{errors.New("disk full")}
	for name, err := range map[string]error{
		"text":   chart.WriteText(full, &chart.Columns{}, nil),
		"sparks": chart.WriteSparks(full, nil, nil),
		"page":   (&chart.Page{}).Write(full),
	} {
		if !errors.Is(err, full.err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
