package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestContestReport prints the median and the range of the runs, and what keeps a goal.
func TestContestReport(t *testing.T) {
	t.Parallel()
	c := &contest{
		name: "dynamodb/test", title: "A title", note: "A note.",
		players: []player{{contestWeir, 1}, {contestPython, 2}},
		figures: []side{{"fast", 0, orderRun}, {"slow", 1, orderRun}},
		ratios: []ratio{
			{over: 0, under: 1, goal: 15_000, least: true}, {over: 0, under: 1, goal: 21_000, least: true},
			{over: 1, under: 0},
		},
	}
	r := &contestResult{contest: c, setting: &settings{runs: 3, length: 5 * time.Second, warm: 5000}}
	for _, speed := range []int64{12_000, 20_000, 31_000} {
		r.runs = append(r.runs, []contestReply{
			{Admitted: speed, NS: 1e9, CPU: speed * 250_000, Writes: speed / 10, Reads: speed / 1000},
			{Admitted: 1000, NS: 1e9, CPU: 1e9},
		})
		r.server = append(r.server, []int64{speed * 1_500_000, 0})
	}
	var out bytes.Buffer
	if err := (&reporter{w: &out, markdown: true}).contestResult(r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"A title (dynamodb/test)", "3 runs of 5s each, after 5,000 calls",
		"| fast | 20,000 | 12,000–31,000 | 0.250 | 1.500 | 0.100 | 0.000 | 0.001 |",
		"| slow | 1,000 | 1,000–1,000 | 1.000 |  |  |  |  |",
		"| fast : slow | 20.00 | 12.00–31.00 | ≥ 15.0 | kept |",
		"| fast : slow | 20.00 | 12.00–31.00 | ≥ 21.0 | missed |",
		"| slow : fast | 0.05 | 0.03–0.08 |  |  |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s\nwant %q in it", &out, want)
		}
	}
}
