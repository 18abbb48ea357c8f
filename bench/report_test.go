package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		numbers []int64
		want    spread
	}{
		{nil, spread{}},
		{[]int64{7}, spread{7, 7, 7}},
		{[]int64{4, 1, 3, 2}, spread{1, 2, 3}},
		{[]int64{5, 1, 4, 2, 3, 6, 8, 7}, spread{2, 4, 6}},
	} {
		if got := spreadOf(c.numbers); got != c.want {
			t.Errorf("%d: got %+v, want %+v", c.numbers, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{decimal(1_234_567, 1), "1,234.6"},
		{decimal(1_950, 1), "2.0"},
		{decimal(49, 1), "0.0"},
		{decimal(1_004, 2), "1.00"},
		{decimal(1_005, 2), "1.01"},
		{grouped(0), "0"},
		{grouped(999), "999"},
		{grouped(-1_000), "-1,000"},
		{grouped(-999), "-999"},
		{grouped(1_234_567), "1,234,567"},
		{counted(1, "key"), "1 key"},
		{counted(2_000, "key"), "2,000 keys"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPerOperation(t *testing.T) {
	t.Parallel()
	m := &measure{Ops: 4, NS: 2_000, CPU: 1_000}
	if m.picoseconds() != 500_000 || m.cpuPicoseconds() != 250_000 || m.speed() != 2_000_000 {
		t.Errorf("got %d ps, %d ps of CPU, %d/s", m.picoseconds(), m.cpuPicoseconds(), m.speed())
	}
	none := &measure{}
	if none.picoseconds() != 0 || none.speed() != 0 || thousandths(1, 0) != 0 {
		t.Error("of nothing: want zeros")
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	cost, speed := &ratio{goal: 8_000}, &ratio{goal: 600, least: true}
	for _, c := range []struct {
		ratio         *ratio
		median, total int64
		want          string
	}{
		{cost, 8_000, 7_000, "kept"},
		{cost, 8_000, 8_001, "kept in the median alone"},
		{cost, 8_001, 7_000, "missed"},
		{speed, 600, 700, "kept"},
		{speed, 600, 599, "kept in the median alone"},
		{speed, 599, 700, "missed"},
		{&ratio{}, 1, 1, ""},
	} {
		if got := c.ratio.verdict(c.median, c.total); got != c.want {
			t.Errorf("%+v: %d, %d: got %q, want %q", c.ratio, c.median, c.total, got, c.want)
		}
	}
	if got, want := (&ratio{goal: 8_000, aim: 3_000}).bound(), "≤ 8.0 (aim 3.0)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := speed.bound(), "≥ 0.6"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := &result{
		item:   fakeItem(),
		totals: []measure{{Ops: 10, NS: 5_000, Admitted: 10}, {Ops: 10, NS: 2_000, Denied: 10}},
		rounds: [][]measure{{{Ops: 10, NS: 5_000}, {Ops: 10, NS: 2_000}}},
	}
	r.item.title = "Title"
	var out bytes.Buffer
	if err := (&reporter{w: &out, markdown: true}).result(r); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"### Title (fake)",
		"|  | ns/op | CPU ns/op | allocs/op | B/op | admitted | denied |",
		"|---|--:|--:|--:|--:|--:|--:|",
		"| a | 500.0 | 0.0 | 0.00 | 0 | 10 | 0 |",
		"| b | 200.0 | 0.0 | 0.00 | 0 | 0 | 10 |",
		"| a : b | 2.50 | 2.50–2.50 | 2.50 | 0.00 | ≤ 3.0 | kept |",
	}
	for _, line := range want {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("got\n%s\nwant the line %q", &out, line)
		}
	}
}
