package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/store"
)

func entityCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "entity",
		Short: "Read and change entities and their limits",
		Example: `  weir entity set acme-bot --parent acme --cascade
  weir entity set-limits acme-bot --resource gpt-4o rpm:100`,
	})
	cmd.AddCommand(getEntityCommand(a), setEntityCommand(a), deleteEntityCommand(a),
		listEntitiesCommand(a), childrenCommand(a), listResourcesOfCommand(a))
	cmd.AddCommand(limitCommands(a, &placeKind{
		group: "entity", names: []string{"ENTITY"}, example: "acme", description: "an entity",
		flag: func(cmd *cobra.Command, at *weir.Subject) {
			cmd.Flags().StringVarP(&at.Resource, "resource", "r", weir.DefaultResource,
				"`NAME` of the resource, or _default_ for every one without limits of its own")
		},
		at: func(args []string, at *weir.Subject) { at.Entity = args[0] },
	})...)
	return cmd
}

// entityArgument makes cmd take an entity as its only argument.
func entityArgument(cmd *cobra.Command) *cobra.Command {
	cmd.Args = console.Arguments(1, 1, "ENTITY")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func getEntityCommand(a *console.App) *cobra.Command {
	cmd := entityArgument(&cobra.Command{
		Use:     "get ENTITY",
		Aliases: []string{"show"},
		Short:   "Print an entity with all its limits",
		Long: `Print an entity's parent, whether it cascades, its name and metadata, and its own
limits. The version changes with any of them; --if-version of other commands requires it.`,
		Example: "  weir entity get acme-bot",
	})
	do := func(ctx context.Context, c *connect.Connection, args []string) (*connect.Answer, error) {
		e, err := c.Admin.Entity(ctx, args[0])
		if err != nil {
			return nil, err
		}
		return entityAnswer(args[0], e), nil
	}
	return connect.Command(a, cmd, connect.Reads, connect.OnNames(do, "ENTITY"))
}

func deleteEntityCommand(a *console.App) *cobra.Command {
	cmd := entityArgument(&cobra.Command{
		Use:   "delete ENTITY",
		Short: "Remove an entity and its limits",
		Long: `Remove an entity and its limits. Its live leases can still be settled. An entity
that is the parent of another one cannot be deleted. Its usage stays until its retention ends;
--with-usage deletes it too, also that of an entity that was deleted before.`,
		Example: `  weir entity delete acme-bot
  weir entity delete acme-bot --with-usage --store dynamodb://limits`,
	})
	withUsage := cmd.Flags().Bool("with-usage", false,
		"delete the recorded usage of the entity too; only with --store dynamodb://TABLE")
	conditions := versionFlag(cmd)
	do := func(ctx context.Context, c *connect.Connection, args []string) (*connect.Answer, error) {
		err := c.Admin.RemoveEntity(ctx, args[0], conditions.options())
		if *withUsage && (err == nil || errors.Is(err, weir.NotFound)) {
			n, failed := deleteUsage(ctx, a, cmd, args[0])
			if failed != nil {
				return nil, failed
			}
			if n > 0 {
				err = nil // the entity was deleted before its usage
			}
		}
		if err != nil {
			return nil, err
		}
		return &connect.Answer{Value: entityBody{Entity: args[0], Note: c.Note()}, Table: func(b *bytes.Buffer) {
			fmt.Fprintf(b, "deleted  %s\n", text.Printable(args[0]))
		}}, nil
	}
	plan := connect.OnNames(do, "ENTITY")
	return connect.Command(a, cmd, connect.Configures, func(
		cmd *cobra.Command, args []string,
	) (connect.Action, error) {
		if *withUsage && (!connect.IsTable(tableURL(a, cmd)) || cmd.Flags().Changed("server")) {
			return nil, console.UsageError(cmd,
				"--with-usage needs the table itself: name it with --store dynamodb://TABLE")
		}
		return plan(cmd, args)
	})
}

// deleteUsage deletes the usage of an entity on the table of a command, and returns the number of
// items.
func deleteUsage(
	ctx context.Context, a *console.App, cmd *cobra.Command, entity string,
) (int64, error) {
	table, err := store.Table(tableURL(a, cmd))
	if err != nil {
		return 0, err
	}
	return table.DeleteUsage(ctx, entity)
}

// tableURL returns the URL of the store of a command.
func tableURL(a *console.App, cmd *cobra.Command) string {
	return cmp.Or(cmd.Flags().Lookup("store").Value.String(), a.Env(connect.StoreEnv))
}

// entityAnswer prints what is configured for an entity.
func entityAnswer(name string, e *weir.EntityDefinition) *connect.Answer {
	return &connect.Answer{Value: newEntityBody(name, e, ""), Table: func(b *bytes.Buffer) {
		head := text.Table{}
		head.Add("entity", name)
		if e.Parent != "" {
			head.Add("parent", e.Parent)
			head.Add("cascade", map[bool]string{true: "yes", false: "no"}[e.Cascade])
		}
		if e.Name != "" {
			head.Add("name", e.Name)
		}
		if e.Version != "" {
			head.Add("version", e.Version)
		}
		head.Write(b)
		writeMetadata(b, e.Metadata)
		b.WriteString("\n")
		t := text.Table{Heads: []string{"RESOURCE", "LIMIT", "KIND", ">CAPACITY", "DEFINITION"}}
		for _, resource := range slices.Sorted(maps.Keys(e.Limits)) {
			for _, l := range e.Limits[resource] {
				t.Add(resource, l.Name, string(l.Kind), text.FormatInt(l.Capacity), manifest.FormatLimit(l))
			}
		}
		if len(t.Rows) == 0 {
			b.WriteString("no limits of its own\n")
			return
		}
		t.Write(b)
	}}
}

func newEntityBody(name string, e *weir.EntityDefinition, note string) *entityBody {
	out := &entityBody{
		Entity: name, Parent: e.Parent, Cascade: e.Cascade, Name: e.Name, Metadata: e.Metadata,
		Version: e.Version, Note: note,
	}
	if len(e.Limits) > 0 {
		out.Limits = make(map[string]any, len(e.Limits))
	}
	for resource, limits := range e.Limits {
		out.Limits[resource] = httpapi.Document(limits)
	}
	return out
}

// entityPage is the number of names in a request: the most that a page may have.
const entityPage = 1000

// entityFlags select a part of a list of entities.
type entityFlags struct {
	query weir.EntityQuery
	most  int
}

// pages adds the flags that select a part of a list to cmd.
func (f *entityFlags) pages(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.query.After, "after", "", "start after this `ENTITY`")
	cmd.Flags().IntVar(&f.most, "size", 0, "print at most `N` names (default all)")
}

