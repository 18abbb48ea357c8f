package chart

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
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
