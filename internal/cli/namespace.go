package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/namespace"
)

func namespaceCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "namespace",
		Short: "Divide a DynamoDB table into namespaces",
		Example: `  weir namespace register prod --store dynamodb://limits
  weir namespace list --server https://weir.example.com`,
	})
	cmd.AddCommand(registerNamespaceCommand(a), listNamespacesCommand(a), showNamespaceCommand(a),
		deleteNamespaceCommand(a), recoverNamespaceCommand(a), orphanNamespacesCommand(a),
		purgeNamespaceCommand(a))
	return cmd
}

// namespaceBody is a namespace as --output json prints it.
type namespaceBody struct {
	Name      string `json:"namespace"`
	ID        string `json:"namespace_id"`
	Status    string `json:"status"`
	CreatedAt string `json:"created_at,omitempty"`
	DeletedAt string `json:"deleted_at,omitempty"`
	// Registered is false if the namespace existed already.
	Registered *bool `json:"registered,omitempty"`
}

func newNamespaceBody(n *namespace.Namespace) *namespaceBody {
	return &namespaceBody{
		Name: n.Name, ID: n.ID, Status: n.Status, CreatedAt: n.CreatedAt, DeletedAt: n.DeletedAt,
	}
}

func (n *namespaceBody) table(b *bytes.Buffer) {
	t := text.Table{}
	t.Add("namespace", n.Name)
	t.Add("id", n.ID)
	t.Add("status", n.Status)
	if n.CreatedAt != "" {
		t.Add("created", n.CreatedAt)
	}
	if n.DeletedAt != "" {
		t.Add("deleted", n.DeletedAt)
	}
	t.Write(b)
}

// namespaceArgument makes cmd take a namespace's name or ID as its only argument.
func namespaceArgument(
	a *console.App, cmd *cobra.Command, what string,
	ask func(ctx context.Context, to namespace.Admin, arg string) (*namespaceBody, error),
) *cobra.Command {
	cmd.Args = console.Arguments(1, 1, what)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	plan := func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, what); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			body, err := ask(ctx, c.Namespaces, args[0])
			if err != nil {
				return nil, err
			}
			return &connect.Answer{Value: body, Table: body.table}, nil
		}, nil
	}
	return connect.Command(a, cmd, connect.Divides, plan)
}

func registerNamespaceCommand(a *console.App) *cobra.Command {
	return namespaceArgument(a, &cobra.Command{
		Use:   "register NAME",
		Short: "Create a namespace",
		Long: `Create a namespace: a set of entities, limits and balances in the table that
is isolated from all others. A namespace that exists stays as it is. To open it, add
?namespace=NAME to the store's URL.`,
		Example: "  weir namespace register prod --store dynamodb://limits",
	}, "NAME", func(
		ctx context.Context, to namespace.Admin, name string,
	) (*namespaceBody, error) {
		n, made, err := to.RegisterNamespace(ctx, name)
		if err != nil {
			return nil, err
		}
		body := newNamespaceBody(n)
		body.Registered = &made
		return body, nil
	})
}

func showNamespaceCommand(a *console.App) *cobra.Command {
	return namespaceArgument(a, &cobra.Command{
		Use:     "show NAME",
		Aliases: []string{"get"},
		Short:   "Print the ID of a namespace",
		Long:    "Print the ID of a namespace, and when it was registered.",
		Example: "  weir namespace show prod --store dynamodb://limits",
	}, "NAME", func(
		ctx context.Context, to namespace.Admin, name string,
	) (*namespaceBody, error) {
		return namespaceResult(to.Namespace(ctx, name))
	})
}

func deleteNamespaceCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a namespace, but not its data",
		Long: `Delete the name of a namespace. Its data stays under its ID until weir namespace
recover restores the name or weir namespace purge deletes the data. A server that has it open
is no longer ready, and refuses reservations once its cached configuration has expired. The
default namespace, which programs open by default, needs --yes. A server refuses to delete the
namespace that it serves.`,
		Example: `  weir namespace delete prod --store dynamodb://limits
  weir namespace delete default --yes --store dynamodb://limits`,
		Args:              console.Arguments(1, 1, "NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	confirm := confirmFlag(cmd)
	plan := func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "NAME"); err != nil {
			return nil, err
		}
		if args[0] == namespace.Default {
			const warning = "deleting the default namespace stops every program that names no namespace"
			if err := confirm(warning); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			body, err := namespaceResult(c.Namespaces.DeleteNamespace(ctx, args[0]))
			if err != nil {
				return nil, err
			}
			return &connect.Answer{Value: body, Table: body.table}, nil
		}, nil
	}
	return connect.Command(a, cmd, connect.Divides, plan)
}

