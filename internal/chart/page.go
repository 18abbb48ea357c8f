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

// Page is a page of figures. All texts stay text: none of them is read as HTML. Every part may be
// missing.
type Page struct {
	Title    string
	Subtitle string    // a sentence below the title
	Facts    []Fact    // what was measured and how, above the figures
	Tiles    []Tile    // the few numbers that matter most
	Sections []Section // the rest, in order
	Footer   string    // a sentence at the end, such as how to make the page again
}

// Fact is a name and a value.
type Fact struct{ Name, Value string }

// Tile is a number that is shown large, with a note below it. It is coloured if its tone is Bad.
type Tile struct {
	Name, Value, Note string
	Tone              Tone
}

// Section is a part of a page under a heading: a note, a table and figures, each of which may be
// missing. A figure that is nil is left out.
type Section struct {
	Title, Note string
	Table       *Table
	Figures     []Figure
}

// Table is rows of text. On a narrow screen, rows become cards.
type Table struct {
	Columns []Column
	// Rows have a cell for each column. Missing cells are empty, and surplus cells are not shown.
	Rows [][]string
	Note string // a sentence below the table
}

// Column is the head of a column.
type Column struct {
	Name   string
	Number bool // the cells are aligned to the right
	Alarm  bool // cells with a number other than 0 are coloured
}

// pageFiles are the template and the style.
//
//go:embed page/page.html page/style.css
var pageFiles embed.FS

// Write writes the page as HTML that loads nothing. The error is the writer's.
func (p *Page) Write(w io.Writer) error {
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(template.FuncMap{
		// Invisible characters are escaped, so that no name turns the text around it.
		"shown":   func(text string) string { return printable(text, false) },
		"alarms":  func(t Tile) bool { return t.Tone == Bad },
		"cells":   (*Table).cells,
		"figures": figureViews,
	}).ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return err
	}
	// The policy lets the page use its own style, by its hash, and the icon that is written in it.
	hash := sha256.Sum256(style)
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; img-src data:; base-uri 'none'; form-action 'none'"
	b := bufio.NewWriter(w)
	if err := t.Execute(b, struct {
		*Page
		Policy string
		Style  template.CSS
	}{p, policy, template.CSS(style)}); err != nil { //nolint:gosec // The style is the package's own file.
		return err
	}
	return b.Flush()
}

func figureViews(figures []Figure) []*figureView {
	var out []*figureView
	for _, f := range figures {
		if f != nil {
			out = append(out, f.view())
		}
	}
	return out
}

// cellView is a cell. The head of its column is needed where the cell is a line of a card.
type cellView struct{ Text, Class, Head string }

// cells returns the cells of the table: the heads, then the rows.
func (t *Table) cells() [][]cellView {
	heads := make([]string, len(t.Columns))
	for i := range heads {
		heads[i] = t.Columns[i].Name
	}
	var out [][]cellView
	for k, row := range append([][]string{heads}, t.Rows...) {
		line := make([]cellView, len(heads))
		for i := range line {
			var classes []string
			if t.Columns[i].Number {
				classes = append(classes, "number")
			}
			if i < len(row) {
				line[i].Text = row[i]
			}
			if k > 0 && t.Columns[i].Alarm && strings.ContainsAny(line[i].Text, "123456789") {
				classes = append(classes, "alarm")
			}
			line[i].Class, line[i].Head = strings.Join(classes, " "), heads[i]
		}
		out = append(out, line)
	}
	return out
}
