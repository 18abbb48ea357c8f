// Package chart draws figures about numbers: as text for a terminal, and as a page of HTML that
// needs nothing else, neither a network nor a script.
//
// A figure is plain data ([Columns], [Lines], [Bars], [Distribution], [Comparison]) and is drawn in
// both places: [WriteText] and [WriteSparks] write text, [Page.Write] writes a page of figures and
// tables. Nothing a figure holds makes them fail or panic: what is negative is drawn as nothing,
// what is missing counts as 0, and names stay text, in which invisible characters are
// escaped.
//
// All geometry is in integers.
package chart

// Milliseconds is the unit of values that are shown as durations: 1500 is "1.5 s". Any other unit
// is a word behind the numbers.
const Milliseconds = "ms"

// Figure is one of [*Columns], [*Lines], [*Bars], [*Distribution] and [*Comparison].
type Figure interface {
	// text draws the figure on a terminal.
	text(t *lineBuffer)
	// view lays the figure out for a page.
	view() *figureView
}

// Tone says what a series means, and so how it looks.
type Tone int

// The tones.
const (
	Plain Tone = iota // one of a few colours, by its place
	Good              // what one wants: admitted
	Bad               // what one does not want: denied
)

// Series is a row of numbers under one name.
type Series struct {
	Name string
	Tone Tone
	// Values belong to the intervals, labels or bins of the figure, in order.
	Values []int64
}

// Columns is a figure of stacked columns over time.
type Columns struct {
	Title string
	// Note is a sentence below the title. Default: none
	Note string
	// Unit is what the values count, as "calls", or [Milliseconds]. Default: none
	Unit  string
	Times Times
	// Series are stacked from the bottom.
	Series []Series
}

// Lines is a figure of lines over time, as the use of a limit against its capacity.
type Lines struct {
	Title string
	// Note is a sentence below the title. Default: none
	Note string
	// Unit is what the values count, as "tokens", or [Milliseconds]. Default: none
	Unit  string
	Times Times
	// Series are the highest values of each interval.
	Series []Series
	// Rule is a line across, as the capacity. Default: none
	Rule *ReferenceLine
}

// ReferenceLine is a value to compare with.
type ReferenceLine struct {
	Name  string
	Value int64
}

// Bars is a figure of horizontal bars, one for each label, as the denials by each limit.
type Bars struct {
	Title string
	// Note is a sentence below the title. Default: none
	Note string
	// Unit is what the values count, as "calls", or [Milliseconds]. Default: none
	Unit   string
	Labels []string
	// Series are stacked from the left.
	Series []Series
	// Grouped draws the series of a label below each other instead. Default: stacked
	Grouped bool
}

// Comparison is a figure of stacked columns over time on two sides of one axis and on one scale.
type Comparison struct {
	Title string
	// Note is a sentence below the title. Default: none
	Note string
	// Unit is what the values count, as "calls", or [Milliseconds]. Default: none
	Unit  string
	Times Times
	// Above and Below are what is compared. Both have the same series.
	Above, Below ComparisonSide
}

// ComparisonSide is one of two things that are compared.
type ComparisonSide struct {
	Name   string
	Series []Series
}

// most is how many values the longest series has.
func most(series []Series) int {
	n := 0
	for _, s := range series {
		n = max(n, len(s.Values))
	}
	return n
}

// at is a value of a series; 0 where it has none.
func (s *Series) at(i int) int64 {
	if i < len(s.Values) {
		return s.Values[i]
	}
	return 0
}

// column is what is drawn of the values at one place: nothing of those that are negative.
func column(series []Series, i int) []uint64 {
	out := make([]uint64, len(series))
	for k := range series {
		out[k] = size(series[k].at(i))
	}
	return out
}

// highest is the largest sum of the values at one place.
func highest(series []Series) uint64 {
	var top uint64
	for i := range most(series) {
		top = max(top, sum(column(series, i)))
	}
	return top
}

// largest is the largest single value.
func largest(series []Series) uint64 {
	var top uint64
	for _, s := range series {
		for _, v := range s.Values {
			top = max(top, size(v))
		}
	}
	return top
}

// apiece is how many of n neighbours must be put together so that at most a number of places
// remain.
func apiece(n, places int) int { return max((n+places-1)/places, 1) }

// merge joins each neighbours into one: it adds their values, or takes the largest of them.
func merge(series []Series, each int, largest bool) []Series {
	if each <= 1 {
		return series
	}
	out := make([]Series, len(series))
	for k := range series {
		s := &series[k]
		out[k] = Series{Name: s.Name, Tone: s.Tone}
		for from := 0; from < len(s.Values); from += each {
			v := s.Values[from]
			for _, next := range s.Values[from+1 : min(from+each, len(s.Values))] {
				if largest {
					v = max(v, next)
				} else {
					v = plus(max(v, 0), max(next, 0))
				}
			}
			out[k].Values = append(out[k].Values, v)
		}
	}
	return out
}

// stack lays values on top of each other on a scale that is so high, and returns where each begins
// and the last ends. A value that is not 0 gets at least the least height, so that it is seen; what
// lies below gives way where there is no room above.
func stack(values []uint64, top uint64, height, least int) []int {
	edges := make([]int, len(values)+1)
	for i := range values {
		edges[i+1] = max(scale(sum(values[:i+1]), top, height), edges[i])
		if values[i] > 0 {
			edges[i+1] = max(edges[i+1], edges[i]+least)
		}
	}
	ceiling := height
	for i := len(values); i > 0; i-- {
		edges[i] = min(edges[i], ceiling)
		if ceiling = edges[i]; values[i-1] > 0 {
			ceiling = max(ceiling-least, 0)
		}
	}
	return edges
}

// stackWhole is stack in whole rows of row steps each. The last may reach to the end of its
// row.
func stackWhole(values []uint64, top uint64, rows, row int) []int {
	whole := sum(values)
	used := (scale(whole, top, rows*row) + row - 1) / row
	if whole > 0 {
		used = max(used, 1)
	}
	edges := stack(values, whole, used, 1)
	for i := range edges {
		edges[i] *= row
	}
	return edges
}
