//go:build cgo

package livetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// The names of the resources. Units reserved on brief return by themselves soon. Those reserved on
// long return in an hour.
const (
	brief = "brief"
	long  = "long"
)

// span is how long units of windows and slots are occupied on the brief resource. late is how late
// they may return, with an allowance for a busy machine.
const (
	span = 3 * time.Second
	late = 2 * time.Second
)

// The capacities, at which some entities have full limits at the end.
const (
	capacity = 5400
	slots    = 64
)

// limitNames are the limits of both resources. seen is a shadow limit.
var limitNames = [...]string{"tokens", "window", "budget", "slots", "seen"}

// limitsFile returns a limits file with all kinds. The bucket regains a milli-unit in a minute and
// a half, so that no unit returns during a test.
func limitsFile() string {
	var text strings.Builder
	text.WriteString("version: 1\nresources:\n")
	for _, r := range []struct {
		name    string
		seconds int
	}{{brief, int(span / time.Second)}, {long, 3600}} {
		fmt.Fprintf(&text, `  %s:
    limits:
      tokens: {capacity: %d, refill_amount: 1, refill_period: 86400}
      window: {kind: window, capacity: %d, window: %d}
      budget: {kind: budget, capacity: %d, every: month}
      slots: {kind: concurrency, capacity: %d, timeout: %d}
      seen: {kind: budget, capacity: 10, every: month, enforce: false}
`, r.name, capacity, capacity, r.seconds, capacity, slots, r.seconds)
	}
	return text.String()
}

// room returns the capacity of a limit.
func room(limit string) int64 {
	switch limit {
	case "slots":
		return slots
	case "seen":
		return 10
	}
	return capacity
}

// entities is the number of entities on each resource.
const entities = 20

// planned returns the request of one step of a test. Each entity asks for much of one kind.
func planned(seed uint64, step int, resource string) *weir.Request {
	d := dice(seed, step)
	e := d.IntN(entities)
	costs := weir.Costs{"slots": 1, "seen": 1}
	for i, name := range limitNames[:3] {
		most := 100
		if e%4 == i {
			most = 300
		}
		costs[name] = d.Int64N(int64(most)) + 1
	}
	if e%4 == 3 {
		costs["slots"] = 2
	}
	return &weir.Request{
		LeaseID: weir.NewLeaseID(time.Now()),
		Entity:  fmt.Sprintf("%s-%d", resource, e), Resource: resource, Costs: costs,
	}
}

// actuals returns what a lease is completed with, up to twice what was reserved. Half of them do
// not name the window.
func actuals(seed uint64, step int, r *weir.Request) weir.Costs {
	d := dice(seed^1, step)
	used := weir.Costs{}
	for _, name := range limitNames[:3] {
		if name != "window" || d.IntN(2) == 0 {
			used[name] = d.Int64N(2*r.Costs[name] + 1)
		}
	}
	return used
}

// account is a limit of an entity.
type account struct{ entity, limit string }

// ledger maps each account to the units that it is expected to have in use.
type ledger map[account]int64

// take adds the costs of an admitted request.
func (l ledger) take(r *weir.Request) {
	for name, n := range r.Costs {
		l[account{r.Entity, name}] += n
	}
}

// settle applies a completion: named units are replaced, and slots return.
func (l ledger) settle(r *weir.Request, used weir.Costs) {
	for name, n := range used {
		l[account{r.Entity, name}] += n - r.Costs[name]
	}
	l[account{r.Entity, "slots"}] -= r.Costs["slots"]
}

// refuses reports whether what is in use leaves no room for a request.
func (l ledger) refuses(r *weir.Request) bool {
	for name, n := range r.Costs {
		if name != "seen" && l[account{r.Entity, name}]+n > room(name) {
			return true
		}
	}
	return false
}
