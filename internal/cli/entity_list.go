package cli

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// entityPage is how many names are asked for at once: as many as a page may have.
const entityPage = 1000

// entityFlags say how much of a list of entities is wanted.
type entityFlags struct {
	query weir.EntityQuery
	most  int
}

// pages gives cmd the flags that cut a list.
func (f *entityFlags) pages(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.query.After, "after", "", "start after this `ENTITY`")
	cmd.Flags().IntVar(&f.most, "size", 0, "print at most `N` names (default all)")
}

func listEntitiesCommand(a *console.App) *cobra.Command {
	f := &entityFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the entities that are declared",
		Long: `List the entities that are declared, in order, one per line. An entity without limits,
parent and children need not be declared to use the limits of a resource or the system.`,
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
		for _, name := range []string{"parent", "with-limits-on"} {
			if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
				return nil, console.UsageError(cmd, "--%s must not be empty", name)
			}
		}
		return f.plan(cmd)
	})
}

func childrenCommand(a *console.App) *cobra.Command {
	f := &entityFlags{}
	cmd := entityArgument(&cobra.Command{
		Use:     "children ENTITY",
		Short:   "List the entities below another",
		Long:    "List the entities whose parent is ENTITY, in order, one a line.",
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

// none says what it means that the list is empty.
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

// list asks for one page after the other.
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
			// A list that does not go on would never end.
			return nil, fmt.Errorf("entity list: the page after %q ends at %q", q.After, page.Next)
		case left <= 0:
			out.Next = page.Next
			return out, nil
		}
		q.After = page.Next
	}
}
