package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

const statusHelp = `Print the limits that a request of an entity on a resource would be charged
on, and what is available of each: its own, then those of each ancestor that it charges. A
negative number is a debt. Without RESOURCE, print every resource on which one of them has
limits of its own or units in use. The command changes nothing.`

func statusCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status ENTITY [RESOURCE]",
		Short: "Print an entity's limits and what is available",
		Long:  statusHelp,
		Example: `  weir status acme gpt-4o
  weir status acme --output json`,
		Args:              console.Arguments(1, 2, "an entity"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	do := func(ctx context.Context, c *connect.Connection, args []string) (*connect.Answer, error) {
		resource := ""
		if len(args) > 1 {
			resource = args[1]
		}
		statuses, err := c.Service.Status(ctx, args[0], resource)
		if err != nil {
			return nil, err
		}
		return statusAnswer(statuses, args[0]+" uses nothing, and has no limits of its own\n"), nil
	}
	return connect.Command(a, cmd, connect.Reads, connect.OnNames(do, "ENTITY", "RESOURCE"))
}

// statusAnswer prints the status of limits, or a sentence if there are none.
func statusAnswer(all []weir.LimitStatus, none string) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(all), Table: func(b *bytes.Buffer) {
		if len(all) == 0 {
			b.WriteString(none)
			return
		}
		writeStatuses(b, all, false)
	}}
}

// writeStatuses prints the status of limits, with the requested units if any were requested.
func writeStatuses(b *bytes.Buffer, all []weir.LimitStatus, requested bool) {
	t := text.Table{Heads: []string{"ENTITY", "RESOURCE", "LIMIT", "KIND", "LEVEL"}}
	if requested {
		t.Heads = append(t.Heads, ">REQUESTED")
	}
	t.Heads = append(t.Heads, ">AVAILABLE", ">CAPACITY")
	notes := make([]string, len(all))
	for i := range all {
		notes[i] = statusNote(&all[i])
	}
	noted := strings.Join(notes, "") != ""
	if noted {
		t.Heads = append(t.Heads, "NOTE")
	}
	for i := range all {
		s := &all[i]
		cells := []string{s.Entity, s.Resource, s.Limit, string(s.Kind), string(s.Level)}
		if requested {
			cells = append(cells, text.FormatInt(s.Requested))
		}
		cells = append(cells, text.FormatInt(s.Available), text.FormatInt(s.Capacity))
		if noted {
			cells = append(cells, notes[i])
		}
		t.Add(cells...)
	}
	t.Write(b)
}

// waitText says when a limit fits what was asked of it: "after 12s", "after at least 12s", or
// "within 5m0s, likely after 3s".
func waitText(s *weir.LimitStatus) string {
	switch {
	case s.AtLeast:
		return "after at least " + s.RetryAfter.String()
	case s.RetryLikely > 0:
		return "within " + s.RetryAfter.String() + ", likely after " + s.RetryLikely.String()
	case s.AtMost():
		return "within " + s.RetryAfter.String()
	}
	return "after " + s.RetryAfter.String()
}

// statusNote returns the properties of a limit that its figures do not show.
func statusNote(s *weir.LimitStatus) string {
	var notes []string
	if s.Exceeded {
		note := "exceeded"
		if s.RetryAfter > 0 {
			note += ": fits " + waitText(s)
		}
		notes = append(notes, note)
	}
	if s.Available < 0 {
		notes = append(notes, "in debt")
	}
	if s.Shadow {
		notes = append(notes, "shadow: never denies")
	}
	if s.Superseded {
		notes = append(notes, "of limits that are not in force")
	}
	return strings.Join(notes, ", ")
}

const explainHelp = `Print which limits apply to an entity on a resource, and why. Only the
limits of the first level that has any apply (the levels are: entity and resource, entity and
_default_, resource, system). The limits of weaker levels do not apply, even under other names.
A parent that is charged too is explained with its own limits. The last line says what a
reservation gets if the store does not answer, and where that is set: in the options of the
limiter, in the system's configuration, or nowhere, which means block.

With NAME=N it also prints what a request with these costs would be charged on each limit, and
which limits it leaves out: a limit that is not named is neither judged nor charged, except that
each concurrency limit costs 1.`

func explainCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ENTITY RESOURCE [NAME=N...]",
		Short: "Print which limits apply, and which ones they hide",
		Long:  explainHelp,
		Example: `  weir explain acme gpt-4o
  weir explain acme gpt-4o rpm=1 tpm=500
  weir explain acme gpt-4o --store memory:?snapshot=weir.snapshot \
    --limits limits.yaml`,
		Args:              console.Arguments(2, -1, "an entity and a resource"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return connect.Command(a, cmd, connect.Reads, planExplain)
}

// planExplain reads what to explain from the command line.
func planExplain(cmd *cobra.Command, args []string) (connect.Action, error) {
	if err := console.RefuseEmpty(cmd, args[:2], "ENTITY", "RESOURCE"); err != nil {
		return nil, err
	}
	costs, err := parseAmounts("costs", args[2:])
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
		e, err := c.Service.Explain(ctx, args[0], args[1])
		if err == nil && len(costs) > 0 {
			err = e.Charge(costs)
		}
		if err != nil {
			return nil, err
		}
		return &connect.Answer{Value: httpapi.Document(e), Table: func(b *bytes.Buffer) {
			writeExplanation(b, e)
		}}, nil
	}, nil
}

// writeExplanation prints the limits that apply to an entity, and to each parent that is charged
// with it, and the policy for an unavailable store.
func writeExplanation(b *bytes.Buffer, first *weir.Explanation) {
	for e := first; e != nil; e = e.Parent {
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
	if first.OnUnavailable != "" { // a server of an older version does not say
		fmt.Fprintf(b, "\non_unavailable  %s (%s)\n", text.Printable(string(first.OnUnavailable)),
			policySource(first.OnUnavailableFrom))
	}
}

// policySource returns the source of a policy in words.
func policySource(from weir.PolicySource) string {
	switch from {
	case weir.PolicyFromLimiter:
		return "the limiter's options"
	case weir.PolicyFromSystem:
		return "the system's configuration"
	case weir.PolicyFromDefault:
		return "the default"
	}
	return text.Printable(string(from))
}

func explanationTable(e *weir.Explanation) *text.Table {
	t := &text.Table{Indent: "  ", Heads: []string{
		"LEVEL", "LIMIT", "KIND", "DEFINITION", "APPLIES",
	}}
	if e.Costs != nil {
		t.Heads = append(t.Heads, ">CHARGED")
	}
	add := func(level weir.Level, limits []weir.Limit, applies string) {
		for _, l := range limits {
			t.Add(string(level), l.Name, string(l.Kind), manifest.FormatLimit(l), applies,
				chargedText(e, level, l.Name))
		}
	}
	add(e.Level, e.Limits, "yes")
	for _, h := range e.Hidden {
		add(h.Level, h.Limits, "no, hidden by "+string(e.Level))
	}
	return t
}

// chargedText says what the costs come to on a limit of a level.
func chargedText(e *weir.Explanation, level weir.Level, limit string) string {
	units, charged := e.Costs[limit]
	switch {
	case level != e.Level || e.Costs == nil:
		return ""
	case charged:
		return text.FormatInt(units)
	}
	return "left out"
}
