package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	s := &settings{rounds: 1, slice: time.Millisecond, runs: 3, length: time.Second, warm: 5000}
	slow := reply{Ops: 1000, Admitted: 1000, NS: 1e9, CPU: 1e9}
	played := func(speed int64) reply {
		return reply{
			Ops: speed, Admitted: speed, NS: 1e9, CPU: speed * 250_000, Other: speed * 1_500_000, P50: 2_500_000,
			P99: 9_000_000, Counts: map[string]int64{countWrites: speed / 10},
		}
	}
	table := onTable("dynamodb/test", "%d callers", []string{"hot"}, 1, "")
	table.sides = []side{{"fast", nil, ""}, {"slow", nil, ""}}
	table.ratios = []ratio{{over: 0, under: 1, of: speed, goal: 15}, {over: 0, under: 1, of: p50}, {over: 1, under: 0}}
	for _, c := range []struct {
		comparison *comparison
		rounds     [][]reply
		want       []string
	}{
		{
			&comparison{
				name: "a", title: "Title", note: "A note.", store: inMemory(),
				sides: []side{{"a", nil, ""}, {"b", nil, ""}}, ratios: []ratio{{over: 0, under: 1, goal: 3}},
			},
			[][]reply{{{Ops: 10, NS: 5_000, CPU: 6_000, Admitted: 10}, {Ops: 10, NS: 2_000, Denied: 10}}},
			[]string{
				"### Title (a)", "A note. 1 round of 1ms.", "|---|--:|--:|--:|--:|--:|--:|--:|",
				"|  | ns/op | CPU ns/op | allocs/op | B/op | admitted | denied | ops/s |",
				"| a | 500.0 | 600.0 | 0.00 | 0 | 10 | 0 | 2,000,000 |",
				"| a : b | 2.50 | 2.50–2.50 | 2.50–2.50 | 2.50 |  | ≤ 3.0 | kept |",
			},
		},
		{
			table,
			[][]reply{{played(12_000), slow}, {played(20_000), slow}, {played(31_000), slow}},
			[]string{
				"3 rounds of 1s, each side after 5,000 calls.",
				"|  | calls/s | range | p50 ms | p99 ms | CPU µs per call | of DynamoDB Local | admitted | writes per call |",
				"| fast | 20,000 | 12,000–31,000 | 2.50 | 9.00 | 250 | 1,500 | 63,000 | 0.100 |",
				"| slow | 1,000 | 1,000–1,000 |  |  | 1,000 |  | 3,000 |  |",
				"| calls/s, fast : slow | 20.00 | 12.00–31.00 | 12.00–31.00 | 21.00 | 4.00 | ≥ 15.0 | kept |",
				"| p50, fast : slow | 0.00 |", "| slow : fast | 20.00 |",
			},
		},
	} {
		var out bytes.Buffer
		r := &result{comparison: c.comparison, settings: s, rounds: c.rounds}
		if err := r.writeTo(&out, true); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("got\n%s\nwant %q in it", &out, want)
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	costs, speeds := &ratio{goal: 8, aim: 3}, &ratio{goal: 0.6, of: speed}
	for _, c := range []struct {
		ratio         *ratio
		median, total float64
		bound, want   string
	}{
		{costs, 8, 7, "≤ 8.0 (aim 3.0)", "kept"},
		{costs, 8, 8.001, "≤ 8.0 (aim 3.0)", "kept in the median alone"},
		{costs, 8.001, 7, "≤ 8.0 (aim 3.0)", "missed"},
		{speeds, 0.6, 0.7, "≥ 0.6", "kept"},
		{speeds, 0.6, 0.599, "≥ 0.6", "kept in the median alone"},
		{speeds, 0.599, 0.7, "≥ 0.6", "missed"},
		{&ratio{}, 1, 1, "", ""},
	} {
		bound, got := c.ratio.bound(), c.ratio.result(c.median, c.total)
		if bound != c.bound || got != c.want {
			t.Errorf("%+v: %g, %g: got %q, %q, want %q, %q", c.ratio, c.median, c.total, bound, got, c.bound, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		numbers []float64
		want    spread
	}{
		{nil, spread{}},
		{[]float64{7}, spread{7, 7, 7, 7, 7}},
		{[]float64{4, 1, 3, 2}, spread{1, 1, 2, 3, 4}},
		{[]float64{5, 1, 4, 2, 3, 6, 8, 7}, spread{1, 2, 4, 6, 8}},
	} {
		if got := spreadOf(c.numbers); got != c.want {
			t.Errorf("%g: got %+v, want %+v", c.numbers, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{number(1_234.567, 1), "1,234.6"},
		{number(1.95, 1), "1.9"}, // which is a little less
		{number(0.049, 1), "0.0"},
		{number(0, 0), "0"},
		{number(999, 0), "999"},
		{number(-1_000, 0), "-1,000"},
		{number(-999, 2), "-999.00"},
		{number(1_234_567, 0), "1,234,567"},
		{unless0(0, 2), ""},
		{counted(1, "key"), "1 key"},
		{counted(2_000, "key"), "2,000 keys"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
