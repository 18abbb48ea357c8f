package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

func systemCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:     "system",
		Short:   "Read and change the system's limits, policy and retention",
		Example: "  weir system get-limits\n  weir system set-limits rpm:600",
	})
	cmd.AddCommand(limitCommands(a, &placeKind{group: "system", description: "the system", legacyName: true})...)
	cmd.AddCommand(setPolicyCommand(a), setRetentionCommand(a))
	return cmd
}

func setPolicyCommand(a *console.App) *cobra.Command {
	policies := []cobra.Completion{string(weir.Block), string(weir.Allow)}
	cmd := &cobra.Command{
		Use:   "set-policy block|allow",
		Short: "Set what happens when the store does not answer",
		Long: `Set what a reservation gets when the store does not answer: with
block an error, with allow a lease that has reserved nothing and is marked degraded. With both,
a denial stays a denial.`,
		Example:           "  weir system set-policy block",
		Args:              console.Arguments(1, 1, "block or allow"),
		ValidArgsFunction: cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp),
	}
	return connect.Command(a, cmd, connect.Configures, func(_ *cobra.Command, args []string) (connect.Action, error) {
		policy := weir.Policy(args[0])
		if policy != weir.Block && policy != weir.Allow {
			return nil, argumentError("on_unavailable", args[0], "must be block or allow")
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			if err := c.Admin.SetPolicy(ctx, policy); err != nil {
				return nil, err
			}
			return &connect.Answer{Value: policyBody{policy, c.Note()}, Table: func(b *bytes.Buffer) {
				fmt.Fprintf(b, "on_unavailable  %s\n", policy)
			}}, nil
		}, nil
	})
}

func resourceCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "resource",
		Short: "Read and change the limits of a resource",
		Example: `  weir resource set-limits gpt-4o rpm:500 tpm:100000/min:200000
  weir resource capacity gpt-4o`,
	})
	cmd.AddCommand(limitCommands(a, &placeKind{
		group: "resource", names: []string{"RESOURCE"}, example: "gpt-4o", description: "a resource",
		legacyName: true, at: func(args []string, at *weir.Subject) { at.Resource = args[0] },
	})...)
	cmd.AddCommand(capacityCommand(a), listResourcesCommand(a))
	return cmd
}

func capacityCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capacity RESOURCE",
		Short: "Print what is available to each entity on a resource",
		Long: `Print what is available to every entity that has units in use on a
resource, or limits of its own on it. The command changes nothing.`,
		Example:           "  weir resource capacity gpt-4o",
		Args:              console.Arguments(1, 1, "RESOURCE"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	do := func(ctx context.Context, c *connect.Connection, args []string) (*connect.Answer, error) {
		statuses, err := c.Admin.Capacity(ctx, args[0])
		if err != nil {
			return nil, err
		}
		return statusAnswer(statuses, "no entity uses "+args[0]+" or has limits of its own on it\n"), nil
	}
	return connect.Command(a, cmd, connect.Reads, connect.OnNames(do, "RESOURCE"))
}

const limitArgumentHelp = `

LIMIT is NAME:RATE[/PERIOD][:CAPACITY] for a bucket, NAME:CAPACITY:KIND/PERIOD for the other
kinds. With :shadow at its end the limit is counted but never denies:

  rpm:600                            a bucket of 600, refilled at 600 a minute
  tpm:100000/min:200000              200,000, refilled at 100,000 a minute
  day:5000:window/86400s             5,000 in any 86,400 seconds
  parallel:20:concurrency/300s       20 slots, each held for at most 300 seconds
  usd_micros:50000000:budget/month  50 USD a calendar month, in micro-USD`

// placeKind is a kind of place at which limits are configured: the system, a resource or an entity.
type placeKind struct {
	group       string   // the command that these are below
	names       []string // the arguments that name the place
	example     string   // such arguments
	description string   // such a place, for use in a sentence
	legacyName  bool     // accept the predecessor's name, defaults
	// flag adds the flag for a further part of the place to a command.
	flag func(cmd *cobra.Command, at *weir.Subject)
	// at fills in the place that arguments name.
	at func(args []string, at *weir.Subject)
}

// limitCommands are the commands that read and change the limits of one place.
func limitCommands(a *console.App, p *placeKind) []*cobra.Command {
	return []*cobra.Command{getLimitsCommand(a, p), setLimitsCommand(a, p), deleteLimitsCommand(a, p)}
}

// command returns a command for one of the actions. Each command has its own subject, which its
// arguments fill in.
func (p *placeKind) command(verb, arguments, short, long string) (*cobra.Command, *weir.Subject) {
	at := &weir.Subject{}
	line := func(words ...string) string {
		return strings.Join(strings.Fields(strings.Join(words, " ")), " ") // some are empty
	}
	cmd := &cobra.Command{
		Use:               line(append(append([]string{verb + "-limits"}, p.names...), arguments)...),
		Short:             short,
		Long:              long,
		ValidArgsFunction: cobra.NoFileCompletions,
		Example:           "  " + line("weir", p.group, verb+"-limits", p.example),
	}
	if p.legacyName {
		cmd.Aliases = []string{verb + "-defaults"}
	}
	if p.flag != nil {
		p.flag(cmd, at)
	}
	return cmd, at
}

// parse fills in the subject from the arguments, and refuses arguments that would name another kind
// of place.
func (p *placeKind) parse(cmd *cobra.Command, args []string, at *weir.Subject) error {
	if err := console.RefuseEmpty(cmd, args[:len(p.names)], p.names...); err != nil {
		return err
	}
	if p.at != nil {
		p.at(args, at)
	}
	return nil
}

