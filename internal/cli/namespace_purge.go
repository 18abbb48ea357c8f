package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// purgeBody is what --output json prints of a purge.
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

Items that no index lists are found where the Python library's provisioner is known to leave
some; --scan reads the whole table for others, and costs as much as the table is large.`,
		Example: `  weir namespace orphans --store dynamodb://limits
  weir namespace purge 37b3m1eXQTY --yes --store dynamodb://limits`,
		Args:              console.Arguments(1, 1, "ID"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&scan, "scan", false, "read the whole table for what no index lists")
	confirm := confirmFlag(cmd)
	return onTable(a, cmd, func(cmd *cobra.Command, args []string) (tableQuestion, error) {
		if err := console.RefuseEmpty(cmd, args, "ID"); err != nil {
			return nil, err
		}
		if err := confirm("purging a namespace cannot be undone"); err != nil {
			return nil, err
		}
		return func(ctx context.Context, t *dynamodb.Table) (*connect.Answer, error) {
			tell, done := countProgress(a, "items deleted")
			deleted, err := t.PurgeNamespace(ctx, args[0], scan, tell)
			done()
			if err != nil {
				return nil, fmt.Errorf("%w (%s deleted so far)", err, text.Plural(int(deleted), "item", "items"))
			}
			return &connect.Answer{Value: purgeBody{args[0], deleted}, Table: func(b *bytes.Buffer) {
				fmt.Fprintf(b, "purged   %s\ndeleted  %s\n",
					text.Printable(args[0]), text.Plural(int(deleted), "item", "items"))
			}}, nil
		}, nil
	})
}

// countProgress tells on a terminal how many there are by now. Where nobody watches, tell is nil.
// done takes the line away.
func countProgress(a *console.App, what string) (tell func(n int64), done func()) {
	t := a.Terminal()
	if t == nil {
		return nil, func() {}
	}
	var last time.Time
	told := false
	write := func(text string) {
		_, _ = io.WriteString(t.File, text) // progress that cannot be told is no loss
	}
	tell = func(n int64) {
		if now := time.Now(); now.Sub(last) >= console.ProgressEvery {
			last, told = now, true
			write("\r" + console.AnsiNoWrap + text.FormatInt(n) + " " + what + console.AnsiEndLine + console.AnsiWrap)
		}
	}
	return tell, func() {
		if told {
			write("\r" + console.AnsiEndLine)
		}
	}
}
