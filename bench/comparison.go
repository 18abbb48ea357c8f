package main

import (
	"regexp"
	"slices"
)

// comparison is a row of the table of comparisons: which contestants do which work, and which of
// them are compared.
type comparison struct {
	name, title string
	note        string // a note for readers of the results
	store       *storeSetup
	sides       []side
	ratios      []ratio
	// sameCounts makes the comparison fail if the sides make different numbers of requests per
	// operation.
	sameCounts bool
}

// side is one line of a comparison: a work of one contestant.
type side struct {
	label string
	by    *contestant
	work  string
}

// contestant is started as one or more processes, and runs one or more sides.
type contestant struct {
	spec spec
	// processes is the number of processes that share the callers. Default: one.
	processes int
	// server is a process that the contestant sends its requests to. Its costs are reported instead
	// of the contestant's. Default: none.
	server *spec
}

// ratio compares two sides by their index.
type ratio struct {
	over, under int
	of          metric
	// goal and aim bound the ratio: from above for costs, from below for speeds. 0 means no bound.
	goal, aim float64
}

// metric selects the number that a ratio compares.
type metric int

const (
	cost  metric = iota // time per operation
	speed               // operations per second
	p50                 // time that half of the operations take at most
	p99                 // time that 99 of 100 operations take at most
)

// of returns the ratio of two replies, or 0 if the number of the second one is unknown.
func (m metric) of(over, under *reply) float64 {
	switch m {
	case speed:
		return quotient(over.speed(), under.speed())
	case p50:
		return quotient(float64(over.P50), float64(under.P50))
	case p99:
		return quotient(float64(over.P99), float64(under.P99))
	}
	return quotient(over.perOp(over.NS), under.perOp(under.NS))
}

// cpu returns the same ratio of processor times; 0 if there is none for the metric.
func (m metric) cpu(over, under *reply) float64 {
	switch m {
	case cost:
		return quotient(over.perOp(over.CPU), under.perOp(under.CPU))
	case speed:
		return quotient(under.perOp(under.CPU), over.perOp(over.CPU))
	}
	return 0
}

// against returns the ratios of one side to several others.
func against(over int, others ...int) []ratio {
	var out []ratio
	for _, under := range others {
		out = append(out, ratio{over: over, under: under})
	}
	return out
}

// keep leaves only the sides whose label matches, and the ratios between them. It reports whether
// any side is left.
func (c *comparison) keep(labels *regexp.Regexp) bool {
	index := make(map[int]int)
	var sides []side
	for i, s := range c.sides {
		if labels.MatchString(s.label) {
			index[i] = len(sides)
			sides = append(sides, s)
		}
	}
	var ratios []ratio
	for _, x := range c.ratios {
		over, ok := index[x.over]
		under, both := index[x.under]
		if ok && both {
			x.over, x.under = over, under
			ratios = append(ratios, x)
		}
	}
	c.sides, c.ratios = sides, ratios
	return len(sides) > 0
}

// contestants returns the contestants of the sides, in their order.
func (c *comparison) contestants() []*contestant {
	var out []*contestant
	for _, s := range c.sides {
		if !slices.Contains(out, s.by) {
			out = append(out, s.by)
		}
	}
	return out
}