func (p *placeKind) argumentsOf(least, most int, what string) cobra.PositionalArgs {
	n := len(p.names)
	if what != "" {
		what = strings.Join(append(p.names[:n:n], what), " and ")
	} else {
		what = strings.Join(p.names, " and ")
	}
	if most >= 0 {
		most += n
	}
	return console.Arguments(n+least, most, what)
}

func getLimitsCommand(a *console.App, p *placeKind) *cobra.Command {
	cmd, at := p.command("get", "", "Print the limits of "+p.description,
		"Print the limits that are configured for "+p.description+`. It is not an error if
there are none: a weaker level may have limits, which weir explain shows.`)
	cmd.Args = p.argumentsOf(0, 0, "")
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := p.parse(cmd, args, at); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			place, err := c.Admin.Place(ctx, *at)
			if err != nil {
				return nil, err
			}
			if *at == (weir.Subject{}) {
				policy, err := c.Admin.Policy(ctx)
				if err != nil {
					return nil, err
				}
				retention, err := readRetention(ctx, c)
				return systemAnswer(policy, retention, place), err
			}
			return limitsAnswer(place, ""), nil
		}, nil
	})
}

func setLimitsCommand(a *console.App, p *placeKind) *cobra.Command {
	cmd, at := p.command("set", "LIMIT...", "Replace the limits of "+p.description,
		"Make these limits the only ones of "+p.description+`, from the next call on.

Units in use stay in use. A bucket keeps its balance: a lower capacity trims it, and under a
higher capacity it fills up at its refill rate.`+limitArgumentHelp)
	cmd.Example += " rpm:600 tpm:100000/min:200000"
	cmd.Args = p.argumentsOf(1, -1, "at least one LIMIT")
	conditions := versionFlag(cmd)
	return connect.Command(a, cmd, connect.Configures, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := p.parse(cmd, args, at); err != nil {
			return nil, err
		}
		limits, err := parseLimits(args[len(p.names):])
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			version, err := c.Admin.ChangeLimits(ctx, *at, limits, conditions.options())
			if err != nil {
				return nil, err
			}
			return limitsAnswer(&change.Place{Limits: limits, Version: version}, c.Note()), nil
		}, nil
	})
}

func deleteLimitsCommand(a *console.App, p *placeKind) *cobra.Command {
	cmd, at := p.command("delete", "", "Remove the limits of "+p.description,
		"Remove the limits of "+p.description+`, from the next call on: the next weaker level that
has limits applies then. If there are none, nothing changes.`)
	cmd.Args = p.argumentsOf(0, 0, "")
	conditions := versionFlag(cmd)
	return connect.Command(a, cmd, connect.Configures, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := p.parse(cmd, args, at); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			if _, err := c.Admin.ChangeLimits(ctx, *at, nil, conditions.options()); err != nil {
				return nil, err
			}
			return limitsAnswer(&change.Place{}, c.Note()), nil
		}, nil
	})
}

// limitsAnswer prints the limits of one place.
func limitsAnswer(place *change.Place, note string) *connect.Answer {
	body := limitSetBody{Limits: httpapi.Document(place.Limits), Version: place.Version, Note: note}
	return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) { writeLimits(b, place.Limits) }}
}

// systemAnswer prints what is configured for the system. The retention is nil if the store has no
// such settings.
func systemAnswer(policy weir.Policy, r *weir.Retention, place *change.Place) *connect.Answer {
	body := systemBody{
		OnUnavailable: policy, Limits: httpapi.Document(place.Limits), Version: place.Version,
	}
	if r != nil {
		body.Retention = retentionBodyOf(r)
	}
	return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
		fmt.Fprintf(b, "on_unavailable  %s\n", text.Printable(string(policy)))
		if r != nil {
			writeRetention(b, r)
		}
		b.WriteByte('\n')
		writeLimits(b, place.Limits)
	}}
}

// writeLimits prints definitions, the last column as set-limits reads it.
func writeLimits(b *bytes.Buffer, limits []weir.Limit) {
	if len(limits) == 0 {
		b.WriteString("no limits\n")
		return
	}
	t := text.Table{Heads: []string{"LIMIT", "KIND", ">CAPACITY", "DEFINITION"}}
	for _, l := range limits {
		t.Add(l.Name, string(l.Kind), text.FormatInt(l.Capacity), manifest.FormatLimit(l))
	}
	t.Write(b)
}

// The bodies below are printed by --output json for the configuration. They have the fields of the
// wire, and a test compares the two. The version is in a header there. The answers of verbs are types of httpapi.
type (
	limitSetBody struct {
		Limits  any    `json:"limits"`
		Version string `json:"version,omitempty"`
		Note    string `json:"note,omitempty"`
	}
	systemBody struct {
		OnUnavailable weir.Policy    `json:"on_unavailable"`
		Retention     *retentionBody `json:"retention,omitempty"`
		Limits        any            `json:"limits"`
		Version       string         `json:"version,omitempty"`
	}
	policyBody struct {
		OnUnavailable weir.Policy `json:"on_unavailable"`
		Note          string      `json:"note,omitempty"`
	}
	entityBody struct {
		Entity   string         `json:"entity"`
		Parent   string         `json:"parent,omitempty"`
		Cascade  bool           `json:"cascade,omitempty"`
		Name     string         `json:"name,omitempty"`
		Metadata map[string]any `json:"metadata,omitempty"`
		Limits   map[string]any `json:"limits,omitempty"`
		Version  string         `json:"version,omitempty"`
		Note     string         `json:"note,omitempty"`
	}
	resourcesBody struct {
		Resources []string `json:"resources"`
		Next      string   `json:"next,omitempty"`
	}
	entitiesBody struct {
		Entities []string `json:"entities"`
		Next     string   `json:"next,omitempty"`
	}
)
