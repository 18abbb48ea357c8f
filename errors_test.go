package weir_test

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestDeniedErrorNamesWhoAsked checks the text of a denial: it names who asked wherever the limits
// that denied do not.
func TestDeniedErrorNamesWhoAsked(t *testing.T) {
	t.Parallel()
	team, acme := weir.Subject{Entity: "team-a", Resource: "m"}, weir.Subject{Entity: "acme", Resource: "m"}
	limit := func(of weir.Subject, exceeded, shadow bool) weir.LimitStatus {
		return weir.LimitStatus{
			Entity: of.Entity, Resource: of.Resource, Limit: "rpm", Exceeded: exceeded, Shadow: shadow,
		}
	}
	for _, c := range []struct {
		name   string
		denied weir.DeniedError
		want   string
	}{
		{"its own limit", weir.DeniedError{
			Charges: []weir.Subject{team}, Limits: []weir.LimitStatus{limit(team, true, false)},
		}, "denied by team-a/m rpm"},
		{"its parent's limit", weir.DeniedError{
			Charges: []weir.Subject{team}, Limits: []weir.LimitStatus{limit(acme, true, false)},
		}, "denied by acme/m rpm, asked by team-a/m"},
		{"its own limit and its parent's", weir.DeniedError{
			Charges: []weir.Subject{team},
			Limits:  []weir.LimitStatus{limit(team, true, false), limit(acme, true, false)},
		}, "denied by team-a/m rpm, acme/m rpm, asked by team-a/m"},
		{"its own shadow limit and its parent's", weir.DeniedError{
			Charges: []weir.Subject{team},
			Limits:  []weir.LimitStatus{limit(team, true, true), limit(acme, true, false)},
		}, "denied by acme/m rpm, asked by team-a/m"},
		{"a parent's limit, not exceeded", weir.DeniedError{
			Charges: []weir.Subject{team},
			Limits:  []weir.LimitStatus{limit(team, true, false), limit(acme, false, false)},
		}, "denied by team-a/m rpm"},
		{"several charges", weir.DeniedError{
			Charges: []weir.Subject{team, acme, team}, Limits: []weir.LimitStatus{limit(team, true, false)},
		}, "denied by team-a/m rpm, asked by team-a/m, acme/m"},
		{"no limit, but other writers", weir.DeniedError{
			Charges: []weir.Subject{team}, Contended: true,
		}, "denied by other writers, asked by team-a/m"},
		{"nobody knows who asked", weir.DeniedError{
			Limits: []weir.LimitStatus{limit(team, true, false)},
		}, "denied by team-a/m rpm"},
	} {
		c.denied.RetryAfter = 6 * time.Second
		if got := c.denied.Error(); got != "weir: "+c.want+": retry after 6s" {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
