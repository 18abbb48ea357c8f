package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/joined"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

const limitsCheckHelp = `Check limits files. The command prints every mistake with its file, line
and column. If there are none, it prints what the file declares, and which limits hide which.
Only the limits of the first level that has any apply (the levels are: entity and
resource, entity and _default_, resource, system), so a limit of a weaker level may not apply
at all. If the stronger level has no limit of that name, the command warns, because nothing
replaces the weaker one.

The command also warns of a limit on money that looks as if it were in whole units of the currency,
such as usd with a capacity of 50. Amounts are whole numbers, so count money in millionths:
usd_micros with a capacity of 50000000 is 50 USD. A warning does not change the exit code.

FILE is a limits file, or - for standard input. All files are read, also after one with
mistakes; the exit code is 1 if any file has a mistake.`

func limitsCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "limits",
		Short: "Check limits files, and keep what is stored equal to one",
		Example: `  weir limits check limits.yaml
  weir limits plan limits.yaml --store dynamodb://limits
  weir limits apply limits.yaml --store dynamodb://limits`,
	})
	cmd.AddCommand(limitsCheckCommand(a), limitsPlanCommand(a), limitsDiffCommand(a),
		limitsApplyCommand(a), limitsExportCommand(a))
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
		err := a.PrintResult(output, result, func(b *bytes.Buffer) { result.table(b) })
		return errors.Join(append(errs, err)...)
	})
	return cmd
}

// checkLimits reads a limits file and returns its contents and mistakes.
func checkLimits(ctx context.Context, a *console.App, name string) (*limitsFile, error) {
	m, err := connect.ReadLimits(ctx, a, name)
	f := &limitsFile{File: console.InputName(name), Valid: err == nil}
	if err != nil {
		f.Errors = limitsMistakes(err)
		return f, err
	}
	f.Summary = summarize(m)
	for _, w := range m.Warnings() {
		f.Warnings = append(f.Warnings, limitsMistake{w.Line, w.Column, w.Field, w.Value, w.Reason})
		w.File = f.File
		f.warned = append(f.warned, w.String())
	}
	for _, h := range manifest.Hidden(m.Definitions) {
		f.Hidden = append(f.Hidden, describeHidden(&h))
	}
	return f, nil
}

// limitsMistakes returns the errors joined in err, in the form for JSON.
func limitsMistakes(err error) []limitsMistake {
	var all []limitsMistake
	for _, err := range joined.Errors(err) {
		found := limitsMistake{Reason: err.Error()}
		if at, ok := errors.AsType[*manifest.Error](err); ok {
			found.Line, found.Column = at.Line, at.Column
		}
		if e, ok := errors.AsType[*weir.Error](err); ok {
			found.Field, found.Value, found.Reason = e.Field, e.Value, e.Reason
		}
		all = append(all, found)
	}
	return all
}

// limitsResult is the output of `weir limits check`.
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
		fmt.Fprintf(b, "%s: valid", f.File)
		if n := len(f.Warnings); n > 0 {
			b.WriteString(", " + text.Plural(n, "warning", "warnings"))
		}
		b.WriteString("\n")
		f.Summary.table(b, len(f.Hidden))
		for _, h := range f.Hidden {
			fmt.Fprintf(b, "    %s\n", h.text)
		}
		for _, w := range f.warned {
			b.WriteString(w + "\n")
		}
	}
}

// limitsFile is the result of checking one limits file.
type limitsFile struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Errors   []limitsMistake `json:"errors,omitempty"`
	Warnings []limitsMistake `json:"warnings,omitempty"`
	Summary  *limitsSummary  `json:"summary,omitempty"`
	Hidden   []hiddenLimits  `json:"hidden,omitempty"`

	warned []string // the warnings as lines
}

// limitsMistake is one mistake or warning. A mistake of the file as a whole has no line.
type limitsMistake struct {
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
}

