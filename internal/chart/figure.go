// Package chart draws figures of numbers: as text for a terminal, and on a page of HTML that needs
// nothing else, neither a network nor a script.
//
// A figure is plain data and is drawn in both places: [WriteText] and [WriteSparks] write text,
// [Page.Write] writes a page of figures and tables. [WriteSVG] draws columns as a file of their
// own. No content makes them fail or panic: negative values are drawn as nothing, missing ones
// count as 0, and invisible characters in names are escaped. All geometry is in integers.
package chart

// Figure is one of [*Columns], [*Lines], [*Bars], [*Meters], [*Distribution] and
// [*Comparison]. Each has a title, a note, which is a sentence below the title, and, but for meters,
// a unit of its values: "calls", or [Milliseconds]. All three may be empty.
type Figure interface {
	// text draws the figure on a terminal.
	text(t *lineBuffer)
	// view lays the figure out for a page.
	view() *figureView
}

// Milliseconds is the unit of values that are shown as durations: 1500 is "1.5 s". Any other unit
// is a word behind the numbers.
const Milliseconds = "ms"

// Tone is the meaning of a series, which determines its colour.
type Tone int

// The tones.
const (
	Plain Tone = iota // one of a few colours, by the index of the series
	Good              // admitted
	Bad               // denied
)

// Series is a row of numbers under one name.
type Series struct {
	Name string
	Tone Tone
	// Values belong to the intervals, labels or bins of the figure, in order.
	Values []int64
}

// Columns is a figure of columns over time, in which the series are stacked from the bottom.
type Columns struct {
	Title, Note, Unit string
	Times             Times
	Series            []Series
	// Gaps are the intervals in which values may be missing, in order. Default: none
	Gaps []Gap
}

// Gap is a part of a figure over time, from one interval up to another, which is not a part of it.
type Gap struct{ From, To int }

// gapsOf returns the gaps after neighbours were merged, within n intervals.
func gapsOf(gaps []Gap, each, n int) []Gap {
	var out []Gap
	for _, g := range gaps {
		g = Gap{max(g.From, 0) / each, min((max(g.To, 0)+each-1)/each, n)}
		if g.From < g.To {
			out = append(out, g)
		}
	}
	return out
}

// Lines is a figure of lines over time, such as the use of a limit against its capacity.
type Lines struct {
	Title, Note, Unit string
	Times             Times
	Series            []Series       // the highest value of each interval
	Rule              *ReferenceLine // a line across. Default: none
}

// ReferenceLine is a value to compare with, such as the capacity.
type ReferenceLine struct {
	Name  string
	Value int64
}

// Bars is a figure of horizontal bars, one for each label, such as the denials by each limit.
type Bars struct {
	Title, Note, Unit string
	Labels            []string
	Series            []Series // stacked from the left
	// Grouped draws the series of a label below each other instead of stacked. Default: false
	Grouped bool
}

// Comparison is a figure of two stacks of columns over time, on two sides of one axis and on one
// scale. Both sides have the same series.
type Comparison struct {
	Title, Note, Unit string
	Times             Times
	Above, Below      ComparisonSide
}

// ComparisonSide is one side of a [Comparison].
type ComparisonSide struct {
	Name   string
	Series []Series
}

// Distribution is a figure of the number of values of each size, such as the waits of calls. The
// bars of the series are drawn side by side. The unit is the unit of the bounds.
type Distribution struct {
	Title, Note, Unit string
	// Bounds are the upper ends of the bins, ascending.
	Bounds []int64
	// Series has the number of values in each bin. A series may have one more element than there
	// are bounds, for the values above all of them.
	Series []Series
}

// bins returns the number of bins to draw.
func (d *Distribution) bins() int { return max(len(d.Bounds), most(d.Series)) }

// binNames names all bins in words.
func (d *Distribution) binNames() []string {
	out := make([]string, d.bins())
	for i := range out {
		switch {
		case i < len(d.Bounds) && (i > 0 || d.Bounds[i] != 0):
			out[i] = "up to " + exact(d.Bounds[i], d.Unit)
		case i < len(d.Bounds):
			out[i] = exact(0, d.Unit)
		case len(d.Bounds) > 0:
			out[i] = "above " + exact(d.Bounds[len(d.Bounds)-1], d.Unit)
		default:
			out[i] = "all"
		}
	}
	return out
}

// most returns the length of the longest series.
func most(series []Series) int {
	n := 0
	for _, s := range series {
		n = max(n, len(s.Values))
	}
	return n
}

// at returns the value of a series at an index; 0 if it has none.
func (s *Series) at(i int) int64 {
	if i < len(s.Values) {
		return s.Values[i]
	}
	return 0
}

// column returns the values to draw at an index. Negative ones become 0.
func column(series []Series, i int) []uint64 {
	out := make([]uint64, len(series))
	for k := range series {
		out[k] = size(series[k].at(i))
	}
	return out
}

// highest returns the largest sum of the values at an index.
func highest(series []Series) uint64 {
	var top uint64
	for i := range most(series) {
		top = max(top, sum(column(series, i)))
	}
	return top
}

// largest returns the largest single value.
func largest(series []Series) uint64 {
	var top uint64
	for _, s := range series {
		for _, v := range s.Values {
			top = max(top, size(v))
		}
	}
	return top
}

// mergeCount returns the number of neighbours to merge so that at most a number of n places remain.
func mergeCount(n, places int) int { return max((n+places-1)/places, 1) }

// merge replaces every group of neighbours with the sum of their values, or by the largest of them.
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

// stack lays values on top of each other on a scale of the given height, and returns where each
// begins and the last ends. A value other than 0 gets at least the least height, so that it is
// seen; what lies below is moved down if there is no room above.
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

// stackRows is like stack, but the edges lie on whole rows of row steps each.
func stackRows(values []uint64, top uint64, rows, row int) []int {
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
