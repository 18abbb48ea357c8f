package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	c := NewChoice("table", "json")
	cmd.Flags().VarP(c, "output", "o", "print a table for people, or JSON")
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
