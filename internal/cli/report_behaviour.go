package cli

import (
	"bytes"
	"fmt"

	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// retries says what became of the calls that came back.
func (r *replayPrint) retries(b *bytes.Buffer) {
	c := r.Retry
	if c == nil {
		return
	}
	fmt.Fprintf(b, "attempts  %s: %s admitted when they came, %s when they came back, %s gave up\n",
		text.FormatInt(c.Attempts), text.Plural(int(c.AdmittedFirst), "call", "calls"),
		text.FormatInt(c.AdmittedLater), text.FormatInt(c.GivenUp))
	w := c.WaitMS
	fmt.Fprintf(b, "wait until admitted  half within %s, 95 %% within %s, 99 %% within %s, at most %s\n",
		text.FormatMS(w.P50), text.FormatMS(w.P95), text.FormatMS(w.P99), text.FormatMS(w.Max))
}

// estimates says how good the estimates were.
func (r *replayPrint) estimates(b *bytes.Buffer) {
	e := r.Estimates
	if e == nil || e.Calls == 0 {
		return
	}
	b.WriteString("\n")
	r.estimateRows().Write(b)
	b.WriteString("\n")
}

// estimateRows are the callers' scores, if there are several and not too many, and that of all
// calls.
func (r *replayPrint) estimateRows() *text.Table {
	e := r.Estimates
	t := &text.Table{Heads: []string{
		"ESTIMATE OF", ">CALLS", ">WITHIN", ">%", ">OVERRUNS",
		">TOKENS USED", ">RESERVED IN VAIN", ">%", ">NOT RESERVED",
	}}
	add := func(name string, s *replay.EstimateScore) {
		over := "-"
		if s.OverPercent != "" {
			over = string(s.OverPercent)
		}
		t.Add(name, text.FormatInt(s.Calls), text.FormatInt(s.Covered), string(s.CoveredPercent),
			text.FormatInt(s.Overruns), text.GroupDigits(s.TokensUsed.String()), text.GroupDigits(s.TokensOver.String()),
			over, text.GroupDigits(s.TokensUnder.String()))
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
