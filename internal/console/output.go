package console

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Choice is the value of a flag that takes one of a few words.
type Choice struct {
	value   string
	choices []string
}

// NewChoice returns a choice between words, of which the first is the default.
func NewChoice(choices ...string) *Choice { return &Choice{choices[0], choices} }

// String returns the flag's text.
func (c *Choice) String() string { return c.value }

// Set reads the flag's text.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.choices, s) {
		return errors.New("must be " + listed(c.choices, "or"))
	}
	c.value = s
	return nil
}

// Type names the words in the help.
func (c *Choice) Type() string { return strings.Join(c.choices, "|") }

// OutputFlag adds the flag for the format of results to a command.
func OutputFlag(cmd *cobra.Command) *Choice {
	return outputFlag(cmd, "print a table for people, or JSON", "table", "json")
}

// ListOutputFlag adds the flag for the format of results to a command that can also print CSV.
func ListOutputFlag(cmd *cobra.Command) *Choice {
	return outputFlag(cmd, "print a table for people, JSON, or CSV", "table", "json", csvFormat)
}

// csvFormat is the word for CSV.
const csvFormat = "csv"

// IsCSV reports whether the choice is CSV.
func (c *Choice) IsCSV() bool { return c.value == csvFormat }

func outputFlag(cmd *cobra.Command, usage string, formats ...string) *Choice {
	c := NewChoice(formats...)
	cmd.Flags().VarP(c, "output", "o", usage)
	complete := cobra.FixedCompletions(c.choices, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // cmd has no such flag
	}
	return c
}

// PrintResult writes a result: as JSON, or as the text that table writes.
func (a *App) PrintResult(format *Choice, result any, table func(*bytes.Buffer)) error {
	var b bytes.Buffer
	if format.value == "json" {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(result); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	} else {
		table(&b)
	}
	if _, err := a.Streams.Out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// PrintCSV writes rows as CSV (RFC 4180, with line feeds). A cell that a spreadsheet would run as a
// formula gets an apostrophe in front, unless it is a number.
func (a *App) PrintCSV(rows [][]string) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plainCell(cell)
		}
		_ = w.Write(cells) // a buffer never fails
	}
	w.Flush()
	if _, err := a.Streams.Out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// plainCell returns a cell that no spreadsheet takes for a formula.
func plainCell(cell string) string {
	if cell == "" || !strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return cell
	}
	if _, err := strconv.ParseInt(cell, 10, 64); err == nil {
		return cell
	}
	return "'" + cell
}
