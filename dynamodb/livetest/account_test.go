package livetest

import "testing"

// TestAccount checks that every milli-unit that is lost, counted twice or not logged is found.
func TestAccount(t *testing.T) {
	t.Parallel()
	const key = "n/BUCKET#e#r#0"
	w := &World{
		Resource: "r", StartUS: origin, EndUS: origin + 10*second,
		Limits: map[string]map[string]Limit{"e": {"l": {100, 10, 1}}},
	}
	admitted := func(process string, cost int64) Record {
		return Record{
			Kind: Call, Process: process, Entity: "e", Resource: "r", Verdict: Admitted,
			Costs: map[string]int64{"l": cost}, Before: origin + 1, After: origin + 2,
		}
	}
	records := []Record{
		{Kind: Made, Process: "go-0", Item: key, To: 1000, Credit: map[string]int64{"l": 100_000}},
		admitted("go-0", 60), admitted("python-0", 30),
		{Kind: Write, Process: "go-0", Item: key, From: 1000, To: 2000, Credit: map[string]int64{"l": 10_000}},
		{
			Kind: Write, Process: "python-0", Item: key, From: 2000, To: 3000, Credit: map[string]int64{"l": 9500},
			Share: map[string]Share{"l": {Capacity: 100_000, Refill: 10_000, PeriodMS: 1000, Read: 20_000}},
		},
		{Kind: Write, Process: "go-0", Item: "n/BUCKET#e#r2#0", Credit: map[string]int64{"l": 77}},
	}
	cases := []struct {
		name           string
		left, consumed int64
		off            int64
	}{
		{"right", 29_500, 90_000, 0},
		{"a unit too many", 30_500, 90_000, 1000},
		{"a milli-unit lost", 29_499, 90_000, -1},
		{"consumption lost", 29_500, 80_000, -10_000},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := Histories(w, records)[0]
			a := h.Account(records, []Item{{Key: key, Limits: map[string]Counts{"l": {Balance: c.left, Consumed: c.consumed}}}})
			if a.Off != c.off || a.Lost != 500 || a.Broken != 0 || a.Refilled[SideGo] != 10_000 {
				t.Errorf("got %+v, want %d off and 500 lost", a, c.off)
			}
			if told := h.Consumed(); told != 90_000 {
				t.Errorf("the callers consumed %d, want 90000", told)
			}
		})
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	link := func(from, to int64) *Record { return &Record{From: from, To: to} }
	if n := broken(map[string][]*Record{"a": {link(2, 2), link(0, 1), link(2, 4), link(1, 2)}}); n != 0 {
		t.Errorf("got %d breaks in a whole chain", n)
	}
	if n := broken(map[string][]*Record{"a": {link(0, 1), link(2, 4)}}); n != 1 {
		t.Errorf("got %d breaks, want the one where a refill is missing", n)
	}
}
