package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

const limitsCheckHelp = `Check limits files: name every mistake by file, line and column, or print what a
file declares and what its levels hide. The first level that has any limits wins whole (entity
and resource, entity and _default_, resource, system), so a limit of a weaker level may not
apply at all.

FILE is a limits file, or - for standard input. All files are read, also after one with
mistakes; the exit code is 1 if any file has a mistake.`

func limitsCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:     "limits",
		Short:   "Work with limits files",
		Example: "  weir limits check limits.yaml",
	})
	cmd.AddCommand(limitsCheckCommand(a))
	return cmd
}

func limitsCheckCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find the mistakes in limits files",
		Long:  limitsCheckHelp,
		Example: `  weir limits check limits.yaml
  weir limits check --output json *.yaml
  generate-limits | weir limits check -`,
		Args: console.Arguments(1, -1, "at least one limits file, or - for standard input"),
	}
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return console.UsageError(cmd, "FILE must not be empty")
		}
		var errs []error
		result := limitsResult{Files: []*limitsFile{}}
		for _, name := range args {
			f, err := checkLimits(cmd.Context(), a, name)
			errs = append(errs, err)
			result.Files = append(result.Files, f)
		}
		err := a.PrintResult(*output, result, func(b *bytes.Buffer) { result.table(b) })
		return errors.Join(append(errs, err)...)
	})
	return cmd
}

// checkLimits reads a limits file and says what is in it, and what is wrong with it.
func checkLimits(ctx context.Context, a *console.App, name string) (*limitsFile, error) {
	m, err := connect.ReadLimits(ctx, a, name)
	f := &limitsFile{File: console.InputName(name), Valid: err == nil}
	if err != nil {
		f.Errors = limitsMistakes(err)
		return f, err
	}
	f.Summary = summarize(m)
	for _, h := range manifest.Hidden(m.Definitions) {
		f.Hidden = append(f.Hidden, describeHidden(&h))
	}
	return f, nil
}

// limitsMistakes turns the errors joined in err into what JSON says of them.
func limitsMistakes(err error) []limitsMistake {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []limitsMistake
		for _, e := range joined.Unwrap() {
			all = append(all, limitsMistakes(e)...)
		}
		return all
	}
	found := limitsMistake{Reason: err.Error()}
	if at, ok := errors.AsType[*manifest.Error](err); ok {
		found.Line, found.Column = at.Line, at.Column
	}
	if e, ok := errors.AsType[*weir.Error](err); ok {
		found.Field, found.Value, found.Reason = e.Field, e.Value, e.Reason
	}
	return []limitsMistake{found}
}

// limitsResult is what `weir limits check` prints.
type limitsResult struct {
	Files []*limitsFile `json:"files"`
}

func (r *limitsResult) table(b *bytes.Buffer) {
	for i, f := range r.Files {
		if i > 0 {
			b.WriteString("\n")
		}
		if !f.Valid {
			fmt.Fprintf(b, "%s: %s\n", f.File, text.Plural(len(f.Errors), "mistake", "mistakes"))
			continue
		}
		fmt.Fprintf(b, "%s: valid\n", f.File)
		f.Summary.table(b, len(f.Hidden))
		for _, h := range f.Hidden {
			fmt.Fprintf(b, "    %s\n", h.text)
		}
	}
}
