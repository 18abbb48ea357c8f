package cli

import (
	"bytes"
	"fmt"

	"github.com/weir-limiter/weir/internal/replay"
)

// retries says what became of the calls that came back.
func (r *replayPrint) retries(b *bytes.Buffer) {
	c := r.Retry
	if c == nil {
		return
	}
	fmt.Fprintf(b, "attempts  %s: %s admitted when they came, %s when they came back, %s gave up\n",
		thousands(c.Attempts), plural(int(c.AdmittedFirst), "call", "calls"),
		thousands(c.AdmittedLater), thousands(c.GivenUp))
	w := c.WaitMS
	fmt.Fprintf(b, "wait until admitted  half within %s, 95 %% within %s, 99 %% within %s, at most %s\n",
		milliseconds(w.P50), milliseconds(w.P95), milliseconds(w.P99), milliseconds(w.Max))
}

// estimates says how good the estimates were.
func (r *replayPrint) estimates(b *bytes.Buffer) {
	e := r.Estimates
	if e == nil || e.Calls == 0 {
		return
	}
	b.WriteString("\n")
	r.estimateRows().write(b)
	b.WriteString("\n")
}

// estimateRows are the callers' scores, if there are several and not too many, and that of all
// calls.
func (r *replayPrint) estimateRows() *table {
	e := r.Estimates
	t := &table{columns: []column{
		{"ESTIMATE OF", false}, {"CALLS", true}, {"WITHIN", true}, {"%", true}, {"OVERRUNS", true},
		{"TOKENS USED", true}, {"RESERVED IN VAIN", true}, {"%", true}, {"NOT RESERVED", true},
	}}
	add := func(name string, s *replay.EstimateScore) {
		over := "-"
		if s.OverPercent != "" {
			over = string(s.OverPercent)
		}
		t.add(name, thousands(s.Calls), thousands(s.Covered), string(s.CoveredPercent),
			thousands(s.Overruns), separate(s.TokensUsed.String()), separate(s.TokensOver.String()),
			over, separate(s.TokensUnder.String()))
	}
	if e.CallersTotal > 1 {
		for i := range e.Callers {
			c := &e.Callers[i]
			name := c.Entity
			if r.Resource == "" {
				name += " on " + c.Model
			}
			add(name, &c.EstimateScore)
		}
	}
	add("all calls", &e.EstimateScore)
	return t
}
