package chart_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/chart"
)

// hostile is a name that would run a script if a page did not escape it, and reverse the text if a
// line did not.
const hostile = "<script>alert(\"x\")</script>\u202e' onload=x --> \x1b[31m</style></title>"

// start is the time at which the sample's hour begins.
func start() time.Time { return time.Date(2023, 11, 16, 18, 15, 46, 0, time.UTC) }

// sample returns a page of an hour of traffic in n intervals, with the given number of limits.
func sample(n, limits int) *chart.Page {
	times := chart.Times{Start: start(), Step: time.Hour / time.Duration(n)}
	p := &chart.Page{
		Title:    "Replay of an hour of traffic",
		Subtitle: "8,819 calls from 2023-11-16 18:15:46 to 19:14:21 UTC against limits.yaml",
		Facts: []chart.Fact{
			{"trace", "azure-llm-2023-code.csv"}, {"limits", "limits.yaml"},
			{"entities", "4 (tenant-1 to tenant-4)"}, {"latency", "200 ms and 20 ms a token"},
			{"costs", "rpm=1 tpm=input+output usd_micros=input*3+output*15"},
		},
		Tiles: []chart.Tile{
			{Name: "Calls", Value: "8,819", Note: "155 a minute"},
			{Name: "Admitted", Value: "8,312", Note: "94.2 %, 17,441,901 tokens"},
			{Name: "Denied", Value: "507", Note: "5.7 %, 1,310,022 tokens", Tone: chart.Bad},
			{Name: "Waited", Value: "12.4 s", Note: "95 % of those admitted"},
		},
		Footer: "weir replay --html replay.html --limits limits.yaml azure-llm-2023-code.csv",
	}
	p.Sections = []chart.Section{
		{Title: "Over time", Figures: []chart.Figure{&chart.Columns{
			Title: "Calls", Unit: "calls", Times: times, Series: traffic(n, 1),
		}}},
		{Title: "Limits", Table: sampleTable(limits), Figures: []chart.Figure{denials(limits)}},
		{
			Title: "Use against capacity", Note: "The most that was in use in each interval.",
			Figures: uses(n, limits, times),
		},
		{Title: "Waits and estimates", Figures: []chart.Figure{waits(), estimates()}},
		{Title: "Two limits files", Figures: []chart.Figure{comparison(n, times)}},
	}
	return p
}

// traffic returns numbers of admitted and denied calls.
func traffic(n int, seed uint64) []chart.Series {
	random := rand.New(rand.NewPCG(seed, 1))
	admitted, denied := make([]int64, n), make([]int64, n)
	for i := range n {
		calls := 120 + random.Int64N(60) + int64(60*(i%17)/17)
		if calls > 190 {
			denied[i] = (calls - 180) * 2
		}
		if random.IntN(30) == 0 {
			denied[i]++
		}
		admitted[i] = calls - denied[i]
	}
	return []chart.Series{
		{Name: "admitted", Tone: chart.Good, Values: admitted},
		{Name: "denied", Tone: chart.Bad, Values: denied},
	}
}

// sampleLimits are limits with their names, kinds and capacities.
func sampleLimits(n int) (names, kinds []string, capacity []int64) {
	for i := range n {
		entity := fmt.Sprintf("tenant-%d", 1+i/2)
		name, kind, most := "rpm", "bucket", int64(90)
		if i%2 == 1 {
			name, most = "tpm", 240_000
		}
		if of := i - 8; of >= 0 && of < 5 {
			entity = "acme"
			name = []string{"rpm", "tpm", "input_tokens", "parallel", "usd_micros *"}[of]
			kind = []string{"bucket", "bucket", "window", "concurrency", "budget"}[of]
			most = []int64{300, 600_000, 14_000_000, 32, 40_000_000}[of]
		}
		names, kinds, capacity = append(names, entity+" "+name), append(kinds, kind), append(capacity, most)
	}
	return names, kinds, capacity
}

func sampleTable(limits int) *chart.Table {
	names, kinds, capacity := sampleLimits(limits)
	t := &chart.Table{
		Columns: []chart.Column{
			{Name: "Limit"}, {Name: "Kind"}, {Name: "Admitted", Number: true},
			{Name: "Denied", Number: true, Alarm: true}, {Name: "Sole cause", Number: true, Alarm: true},
			{Name: "Used", Number: true}, {Name: "Available", Number: true}, {Name: "Used %", Number: true},
		},
		Note: "* a shadow limit denies nothing: “denied” is what it would have denied.",
	}
	for i := range names {
		denied := fmt.Sprint(i % 4 * 37)
		t.Rows = append(t.Rows, []string{names[i], kinds[i], "2,204", denied, fmt.Sprint(i % 3 * 11),
			fmt.Sprintf("%d", capacity[i]*40), fmt.Sprintf("%d", capacity[i]*59), "67.7"})
	}
	return t
}

