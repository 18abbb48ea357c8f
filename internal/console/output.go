package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Format is how results are printed; it is the value of a flag.
type Format string

const (
	tableFormat Format = "table"
	jsonFormat  Format = "json"
)

// String returns the flag's text.
func (f *Format) String() string { return string(*f) }

// Set reads the flag's text.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case tableFormat, jsonFormat:
		*f = Format(s)
		return nil
	}
	return errors.New("must be table or json")
}

// Type names the values in the help.
func (f *Format) Type() string { return "table|json" }

// OutputFlag gives a command that prints results the flag for it.
func OutputFlag(cmd *cobra.Command) *Format {
	f := tableFormat
	cmd.Flags().VarP(&f, "output", "o", "print a table for people, or JSON")
	formats := []cobra.Completion{string(tableFormat), string(jsonFormat)}
	complete := cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // only where there is no such flag
	}
	return &f
}

// PrintResult writes a result: as JSON, or as the text that table writes.
func (a *App) PrintResult(f Format, result any, table func(*bytes.Buffer)) error {
	var b bytes.Buffer
	if f == jsonFormat {
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
