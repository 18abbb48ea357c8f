package main

import "slices"

// spread is the middle half of some numbers.
type spread struct{ low, median, high int64 }

// spreadOf returns quartiles by nearest rank, or zeros of nothing.
func spreadOf(numbers []int64) spread {
	if len(numbers) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(numbers))
	rank := func(quarter int) int64 { return sorted[(len(sorted)*quarter+3)/4-1] }
	return spread{low: rank(1), median: rank(2), high: rank(3)}
}

// perOp divides by the operations of a measure; 0 without any.
func (m *measure) perOp(total int64) int64 {
	if m.Ops == 0 {
		return 0
	}
	return total / m.Ops
}

// picoseconds is the wall time of one operation.
func (m *measure) picoseconds() int64 { return m.perOp(m.NS * 1000) }

// cpuPicoseconds is the processor time of one operation.
func (m *measure) cpuPicoseconds() int64 { return m.perOp(m.CPU * 1000) }

// speed is how many operations there were in a second.
func (m *measure) speed() int64 {
	ps := m.picoseconds()
	if ps == 0 {
		return 0
	}
	return 1_000_000_000_000 / ps
}

// thousandths is a ratio of two costs; 0 where nothing is known of the second.
func thousandths(over, under int64) int64 {
	if under == 0 {
		return 0
	}
	return over * 1000 / under
}
