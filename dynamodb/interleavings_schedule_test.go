package dynamodb

import (
	"fmt"
	"slices"
	"strings"
)

// choice is one step of a schedule: the execution of a request of a server. If crash is set, the
// server then never sees the answer and does nothing more. Text form: the server, the item, "?"
// for a read, "!" for a crash. A crash before the first request is "1-!".
type choice struct {
	server int
	item   byte
	write  bool
	crash  bool
}

// noItem is the item of a crash before the first request.
const noItem = '-'

func (c choice) String() string {
	s := fmt.Sprintf("%d%c", c.server, c.item)
	if !c.write {
		s += "?"
	}
	if c.crash {
		s += "!"
	}
	return s
}

// commutes reports whether two choices lead to the same state in either order, and neither makes
// the other one impossible. The requests of different servers about different items do, and two
// reads. A schedule has one crash.
func (c choice) commutes(d choice) bool {
	if c.server == d.server || c.crash && d.crash {
		return false
	}
	return c.item != d.item || !c.write && !d.write
}

// exploration enumerates schedules, depth first. A schedule is run from the start each time: the
// choices of path are repeated, and what follows is chosen new.
//
// It leaves out schedules by sleep sets (Godefroid, Partial-Order Methods for the Verification of
// Concurrent Systems, 1996). After all schedules that continue with one choice were explored,
// that choice sleeps in those that continue with another one, until a choice follows that does
// not commute with it. A schedule in which a sleeping choice came next would differ from one that
// was explored only in the order of neighbours that commute: each server gets the same answers,
// the items are the same in the end, and all states of the table on the way occur in one schedule
// or the other. So no behaviour of a server and no state of the table is left out.
type exploration struct {
	path  []*crossroads
	depth int // of the schedule that is running
	// follow are the first choices of the only schedule to run; nil to run all.
	follow []string
}

// crossroads are the choices at one point of a schedule.
type crossroads struct {
	choices []choice
	asleep  map[choice]bool
	taken   choice
}

// next returns the next choice of the schedule; ok is false if each was explored.
func (x *exploration) next(choices []choice) (c choice, ok bool, err error) {
	if x.depth < len(x.path) {
		at := x.path[x.depth]
		if !slices.Equal(at.choices, choices) {
			return c, false, fmt.Errorf("after the same choices, a server does not do the same: %v, before %v", choices, at.choices)
		}
		x.depth++
		return at.taken, true, nil
	}
	at := &crossroads{choices: choices, asleep: make(map[choice]bool)}
	if x.depth > 0 {
		before := x.path[x.depth-1]
		for c := range before.asleep {
			if c.commutes(before.taken) {
				at.asleep[c] = true
			}
		}
	}
	if x.depth < len(x.follow) {
		i := slices.IndexFunc(choices, func(c choice) bool { return c.String() == x.follow[x.depth] })
		if i < 0 {
			return c, false, fmt.Errorf("%s is not one of the choices %v", x.follow[x.depth], choices)
		}
		at.taken = choices[i]
	} else if !at.choose() {
		return c, false, nil
	}
	x.path = append(x.path, at)
	x.depth++
	return at.taken, true, nil
}

// choose takes the first choice that does not sleep.
func (at *crossroads) choose() bool {
	for _, c := range at.choices {
		if !at.asleep[c] {
			at.taken = c
			return true
		}
	}
	return false
}

// advance prepares the next schedule. It reports false if there is none.
func (x *exploration) advance() bool {
	if x.depth = 0; x.follow != nil {
		return false
	}
	for len(x.path) > 0 {
		at := x.path[len(x.path)-1]
		at.asleep[at.taken] = true
		if at.choose() {
			return true
		}
		x.path = x.path[:len(x.path)-1]
	}
	return false
}

// String returns the choices of the schedule that is running.
func (x *exploration) String() string {
	var all []string
	for _, at := range x.path[:x.depth] {
		all = append(all, at.taken.String())
	}
	return strings.Join(all, " ")
}
