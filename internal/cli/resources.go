package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// resourceFlags select a part of a list of resources.
type resourceFlags struct {
	after string
	most  int
}

func (f *resourceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.after, "after", "", "start after this `RESOURCE`")
	cmd.Flags().IntVar(&f.most, "size", 0, "print at most `N` names (default all)")
}

func listResourcesCommand(a *console.App) *cobra.Command {
	f := &resourceFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the resources that have limits or are in use",
		Long: `List the resources that have limits, of their own or of an entity, and those that
are in use, in order, one per line. On a DynamoDB table that are those with bucket items, and the
command reads the keys of all of them.`,
		Example: "  weir resource list\n  weir resource list --size 100 --after gpt-4o",
		Args:    console.Arguments(0, 0, ""),
	}
	f.add(cmd)
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, _ []string) (connect.Action, error) {
		return f.plan(cmd, "", "no resources have limits or are in use")
	})
}

func listResourcesOfCommand(a *console.App) *cobra.Command {
	f := &resourceFlags{}
	cmd := entityArgument(&cobra.Command{
		Use:   "list-resources ENTITY",
		Short: "List the resources of an entity",
		Long: `List the resources on which an entity has limits of its own or something in use,
in order, one per line. The entity need not be declared.`,
		Example: "  weir entity list-resources acme-bot",
	})
	f.add(cmd)
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "ENTITY"); err != nil {
			return nil, err
		}
		return f.plan(cmd, args[0], args[0]+" has no limits of its own on a resource, and uses none")
	})
}

// plan returns the action that prints the resources of an entity, or all. none is the text for an
// empty list.
func (f *resourceFlags) plan(cmd *cobra.Command, entity, none string) (connect.Action, error) {
	if cmd.Flags().Changed("size") && f.most < 1 {
		return nil, console.UsageError(cmd, "--size %d: must be above zero", f.most)
	}
	return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
		names, err := c.Admin.Resources(ctx, entity)
		if err != nil {
			return nil, err
		}
		body := f.page(names)
		return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
			if len(body.Resources) == 0 {
				if f.after != "" {
					none += ", after " + f.after
				}
				b.WriteString(text.Printable(none) + "\n")
			}
			for _, name := range body.Resources {
				b.WriteString(text.Printable(name) + "\n")
			}
			if body.Next != "" {
				fmt.Fprintf(b, "… more with --after %s\n", text.Printable(body.Next))
			}
		}}, nil
	}, nil
}

// page returns the part of a list that the flags select.
func (f *resourceFlags) page(names []string) *resourcesBody {
	from, found := slices.BinarySearch(names, f.after)
	if found {
		from++
	}
	names = names[from:]
	body := &resourcesBody{Resources: append([]string{}, names...)}
	if f.most > 0 && len(names) > f.most {
		body.Resources = body.Resources[:f.most]
		body.Next = names[f.most-1]
	}
	return body
}