// limitsSummary counts what a file declares.
type limitsSummary struct {
	Namespace     string         `json:"namespace"`
	OnUnavailable weir.Policy    `json:"on_unavailable"`
	Retention     *retentionBody `json:"retention,omitempty"`
	Entities      int            `json:"entities"`
	WithParent    int            `json:"entities_with_parent"`
	Cascading     int            `json:"entities_cascading"`
	Resources     int            `json:"resources"`
	Limits        int            `json:"limits"`
	Kinds         kindCounts     `json:"limits_by_kind"`
	Shadow        int            `json:"limits_shadow"`
}

// kindCounts counts limits by kind.
type kindCounts struct {
	Bucket      int `json:"bucket"`
	Window      int `json:"window"`
	Concurrency int `json:"concurrency"`
	Budget      int `json:"budget"`
}

func (c *kindCounts) count(k weir.Kind) {
	switch k {
	case weir.Bucket:
		c.Bucket++
	case weir.Window:
		c.Window++
	case weir.Concurrency:
		c.Concurrency++
	case weir.Budget:
		c.Budget++
	}
}

func summarize(m *manifest.Manifest) *limitsSummary {
	d := m.Definitions
	s := &limitsSummary{
		Namespace: m.Namespace, OnUnavailable: d.OnUnavailable,
		Entities: len(d.Entities), Resources: len(d.Resources),
	}
	if !d.Retention.IsZero() {
		s.Retention = retentionBodyOf(&d.Retention)
	}
	for _, e := range d.Entities {
		if e.Parent != "" {
			s.WithParent++
		}
		if e.Cascade {
			s.Cascading++
		}
	}
	for _, l := range d.All {
		s.Limits++
		s.Kinds.count(l.Kind)
		if l.Shadow {
			s.Shadow++
		}
	}
	return s
}

// table prints the counts, and below them the hidden limits.
func (s *limitsSummary) table(b *bytes.Buffer, hidden int) {
	t := text.Table{Indent: "  "}
	t.Add("namespace", s.Namespace)
	t.Add("on_unavailable", string(s.OnUnavailable))
	if s.Retention != nil {
		t.Add("retention", s.Retention.String())
	}
	entities := text.FormatInt(int64(s.Entities))
	if s.WithParent > 0 {
		entities += fmt.Sprintf(" (%s, %s cascading)",
			text.Plural(s.WithParent, "with a parent", "with a parent"), text.FormatInt(int64(s.Cascading)))
	}
	t.Add("entities", entities)
	t.Add("resources", text.FormatInt(int64(s.Resources)))
	var kinds []string
	for _, k := range []struct {
		name string
		n    int
	}{
		{"bucket", s.Kinds.Bucket}, {"window", s.Kinds.Window},
		{"concurrency", s.Kinds.Concurrency}, {"budget", s.Kinds.Budget},
	} {
		if k.n > 0 {
			kinds = append(kinds, text.FormatInt(int64(k.n))+" "+k.name)
		}
	}
	limits := text.FormatInt(int64(s.Limits))
	if len(kinds) > 0 {
		limits += " (" + strings.Join(kinds, ", ") + ")"
	}
	if s.Shadow > 0 {
		limits += fmt.Sprintf(", %s of them shadow", text.FormatInt(int64(s.Shadow)))
	}
	t.Add("limits", limits)
	if hidden > 0 {
		t.Add("hidden", "")
	} else {
		t.Add("hidden", "nothing")
	}
	t.Write(b)
}

// hiddenLimits are the limits that a level hides; see [manifest.HiddenLimits].
type hiddenLimits struct {
	Entities []string      `json:"entities,omitempty"`
	Resource string        `json:"resource"`
	Level    weir.Level    `json:"level"`
	Hidden   []hiddenLevel `json:"hidden"`

	text string
}

// hiddenLevel is a hidden level. It divides its limits into those that the winning level has too
// and those that nothing replaces.
type hiddenLevel struct {
	Level      weir.Level `json:"level"`
	Overridden []string   `json:"overridden,omitempty"`
	Lost       []string   `json:"lost,omitempty"`
}

func describeHidden(h *manifest.HiddenLimits) hiddenLimits {
	out := hiddenLimits{Entities: h.Entities, Resource: h.Resource, Level: h.Level, text: h.String()}
	for _, l := range h.Hidden {
		out.Hidden = append(out.Hidden, hiddenLevel{l.Level, l.Overridden, l.Lost})
	}
	return out
}
