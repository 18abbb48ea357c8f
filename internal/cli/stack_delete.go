package cli

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/provision"
)

// stackDeleted is a deletion as --output json prints it.
type stackDeleted struct {
	Stack   string `json:"stack"`
	Deleted bool   `json:"deleted"`
	Table   string `json:"deleted_table,omitempty"`
	Archive string `json:"kept_archive,omitempty"`
	Gone    string `json:"deleted_archive,omitempty"`
	Objects int    `json:"deleted_archive_objects,omitempty"`
}

func stackDeleteCommand(a *console.App) *cobra.Command {
	o := &provision.DeleteOptions{}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a stack with its table",
		Long: `Delete a stack with all that it made: the table with all limits, balances and usage on
it, the function and its code, alarms and policies. Wait until it is gone. A table that existed
before the stack stays.

The bucket of the archive stays too, unless --delete-archive is given. A table with deletion
protection is refused, unless --unprotect is given.`,
		Example: `  weir stack delete limits --yes
  weir stack delete limits --unprotect --delete-archive --yes`,
		Args: console.Arguments(1, 1, "the name of a stack"),
	}
	cmd.Flags().BoolVar(&o.Unprotect, "unprotect", false, "take off the table's deletion protection")
	cmd.Flags().BoolVar(&o.Archive, "delete-archive", false,
		"delete the archive of the audit too, with all events in it")
	confirm := confirmFlag(cmd)
	return onAWS(cmd, func(cmd *cobra.Command, args []string, c *stackCall) error {
		if err := confirm("deleting a stack deletes its table, which cannot be undone"); err != nil {
			return err
		}
		done, err := c.account.Delete(cmd.Context(), args[0], o, progress(a))
		if err != nil {
			return err
		}
		body := &stackDeleted{args[0], true, done.Table, done.Archive, done.DeletedArchive, done.Objects}
		return a.PrintResult(c.output, body, body.table)
	})
}

// table writes what was deleted, and what is left.
func (body *stackDeleted) table(b *bytes.Buffer) {
	b.WriteString("deleted the stack " + body.Stack + "\n")
	if body.Table != "" {
		b.WriteString("deleted its table " + text.Printable(body.Table) + "\n")
	}
	if body.Gone != "" {
		b.WriteString("deleted its archive " + body.Gone + ", with " +
			text.Plural(body.Objects, "object", "objects") + "\n")
	}
	if body.Archive != "" {
		b.WriteString("kept the archive s3://" + body.Archive + "\n")
	}
}
