package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// liveReport is the part of a report that only a replay against a server has.
type liveReport struct {
	Server string `json:"server"`
	Speed  int64  `json:"speed"`
	// Sent is how many calls were sent; fewer than the trace has where the replay was stopped.
	Sent int64 `json:"sent"`
	// Late are the calls that were sent more than 20 ms after their instant.
	Late      int64 `json:"late"`
	LateMaxMS int64 `json:"late_max_ms"`
	// Errors are the calls that got neither a lease nor a denial, by code.
	Errors map[string]int64 `json:"errors"`
	// Unsettled leases could not be completed. Degraded ones were admitted without a charge.
	Unsettled int64 `json:"unsettled"`
	Degraded  int64 `json:"degraded"`
	// Stopped is why the replay ended early; empty if it did not.
	Stopped string `json:"stopped,omitempty"`
}

func newLiveReport(p *player, server string, stopped error) *liveReport {
	c := &p.count
	r := &liveReport{
		Server: server, Speed: p.speed, Sent: c.sent, Late: c.late,
		LateMaxMS: c.lateMax.Milliseconds(), Errors: map[string]int64{},
		Unsettled: c.unsettled, Degraded: c.degraded,
		Stopped: strings.Join(complaints(stopped), "; "),
	}
	for code, n := range c.errors {
		r.Errors[string(code)] = n
	}
	return r
}

// foot says what else became of the calls.
func (r *liveReport) foot(b *bytes.Buffer) {
	if len(r.Errors) > 0 {
		var codes []string
		for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
			codes = append(codes, thousands(r.Errors[code])+" "+printable(code))
		}
		fmt.Fprintf(b, "errors are no denials: %s\n", strings.Join(codes, ", "))
	}
	if r.Unsettled > 0 {
		fmt.Fprintf(b, "%s could not be settled\n", plural(int(r.Unsettled), "lease", "leases"))
	}
	if r.Degraded > 0 {
		fmt.Fprintf(b, "%s admitted without being charged: the store did not answer\n",
			plural(int(r.Degraded), "call was", "calls were"))
	}
	late := "none late"
	if r.Late > 0 {
		late = fmt.Sprintf("%s more than %s late, at most %s",
			thousands(r.Late), milliseconds(lateBy.Milliseconds()), milliseconds(r.LateMaxMS))
	}
	fmt.Fprintf(b, "sent  %s, %s\n", plural(int(r.Sent), "call", "calls"), late)
	if r.Stopped != "" {
		fmt.Fprintf(b, "stopped early: %s\n", r.Stopped)
	}
}
