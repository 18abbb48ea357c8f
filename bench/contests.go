package main

import (
	"fmt"
	"runtime"
)

const (
	// contestCallers is how many callers wait for an answer at any time.
	contestCallers = 64
	// contestKeys is how many separate entities there are.
	contestKeys = 1000
)

// contests are the comparisons on DynamoDB. They take minutes, so they run only where -run names them.
func contests() []contest {
	return []contest{hotContest(), childrenContest(), entitiesContest()}
}

// hotContest is one bucket that all callers want.
func hotContest() contest {
	c := contest{
		name:    "dynamodb/hot",
		title:   fmt.Sprintf("DynamoDB: one bucket, %d callers", contestCallers),
		callers: sameForAll("hot"),
		players: append([]player{{contestWeir, 1}}, pythonPlayers()...),
		figures: weirFigures(),
		note: "weir takes all who arrive during a write along in the next one; the Python library makes " +
			"a write for each. Completing with what was reserved writes nothing on either side.",
	}
	for _, f := range pythonFigures(&c) {
		c.figures = append(c.figures, f)
		c.ratios = append(c.ratios, ratio{over: 0, under: len(c.figures) - 1, goal: 15_000, least: true})
	}
	return c
}

// childrenContest is an entity for each caller, which all cascade to one parent.
func childrenContest() contest {
	c := contest{
		name:   "dynamodb/children",
		title:  fmt.Sprintf("DynamoDB: %d children of one parent, a caller for each", contestCallers),
		parent: "org",
		note: "For each call the bare SDK makes the child's write; as often as weir did for the calls " +
			"that its writes were copied from, it makes the parent's too, at once with the child's, and " +
			"waits for both.",
	}
	for i := range contestCallers {
		c.callers = append(c.callers, []string{fmt.Sprintf("child-%02d", i)})
	}
	c.besideBare()
	return c
}

// entitiesContest is many entities without a parent.
func entitiesContest() contest {
	c := contest{
		name:  "dynamodb/entities",
		title: fmt.Sprintf("DynamoDB: %s separate entities, %d callers", grouped(contestKeys), contestCallers),
		note:  "Each caller takes all entities in turn, and begins elsewhere.",
	}
	all := keys(contestKeys)
	for i := range contestCallers {
		at := i * len(all) / contestCallers
		c.callers = append(c.callers, append(all[at:len(all):len(all)], all[:at]...))
	}
	c.besideBare()
	return c
}

// besideBare compares weir with the bare SDK that makes the same writes, and shows Python beside.
func (c *contest) besideBare() {
	c.players = append([]player{{contestWeir, 1}, {contestBare, 1}}, pythonPlayers()...)
	c.figures = append(weirFigures(), side{"bare SDK, the same writes", 1, orderRun})
	c.ratios = []ratio{
		{over: 0, under: 2, goal: 900, least: true}, {over: 1, under: 2, goal: 900, least: true},
	}
	for _, f := range pythonFigures(c) {
		c.figures = append(c.figures, f)
		c.ratios = append(c.ratios, ratio{over: 0, under: len(c.figures) - 1})
	}
}

func weirFigures() []side {
	return []side{
		{"weir, reserve", 0, orderRun},
		{"weir, reserve + complete", 0, orderBoth},
	}
}

// pythonPlayers are the library in one process, as most use it, and in as many as there are
// processors, which it needs to use them.
func pythonPlayers() []player {
	out := []player{{contestPython, 1}}
	if n := runtime.NumCPU(); n > 1 {
		out = append(out, player{contestPython, min(n, contestCallers)})
	}
	return out
}

func pythonFigures(c *contest) []side {
	var out []side
	for i, p := range c.players {
		if p.name == contestPython {
			label := fmt.Sprintf("zae-limiter %s, acquire, %d process", zaeVersion, p.processes)
			if p.processes > 1 {
				label += "es"
			}
			out = append(out, side{label, i, orderRun})
		}
	}
	return out
}

func sameForAll(entity string) [][]string {
	out := make([][]string, contestCallers)
	for i := range out {
		out[i] = []string{entity}
	}
	return out
}
