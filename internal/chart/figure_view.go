package chart

import (
	"strconv"
	"strings"
)

// figureView is a figure as the template wants it: a plot or bars, and the numbers in a table.
type figureView struct {
	Title, Note string
	// Wide figures have a row of the page for themselves.
	Wide bool
	Keys []keyView
	Plot *plotView
	Bars []barView
	Data *dataView
}

// keyView is an entry of the legend.
type keyView struct{ Class, Name string }

// dataView is the table of a figure's numbers.
type dataView struct {
	Heads []string
	Rows  []dataRow
}

type dataRow struct {
	Name  string
	Cells []string
}

// seriesClasses are how the series look: by their meaning, or by their place among those that have
// none.
func seriesClasses(series []Series) []string {
	out := make([]string, len(series))
	others := 0
	for i := range series {
		switch series[i].Tone {
		case Good:
			out[i] = "good"
		case Bad:
			out[i] = "bad"
		default:
			out[i] = "s" + strconv.Itoa(others%4)
			others++
		}
	}
	return out
}

// keys is the legend of several series.
func keys(series []Series) []keyView {
	classes := seriesClasses(series)
	var out []keyView
	for i := range series {
		if series[i].Name != "" {
			out = append(out, keyView{classes[i], series[i].Name})
		}
	}
	return out
}

// data makes the table of the numbers: a row for each name, none without series.
func data(first string, names []string, series []Series, unit string) *dataView {
	v := &dataView{Heads: []string{first}}
	for _, s := range series {
		v.Heads = append(v.Heads, s.Name)
	}
	if len(series) == 0 {
		return v
	}
	for i, name := range names {
		row := dataRow{Name: name}
		for k := range series {
			row.Cells = append(row.Cells, plain(series[k].at(i), unit))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// said is a place in words: "18:15: admitted 120, denied 3".
func said(name string, series []Series, i int, unit string) string {
	parts := make([]string, len(series))
	for k := range series {
		parts[k] = strings.TrimSpace(series[k].Name + " " + exact(series[k].at(i), unit))
	}
	return name + ": " + strings.Join(parts, ", ")
}

// spoken is the title of a drawing, which must have one.
func spoken(title string) string {
	if title == "" {
		return "figure"
	}
	return title
}

// described is the series in words, for those who do not see them.
func described(series []Series, unit string) string {
	parts := make([]string, len(series))
	for k := range series {
		highest := largest(series[k : k+1])
		parts[k] = series[k].Name + " at most " + exact(int64(highest), unit)
	}
	return strings.Join(parts, ", ")
}
