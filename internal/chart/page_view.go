package chart

import (
	"html/template"
	"strings"
)

// pageView is a page as the template wants it.
type pageView struct {
	Policy   string
	Style    template.CSS
	Page     *Page
	Tiles    []tileView
	Sections []sectionView
}

type tileView struct {
	Tile

	Class string
}

type sectionView struct {
	Title, Note string
	Table       *tableView
	Figures     []*figureView
}

// tableView is a table with its cells in shape.
type tableView struct {
	Heads []cellView
	Rows  [][]cellView
	Note  string
}

// cellView is a cell, and the head of its column for where it is a line of a card.
type cellView struct{ Text, Class, Head string }

func (p *Page) view(style string) *pageView {
	v := &pageView{Policy: policy(style), Page: p}
	v.Style = template.CSS(style) //nolint:gosec // The package's own file.
	for _, tile := range p.Tiles {
		class := ""
		if tile.Tone == Bad {
			class = "alarm"
		}
		v.Tiles = append(v.Tiles, tileView{tile, class})
	}
	for _, s := range p.Sections {
		section := sectionView{Title: s.Title, Note: s.Note}
		if s.Table != nil {
			section.Table = s.Table.view()
		}
		for _, f := range s.Figures {
			if f != nil {
				section.Figures = append(section.Figures, f.view())
			}
		}
		v.Sections = append(v.Sections, section)
	}
	return v
}

func (t *Table) view() *tableView {
	v := &tableView{Note: t.Note}
	for _, c := range t.Columns {
		v.Heads = append(v.Heads, cellView{Text: c.Name, Class: c.class("")})
	}
	for _, row := range t.Rows {
		line := make([]cellView, len(t.Columns))
		for i := range line {
			c := &t.Columns[i]
			text := ""
			if i < len(row) {
				text = row[i]
			}
			line[i] = cellView{text, c.class(text), c.Name}
		}
		v.Rows = append(v.Rows, line)
	}
	return v
}

// class is how a cell looks. A number has a digit other than 0.
func (c *Column) class(text string) string {
	var classes []string
	if c.Number {
		classes = append(classes, "number")
	}
	if c.Alarm && strings.ContainsAny(text, "123456789") {
		classes = append(classes, "alarm")
	}
	return strings.Join(classes, " ")
}