func recoverNamespaceCommand(a *console.App) *cobra.Command {
	return namespaceArgument(a, &cobra.Command{
		Use:   "recover ID",
		Short: "Restore a deleted namespace",
		Long: `Restore a deleted namespace under its name, with all its data. This fails if
the name has been registered again, or if a purge has begun.`,
		Example: "  weir namespace recover 37b3m1eXQTY --store dynamodb://limits",
	}, "ID", func(
		ctx context.Context, to namespace.Admin, id string,
	) (*namespaceBody, error) {
		return namespaceResult(to.RecoverNamespace(ctx, id))
	})
}

func namespaceResult(n *namespace.Namespace, err error) (*namespaceBody, error) {
	if err != nil {
		return nil, err
	}
	return newNamespaceBody(n), nil
}

// namespacesBody is a list of namespaces as --output json prints it.
type namespacesBody struct {
	Namespaces []*namespaceBody `json:"namespaces"`
}

func listNamespacesCommand(a *console.App) *cobra.Command {
	return listOfNamespaces(a, &cobra.Command{
		Use:     "list",
		Short:   "List the namespaces of a table",
		Long:    "List the namespaces that have a name, in the order of the names.",
		Example: "  weir namespace list --store dynamodb://limits",
	}, "no namespaces", namespace.Admin.Namespaces)
}

func orphanNamespacesCommand(a *console.App) *cobra.Command {
	return listOfNamespaces(a, &cobra.Command{
		Use:   "orphans",
		Short: "List the namespaces that have data but no name",
		Long: `List the namespaces that have data but no name: deleted ones, those whose
purge was interrupted (purging), and those whose name entry is missing (lost). If the column
NAMESPACE is empty, the table no longer has the name.`,
		Example: "  weir namespace orphans --store dynamodb://limits",
	}, "no orphans", namespace.Admin.OrphanNamespaces)
}

// listOfNamespaces makes cmd print the namespaces that list returns.
func listOfNamespaces(
	a *console.App, cmd *cobra.Command, none string,
	list func(namespace.Admin, context.Context) ([]namespace.Namespace, error),
) *cobra.Command {
	cmd.Args = console.Arguments(0, 0, "")
	plan := func(*cobra.Command, []string) (connect.Action, error) {
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			all, err := list(c.Namespaces, ctx)
			if err != nil {
				return nil, err
			}
			body := &namespacesBody{Namespaces: []*namespaceBody{}}
			for i := range all {
				body.Namespaces = append(body.Namespaces, newNamespaceBody(&all[i]))
			}
			return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) { body.table(b, none) }}, nil
		}, nil
	}
	return connect.Command(a, cmd, connect.Divides, plan)
}

func (body *namespacesBody) table(b *bytes.Buffer, none string) {
	if len(body.Namespaces) == 0 {
		b.WriteString(none + "\n")
		return
	}
	t := text.Table{Heads: []string{"NAMESPACE", "ID", "STATUS", "CREATED", "DELETED"}}
	for _, n := range body.Namespaces {
		t.Add(n.Name, n.ID, n.Status, n.CreatedAt, n.DeletedAt)
	}
	t.Write(b)
}

// purgeBody is the result of a purge as --output json prints it.
type purgeBody struct {
	ID      string `json:"namespace_id"`
	Deleted int64  `json:"deleted_items"`
}

func purgeNamespaceCommand(a *console.App) *cobra.Command {
	var scan bool
	cmd := &cobra.Command{
		Use:   "purge ID",
		Short: "Delete all data of a deleted namespace",
		Long: `Delete all data of a deleted namespace for good. A purge cannot be undone once it has
begun; if it was interrupted, the next one finishes it.

Some items are in no index. The purge finds those that the Python library's provisioner is
known to leave; --scan also reads the whole table for others, which costs more the larger the
table is.`,
		Example: `  weir namespace orphans --store dynamodb://limits
  weir namespace purge 37b3m1eXQTY --yes --store dynamodb://limits`,
		Args:              console.Arguments(1, 1, "ID"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&scan, "scan", false, "read the whole table for items that are in no index")
	confirm := confirmFlag(cmd)
	plan := func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "ID"); err != nil {
			return nil, err
		}
		if err := confirm("purging a namespace cannot be undone"); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			var tell func(int64)
			line := a.ProgressLine()
			if line != nil {
				tell = func(n int64) {
					line.Update(func(int) string { return text.FormatInt(n) + " items deleted" })
				}
			}
			deleted, err := c.Namespaces.PurgeNamespace(ctx, args[0], scan, tell)
			line.Clear()
			if err != nil {
				return nil, err
			}
			return &connect.Answer{Value: purgeBody{args[0], deleted}, Table: func(b *bytes.Buffer) {
				fmt.Fprintf(b, "purged   %s\ndeleted  %s\n",
					text.Printable(args[0]), text.Plural(int(deleted), "item", "items"))
			}}, nil
		}, nil
	}
	return connect.Command(a, cmd, connect.Divides, plan)
}
