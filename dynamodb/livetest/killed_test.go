package livetest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/soak"
)

// TestKilledServers kills servers under load. Every lease can be settled on every other server,
// nothing is settled twice, nothing is over-admitted, and nothing is lost but what was under way at
// a killed server. It is not parallel to the other tests, whose processes need the machine.
func TestKilledServers(t *testing.T) {
	seed := soak.Seed(t)
	program := buildWeir(t)
	kills := soak.Amount(4, 60)
	outages := []outage{
		{name: "hot", entities: 1, servers: 3, kills: kills},
		{name: "cascade", entities: 4, servers: 3, kills: kills, parent: true},
		{name: "python", entities: 1, servers: 2, kills: kills, pythons: 2},
		ownLeases(1),
		ownLeases(3),
	}
	if soak.On() {
		outages = append(outages, outage{name: "several", entities: 6, servers: 3, kills: kills})
	}
	for i, s := range outages {
		t.Run(s.name, func(t *testing.T) {
			if !soak.On() {
				t.Parallel()
			}
			found := playOutage(t, s, program, seed+uint64(i)).judge()
			if s.fails {
				mustFail(t, found)
				return
			}
			for _, finding := range found {
				t.Error(finding)
			}
		})
	}
}

// ownLeases checks the checks: servers that keep their leases to themselves pass them if there is
// one that runs all the time, and otherwise fail.
func ownLeases(servers int) outage {
	return outage{
		name: "own leases of " + strconv.Itoa(servers), entities: 1, servers: servers, kills: 2,
		spare: true, query: "&leases=process", fails: servers > 1,
	}
}

// mustFail checks what is found if servers keep their leases to themselves.
func mustFail(t *testing.T, found []string) {
	t.Helper()
	for _, want := range []string{
		"complete: unknown lease", "cancel: unknown lease", "adjust: unknown lease",
		"extend: unknown lease", scarceLimit + ": the items say", "are lost",
	} {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("nothing was found that says %q", want)
		}
	}
}