func denials(limits int) *chart.Bars {
	names, _, _ := sampleLimits(limits)
	only, shared := make([]int64, limits), make([]int64, limits)
	for i := range limits {
		only[i], shared[i] = int64(i%4*37), int64(i%3*11)
	}
	return &chart.Bars{
		Title: "Denials by limit", Unit: "calls", Labels: names,
		Series: []chart.Series{
			{Name: "only this limit", Tone: chart.Bad, Values: only}, {Name: "others too", Values: shared},
		},
	}
}

func uses(n, limits int, times chart.Times) []chart.Figure {
	names, _, capacity := sampleLimits(limits)
	var out []chart.Figure
	for i := range names {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		use, values := capacity[i]/2, make([]int64, n)
		for k := range values {
			use = min(max(use+random.Int64N(capacity[i]/2+1)-capacity[i]/4, 0), capacity[i])
			values[k] = use
		}
		out = append(out, &chart.Lines{
			Title: names[i], Times: times,
			Series: []chart.Series{{Name: "in use", Values: values}},
			Rule:   &chart.ReferenceLine{Name: "capacity", Value: capacity[i]},
		})
	}
	return out
}

// binned counts samples in bins that end at powers of four.
func binned(title, unit string, samples ...chart.Series) *chart.Distribution {
	d := &chart.Distribution{Title: title, Unit: unit, Bounds: []int64{0}}
	for b := int64(1); b < 1<<20; b *= 4 {
		d.Bounds = append(d.Bounds, b)
	}
	for _, s := range samples {
		counts := make([]int64, len(d.Bounds)+1)
		for _, v := range s.Values {
			i, _ := slices.BinarySearch(d.Bounds, v)
			counts[i]++
		}
		d.Series = append(d.Series, chart.Series{Name: s.Name, Tone: s.Tone, Values: counts})
	}
	return d
}

func waits() *chart.Distribution {
	random := rand.New(rand.NewPCG(3, 3))
	var values []int64
	for range 507 {
		values = append(values, int64(random.ExpFloat64()*9000))
	}
	for range 3000 {
		values = append(values, 0)
	}
	d := binned("Wait until admitted", chart.Milliseconds,
		chart.Series{Name: "calls", Values: values})
	d.Note = "Half within 0 ms, 95 % within 12.4 s, all within 1 min 20 s."
	return d
}

func estimates() *chart.Distribution {
	random := rand.New(rand.NewPCG(4, 4))
	var truth, estimate []int64
	for range 3000 {
		v := int64(random.ExpFloat64() * 200)
		truth, estimate = append(truth, v), append(estimate, 300+random.Int64N(300))
	}
	return binned("Output tokens of a call", "tokens",
		chart.Series{Name: "used", Values: truth}, chart.Series{Name: "estimated", Values: estimate})
}

func comparison(n int, times chart.Times) *chart.Comparison {
	return &chart.Comparison{
		Title: "Calls", Unit: "calls", Times: times,
		Above: chart.ComparisonSide{Name: "limits.yaml", Series: traffic(n, 1)},
		Below: chart.ComparisonSide{Name: "tighter.yaml", Series: traffic(n, 8)},
	}
}

// hostilePage returns a page with hostile names in every place, and numbers of every size.
func hostilePage() *chart.Page {
	long := strings.Repeat("x", 200)
	right := strings.Repeat("שלום ", 20)
	values := []int64{0, -5, 1, 1<<63 - 1, -1 << 63, 7}
	series := []chart.Series{
		{Name: hostile, Tone: chart.Good, Values: values},
		{Name: long, Tone: chart.Bad, Values: values[:3]}, {Name: right, Values: values},
	}
	times := chart.Times{Start: start(), Step: time.Minute}
	return &chart.Page{
		Title: hostile, Subtitle: long, Footer: hostile + long,
		Facts: []chart.Fact{{hostile, long}, {right, hostile}, {long, right}},
		Tiles: []chart.Tile{{hostile, "9,223,372,036,854,775,807", long, chart.Bad}, {long, long, right, 0}},
		Sections: []chart.Section{{
			Title: hostile, Note: long,
			Table: &chart.Table{
				Columns: []chart.Column{{Name: hostile}, {Name: long, Number: true}, {Name: right}},
				Rows:    [][]string{{long, hostile, right}, {}, {right, long, "a", "b"}}, Note: hostile,
			},
			Figures: []chart.Figure{
				&chart.Columns{Title: hostile, Note: hostile, Unit: hostile, Times: times, Series: series},
				&chart.Lines{
					Title: long, Note: long, Unit: long, Series: series,
					Rule: &chart.ReferenceLine{Name: hostile, Value: 1<<63 - 1},
				},
				&chart.Bars{Title: right, Unit: hostile, Labels: []string{hostile, long, right}, Series: series},
				&chart.Meters{Title: long, Note: hostile, Meters: []chart.Meter{
					{hostile, 1<<63 - 1, 1, long}, {long, -1 << 63, 0, right}, {right, 1, 1 << 62, hostile},
				}},
				&chart.Distribution{Title: hostile, Unit: long, Bounds: []int64{-1, 5}, Series: series},
				&chart.Comparison{
					Title: hostile, Note: long, Unit: long, Above: chart.ComparisonSide{long, series},
					Below: chart.ComparisonSide{hostile, series[:1]},
				},
			},
		}},
	}
}
