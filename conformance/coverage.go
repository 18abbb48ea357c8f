package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// Coverage counts what random operations have met.
type Coverage struct {
	// Cells is the number of times that each verb had each outcome.
	Cells map[model.Note]int
	// Seen are the effects of time on limits and leases.
	Seen model.TimeEvents
	// DST is the number of times that a zone of the definitions changed its offset during a script.
	DST int
}

func newTable() *Coverage { return &Coverage{Cells: make(map[model.Note]int)} }

// Ops returns the number of operations.
func (t *Coverage) Ops() int {
	n := 0
	for _, count := range t.Cells {
		n += count
	}
	return n
}

// count counts an outcome. The receiver may be nil.
func (t *Coverage) count(n model.Note) {
	if t != nil {
		t.Cells[n]++
	}
}

// merge adds what a script has met. The receiver may be nil.
func (t *Coverage) merge(l *lockstep) {
	if t == nil {
		return
	}
	t.DST += l.dst
	s := l.model.Seen()
	t.Seen.Refills += s.Refills
	t.Seen.WindowEnds += s.WindowEnds
	t.Seen.HoldTimeouts += s.HoldTimeouts
	t.Seen.Rollovers += s.Rollovers
	t.Seen.Expired += s.Expired
	t.Seen.Early += s.Early
}

// Rare returns the possible outcomes, and the effects of time, that were met fewer than least
// times.
func (t *Coverage) Rare(h *Harness, least int) []string {
	var rare []string
	for _, cell := range possible(h) {
		if n := t.Cells[cell]; n < least {
			rare = append(rare, fmt.Sprintf("%s: %s: %d", cell.Verb, cell.Outcome, n))
		}
	}
	for _, e := range t.events(h) {
		if e.count < least {
			rare = append(rare, fmt.Sprintf("%s: %d", e.name, e.count))
		}
	}
	return rare
}

type timeEvent struct {
	name  string
	count int
}

// events returns the effects that time can have on the kinds that a store has.
func (t *Coverage) events(h *Harness) []timeEvent {
	var events []timeEvent
	has := func(k weir.Kind, name string, count int) {
		if slices.Contains(h.Traits.Kinds, k) {
			events = append(events, timeEvent{name, count})
		}
	}
	has(weir.Bucket, "refills", t.Seen.Refills)
	has(weir.Window, "window ends", t.Seen.WindowEnds)
	has(weir.Concurrency, "hold timeouts", t.Seen.HoldTimeouts)
	has(weir.Budget, "period rollovers", t.Seen.Rollovers)
	has(weir.Budget, "daylight saving changes", t.DST)
	return append(events,
		timeEvent{"leases expired", t.Seen.Expired}, timeEvent{"leases forgotten early", t.Seen.Early})
}

// String returns the table as lines: the count, the verb and the outcome.
func (t *Coverage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9d operations\n", t.Ops())
	cells := slices.SortedFunc(maps.Keys(t.Cells), func(x, y model.Note) int {
		return cmp.Or(cmp.Compare(x.Verb, y.Verb), cmp.Compare(x.Outcome, y.Outcome))
	})
	for _, cell := range cells {
		fmt.Fprintf(&b, "%9d %-9s %s\n", t.Cells[cell], cell.Verb, cell.Outcome)
	}
	all := Harness{Traits: driver.Traits{Kinds: everyKind()}}
	for _, e := range t.events(&all) {
		fmt.Fprintf(&b, "%9d %s\n", e.count, e.name)
	}
	return b.String()
}

func everyKind() []weir.Kind {
	return []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget}
}

// possible returns the outcomes that each verb can have on a store: the table of section 6 of
// docs/semantics.md, and the mistakes.
func possible(h *Harness) []model.Note {
	var cells []model.Note
	add := func(verb string, outcomes ...string) {
		for _, o := range outcomes {
			cells = append(cells, model.Note{Verb: verb, Outcome: o})
		}
	}
	ended := []string{"ended: is completed", "ended: is cancelled", "ended: is expired"}
	malformed := []string{"invalid: is negative", "invalid: is no limit's name"}
	totals := []string{"invalid: was not reserved", "invalid: was reserved by several",
		"invalid: is more than can be counted", "invalid: are neither one set nor one for each charge"}
	if slices.Contains(h.Traits.Kinds, weir.Concurrency) {
		totals = append(totals, "invalid: is more slots than there are")
	}
	both := slices.Concat(malformed, totals, []string{"ok", "unknown lease"})
	add(opReserve, "admitted", "denied", "replay", "conflict: is live", "never satisfiable",
		"unknown limit", "no limits configured", "invalid: is too old", "invalid: is too far ahead",
		"invalid: is no entity's name", "invalid: is no resource's name", "invalid: are too many",
		"invalid: are malformed")
	if len(h.Traits.Kinds) > 1 {
		add(opReserve, "invalid: is another one")
	}
	add(opReserve, slices.Concat(ended, malformed)...)
	add(opAdjust, slices.Concat(ended, both, []string{"replay", "lower", "invalid: is below 1"})...)
	add(opComplete, both...)
	add(opComplete, "replay", "conflict: is completed", "conflict: is cancelled", ended[2])
	add(opCancel, "ok", "replay", "conflict: is completed", ended[2], "unknown lease")
	add(opExtend, slices.Concat(ended, []string{"ok", "unknown lease"})...)
	add(opStatus, "ok", "no limits configured", "invalid: is no entity's name")
	add(opExplain, "ok", "invalid: is no resource's name")
	add(opConfigure, "ok", "refused")
	add(opAdvance, "ok")
	if !h.NoSkew && !h.OwnClock {
		add(opAdvance, "back")
	}
	return cells
}
