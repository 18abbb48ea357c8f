package chart

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
)

// Page is a page of figures. All its texts stay text: none of them is taken for HTML.
type Page struct {
	Title string
	// Subtitle is a sentence below the title. Default: none
	Subtitle string
	// Facts are what was looked at and how, above the figures. Default: none
	Facts []Fact
	// Tiles are the few numbers that matter most. Default: none
	Tiles []Tile
	// Sections are the rest, in order. Default: none
	Sections []Section
	// Footer is a sentence at the end, as how to make the page again. Default: none
	Footer string
}

// Fact is a name and what is known under it.
type Fact struct{ Name, Value string }

// Tile is a number that is shown large.
type Tile struct {
	Name, Value string
	// Note is below the number. Default: none
	Note string
	// Tone colours the number if it is Bad. Default: Plain
	Tone Tone
}

// Section is a part of a page under a heading: a note, a table and figures, each of which may be
// missing. A figure that is nil is left out.
type Section struct {
	Title   string
	Note    string
	Table   *Table
	Figures []Figure
}

// Table is rows of texts. Where there is no room beside each other, rows become cards.
type Table struct {
	Columns []Column
	// Rows have a cell for each column; what is missing is empty, and what is too much is not shown.
	Rows [][]string
	// Note is a sentence below the table. Default: none
	Note string
}

// Column is the head of a column.
type Column struct {
	Name string
	// Number puts the cells to the right. Default: to the left
	Number bool
	// Alarm colours cells that have a number other than 0. Default: not
	Alarm bool
}

// pageFiles are the template and the style.
//
//go:embed page/page.html page/style.css
var pageFiles embed.FS

// Write writes the page as HTML that needs nothing else and loads nothing. The error is the
// writer's.
func (p *Page) Write(w io.Writer) error {
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(template.FuncMap{
		// What a reader would not see is escaped, so that no name turns another around.
		"shown": func(text string) string { return printable(text, false) },
	}).ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := t.Execute(b, p.view(string(style))); err != nil {
		return err
	}
	return b.Flush()
}

// policy lets a page use its own style, by its hash, and the icon that is written in it.
func policy(style string) string {
	hash := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; img-src data:; base-uri 'none'; form-action 'none'"
}

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
