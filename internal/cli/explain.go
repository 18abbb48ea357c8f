package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

const explainHelp = `Say which limits apply to an entity on a resource, and why. The first
level that has any limits wins whole (entity and resource, entity and _default_, resource,
system), so the limits of a weaker level do not apply, even under other names. A parent that
is charged too is explained with its own limits.`

func explainCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ENTITY RESOURCE",
		Short: "Say which limits apply, and which ones they hide",
		Long:  explainHelp,
		Example: `  weir explain acme gpt-4o
  weir explain acme gpt-4o --store memory:?snapshot=weir.snapshot \
    --limits limits.yaml`,
		Args:              console.Arguments(2, 2, "an entity and a resource"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "ENTITY", "RESOURCE"); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			e, err := c.Service.Explain(ctx, args[0], args[1])
			if err != nil {
				return nil, err
			}
			return &connect.Answer{Value: httpapi.Document(e), Table: func(b *bytes.Buffer) {
				writeExplanation(b, e)
			}}, nil
		}, nil
	})
}

// writeExplanation prints what applies to an entity, and to each parent that is charged with it.
func writeExplanation(b *bytes.Buffer, e *weir.Explanation) {
	for ; e != nil; e = e.Parent {
		fmt.Fprintf(b, "%s on %s\n", text.Printable(e.Entity), text.Printable(e.Resource))
		if e.Level == "" {
			b.WriteString("  no limits are configured\n")
		} else {
			explanationTable(e).Write(b)
		}
		if e.Parent != nil {
			fmt.Fprintf(b, "\ncascades: %s is charged too\n\n", text.Printable(e.Parent.Entity))
		}
	}
}

func explanationTable(e *weir.Explanation) *text.Table {
	t := &text.Table{Indent: "  ", Heads: []string{
		"LEVEL", "LIMIT", "KIND", "DEFINITION", "APPLIES",
	}}
	add := func(level weir.Level, limits []weir.Limit, applies string) {
		for _, l := range limits {
			t.Add(string(level), l.Name, string(l.Kind), manifest.FormatLimit(l), applies)
		}
	}
	add(e.Level, e.Limits, "yes")
	for _, h := range e.Hidden {
		add(h.Level, h.Limits, "no, hidden by "+string(e.Level))
	}
	return t
}
