package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// namespacesBody is what --output json prints of several namespaces.
type namespacesBody struct {
	Namespaces []*namespaceBody `json:"namespaces"`
}

func listNamespacesCommand(a *console.App) *cobra.Command {
	return listOfNamespaces(a, &cobra.Command{
		Use:     "list",
		Short:   "List the namespaces of a table",
		Long:    "List the namespaces that have a name, in the order of the names.",
		Example: "  weir namespace list --store dynamodb://limits",
	}, "no namespaces", (*dynamodb.Table).Namespaces)
}

func orphanNamespacesCommand(a *console.App) *cobra.Command {
	return listOfNamespaces(a, &cobra.Command{
		Use:   "orphans",
		Short: "List the namespaces that have data and no name",
		Long: `List the namespaces whose data no name leads to: deleted ones, those whose purge was
interrupted (purging), and those whose name entry is missing (lost). If NAMESPACE is empty,
the name is not on the table any more.`,
		Example: "  weir namespace orphans --store dynamodb://limits",
	}, "no orphans", (*dynamodb.Table).OrphanNamespaces)
}

// listOfNamespaces makes cmd one that prints what list returns.
func listOfNamespaces(a *console.App,
	cmd *cobra.Command, none string,
	list func(*dynamodb.Table, context.Context) ([]dynamodb.Namespace, error),
) *cobra.Command {
	cmd.Args = console.Arguments(0, 0, "")
	return onTable(a, cmd, func(*cobra.Command, []string) (tableQuestion, error) {
		return func(ctx context.Context, t *dynamodb.Table) (*connect.Answer, error) {
			all, err := list(t, ctx)
			if err != nil {
				return nil, err
			}
			body := &namespacesBody{Namespaces: []*namespaceBody{}}
			for i := range all {
				body.Namespaces = append(body.Namespaces, newNamespaceBody(&all[i]))
			}
			return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) { body.table(b, none) }}, nil
		}, nil
	})
}

func (body *namespacesBody) table(b *bytes.Buffer, none string) {
	if len(body.Namespaces) == 0 {
		b.WriteString(none + "\n")
		return
	}
	t := text.Table{Heads: []string{
		"NAMESPACE", "ID", "STATUS", "CREATED", "DELETED",
	}}
	for _, n := range body.Namespaces {
		t.Add(n.Name, n.ID, n.Status, n.CreatedAt, n.DeletedAt)
	}
	t.Write(b)
}