func listEntitiesCommand(a *console.App) *cobra.Command {
	f := &entityFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the entities that are declared",
		Long: `List the entities that are declared, in order, one per line. An entity without
limits, parent and children need not be declared to use the limits of a resource or the system.`,
		Example: `  weir entity list
  weir entity list --parent acme
  weir entity list --with-limits-on gpt-4o
  weir entity list --size 100 --after acme-bot`,
		Args: console.Arguments(0, 0, ""),
	}
	cmd.Flags().StringVar(&f.query.Parent, "parent", "", "only the children of this `ENTITY`")
	cmd.Flags().StringVar(&f.query.Resource, "with-limits-on", "",
		"only those with limits of their own on this `RESOURCE`, or on _default_")
	f.pages(cmd)
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, _ []string) (connect.Action, error) {
		return f.plan(cmd)
	})
}

func childrenCommand(a *console.App) *cobra.Command {
	f := &entityFlags{}
	cmd := entityArgument(&cobra.Command{
		Use:     "children ENTITY",
		Short:   "List the entities below another",
		Long:    "List the entities whose parent is ENTITY, in order, one per line.",
		Example: "  weir entity children acme",
	})
	f.pages(cmd)
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "ENTITY"); err != nil {
			return nil, err
		}
		f.query.Parent = args[0]
		return f.plan(cmd)
	})
}

func (f *entityFlags) plan(cmd *cobra.Command) (connect.Action, error) {
	if cmd.Flags().Changed("size") && f.most < 1 {
		return nil, console.UsageError(cmd, "--size %d: must be above zero", f.most)
	}
	return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
		body, err := f.list(ctx, c)
		if err != nil {
			return nil, err
		}
		return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
			if len(body.Entities) == 0 {
				b.WriteString(f.none() + "\n")
			}
			for _, name := range body.Entities {
				b.WriteString(text.Printable(name) + "\n")
			}
			if body.Next != "" {
				fmt.Fprintf(b, "… more with --after %s\n", text.Printable(body.Next))
			}
		}}, nil
	}, nil
}

// none returns the text for an empty list.
func (f *entityFlags) none() string {
	none := "no entities are declared"
	switch q := &f.query; {
	case q.Parent != "" && q.Resource != "":
		none = "no children of " + q.Parent + " have limits of their own on " + q.Resource
	case q.Parent != "":
		none = q.Parent + " has no children"
	case q.Resource != "":
		none = "no entities have limits of their own on " + q.Resource
	}
	if f.query.After != "" {
		none += " after " + f.query.After
	}
	return text.Printable(none)
}

// list asks for one page after another.
func (f *entityFlags) list(ctx context.Context, c *connect.Connection) (*entitiesBody, error) {
	left := f.most
	if left == 0 {
		left = math.MaxInt
	}
	out := &entitiesBody{Entities: []string{}}
	q := f.query
	for {
		q.Size = min(left, entityPage)
		page, err := c.Admin.Entities(ctx, &q)
		if err != nil {
			return nil, err
		}
		out.Entities = append(out.Entities, page.Names...)
		left -= len(page.Names)
		switch {
		case page.Next == "":
			return out, nil
		case page.Next <= q.After:
			// Without this check, a list that repeats a page would never end.
			return nil, fmt.Errorf("entity list: the page after %q ends at %q", q.After, page.Next)
		case left <= 0:
			out.Next = page.Next
			return out, nil
		}
		q.After = page.Next
	}
}
