package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/store"
)

func tableCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "table",
		Short: "Create, describe, change and delete a DynamoDB table",
		Example: `  weir table create --store dynamodb://limits?region=eu-central-1
  weir table describe --store dynamodb://limits?region=eu-central-1`,
	})
	cmd.AddCommand(createTableCommand(a), describeTableCommand(a), streamCommand(a),
		migrateTableCommand(a), deleteTableCommand(a))
	return cmd
}

// tableBody is a table as --output json prints it.
type tableBody struct {
	Table   string `json:"table"`
	Created *bool  `json:"created,omitempty"` // only of create: false if the table existed already
	Changed *bool  `json:"changed,omitempty"` // only of stream on: false if it was on already

	ARN              string   `json:"arn,omitempty"`
	Status           string   `json:"status,omitempty"`
	Kind             string   `json:"kind,omitempty"`
	CreatedAt        string   `json:"created_at,omitempty"`
	Indexes          []string `json:"indexes,omitempty"`
	Items            int64    `json:"items"`
	Bytes            int64    `json:"bytes"`
	Stream           string   `json:"stream,omitempty"`
	TTL              string   `json:"ttl,omitempty"`
	Protected        bool     `json:"deletion_protection"`
	Recovery         bool     `json:"point_in_time_recovery"`
	Leases           []string `json:"lease_namespaces,omitempty"`
	SchemaVersion    string   `json:"schema_version,omitempty"`
	LambdaVersion    string   `json:"lambda_version,omitempty"`
	ClientMinVersion string   `json:"client_min_version,omitempty"`
	UpdatedAt        string   `json:"updated_at,omitempty"`
	UpdatedBy        string   `json:"updated_by,omitempty"`
	Migration        string   `json:"migration,omitempty"` // the step of one that has not ended
	Refused          string   `json:"refused,omitempty"`
	LostReads        []string `json:"lost_python_reads,omitempty"`
}

func newTableBody(info *dynamodb.TableInfo) *tableBody {
	body := &tableBody{
		Table: info.Name, ARN: info.ARN, Status: info.Status, Kind: "full", Indexes: info.Indexes,
		Items: info.Items, Bytes: info.Bytes, Stream: info.Stream, TTL: info.TTL,
		Leases: info.Leases, Protected: info.Protected, Recovery: info.Recovery,
		SchemaVersion: info.Schema, LambdaVersion: info.LambdaVersion,
		ClientMinVersion: info.ClientMinVersion, UpdatedAt: info.UpdatedAt, UpdatedBy: info.UpdatedBy,
		Migration: info.Migration, Refused: reasonIn(info.Refused), LostReads: info.Lost,
	}
	if info.Lean {
		body.Kind = "lean"
	}
	if !info.Created.IsZero() {
		body.CreatedAt = info.Created.UTC().Format(time.RFC3339)
	}
	return body
}

// table writes all properties of the table.
func (body *tableBody) table(b *bytes.Buffer) {
	t := text.Table{}
	for _, row := range [][2]string{
		{"table", body.Table},
		{"arn", body.ARN},
		{"status", body.Status},
		{"kind", body.Kind},
		{"created", body.CreatedAt},
		{"indexes", strings.Join(body.Indexes, " ")},
		{"items", text.FormatInt(body.Items) + " (DynamoDB counts every few hours)"},
		{"bytes", text.FormatInt(body.Bytes)},
		{"stream", orNone(body.Stream)},
		{"time to live", orNone(body.TTL)},
		{"protected", map[bool]string{true: "from deletion", false: "no"}[body.Protected]},
		{"recovery", map[bool]string{true: "to the last 35 days", false: "none"}[body.Recovery]},
		{"leases in", strings.Join(body.Leases, " ")},
		{"schema", orNone(body.SchemaVersion)},
		{"oldest client", body.ClientMinVersion},
		{"lambda", body.LambdaVersion},
		{"migration", body.Migration},
		{"updated", strings.TrimSpace(body.UpdatedAt + " " + body.UpdatedBy)},
	} {
		if row[1] != "" {
			t.Add(row[0], row[1])
		}
	}
	t.Write(b)
	if body.Refused != "" {
		b.WriteString("\nweir does not use this table: " + text.Printable(body.Refused) + "\n")
	}
	if len(body.LostReads) > 0 {
		b.WriteString("\nOn a lean table these reads of the Python library do not work, " +
			"and all of weir's do:\n")
		for _, read := range body.LostReads {
			b.WriteString("  " + read + "\n")
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func createTableCommand(a *console.App) *cobra.Command {
	like := &dynamodb.Table{}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a table and its default namespace",
		Long: `Create an on-demand table, wait until it is active, and prepare it: time to live, the
namespace default, and the version record. It has the items and indexes of the Python library
zae-limiter 0.17, which can use it at the same time. Older releases of the library refuse the
table, unless it was created with --python-before; then the first change of an entity's parent
locks them out. A table that exists is never changed.

A lean table keeps only keys in the index by resource, which halves the cost of every write of
a bucket. Some reads of the Python library do not work on it; weir table describe names them.
The kind of a table cannot be changed later.`,
		Example: `  weir table create --store dynamodb://limits?region=eu-central-1
  weir table create --lean \
    --store dynamodb://limits?endpoint=http://127.0.0.1:8000`,
		Args: console.Arguments(0, 0, ""),
	}
	flags := cmd.Flags()
	flags.BoolVar(&like.Lean, "lean", false, "keep only keys in the index by resource")
	flags.BoolVar(&like.NoStream, "no-stream", false,
		"create it without the stream from which usage is counted")
	flags.BoolVar(&like.Protected, "protect", false, "make DynamoDB refuse to delete the table")
	flags.BoolVar(&like.Recovery, "recovery", false, "enable point-in-time recovery")
	flags.BoolVar(&like.PythonBefore, "python-before", false,
		"let clients of the Python library before 0.17 use it")
	return onTable(a, cmd, func(*cobra.Command, []string) (tableAction, error) {
		return func(ctx context.Context, t *dynamodb.Table) (*connect.Answer, error) {
			t.Lean, t.NoStream = like.Lean, like.NoStream
			t.Protected, t.Recovery = like.Protected, like.Recovery
			t.PythonBefore = like.PythonBefore
			made, err := t.Create(ctx)
			if err != nil {
				return nil, err
			}
			sentence := "exists already, and was not changed"
			if made {
				sentence = "created"
			}
			return describeAfter(ctx, t, sentence, &tableBody{Created: &made})
		}, nil
	})
}

// describeAfter describes a table after a command, whose own results are in done.
func describeAfter(
	ctx context.Context, t *dynamodb.Table, sentence string, done *tableBody,
) (*connect.Answer, error) {
	info, err := t.Describe(ctx)
	if err != nil {
		return nil, err
	}
	body := newTableBody(info)
	body.Created, body.Changed = done.Created, done.Changed
	return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
		b.WriteString(sentence + "\n\n")
		body.table(b)
	}}, nil
}

func streamCommand(a *console.App) *cobra.Command {
	on := &cobra.Command{
		Use:   "on",
		Short: "Turn the stream of a table on",
		Long: `Turn on the stream of old and new items from which weir aggregate counts usage, for a
table that was created without one, and wait until it is on. DynamoDB keeps a record for 24
hours: what was written before the stream was on is not in it.`,
		Example: "  weir table stream on --store dynamodb://limits?region=eu-central-1",
		Args:    console.Arguments(0, 0, ""),
	}
	cmd := console.Group(&cobra.Command{
		Use: "stream", Short: "Turn the stream of a table on", Example: on.Example,
	})
	cmd.AddCommand(onTable(a, on, func(*cobra.Command, []string) (tableAction, error) {
		return func(ctx context.Context, t *dynamodb.Table) (*connect.Answer, error) {
			changed, err := t.EnableStream(ctx)
			if err != nil {
				return nil, err
			}
			sentence := "is on already"
			if changed {
				sentence = "turned on"
			}
			return describeAfter(ctx, t, sentence, &tableBody{Changed: &changed})
		}, nil
	}))
	return cmd
}

func describeTableCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Describe a table, and say whether weir can use it",
		Long: `Print a table's kind, indexes, size and version record, whether weir can use it, and
which reads of the Python library it does not serve. The command changes nothing.`,
		Example: "  weir table describe --store dynamodb://limits?region=eu-central-1",
		Args:    console.Arguments(0, 0, ""),
	}
	return onTable(a, cmd, func(*cobra.Command, []string) (tableAction, error) {
		return func(ctx context.Context, t *dynamodb.Table) (*connect.Answer, error) {
			info, err := t.Describe(ctx)
			if err != nil {
				return nil, err
			}
			body := newTableBody(info)
			return &connect.Answer{Value: body, Table: body.table}, nil
		}, nil
	})
}

func deleteTableCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete a table with all that is on it",
		Long: `Delete a table with all namespaces, limits and balances on it, and wait until it is
gone. The command refuses a table whose keys are not weir's, and one with deletion protection.`,
		Example: "  weir table delete --yes --store dynamodb://limits?region=eu-central-1",
		Args:    console.Arguments(0, 0, ""),
	}
	confirm := confirmFlag(cmd)
	return onTable(a, cmd, func(*cobra.Command, []string) (tableAction, error) {
		if err := confirm("deleting a table cannot be undone"); err != nil {
			return nil, err
		}
		return func(ctx context.Context, t *dynamodb.Table) (*connect.Answer, error) {
			if err := t.Delete(ctx); err != nil {
				return nil, err
			}
			body := struct {
				Table   string `json:"table"`
				Deleted bool   `json:"deleted"`
			}{t.Name, true}
			return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
				b.WriteString("deleted  " + text.Printable(t.Name) + "\n")
			}}, nil
		}, nil
	})
}

// tableHelp ends the help of every command for a table.
const tableHelp = `

The table is named with --store (or WEIR_STORE), as in dynamodb://TABLE?region=eu-central-1 or
dynamodb://TABLE?endpoint=http://127.0.0.1:8000. Credentials come from the AWS SDK's default
chain.`

// tableAction is the function of a command for a table.
type tableAction func(ctx context.Context, table *dynamodb.Table) (*connect.Answer, error)

// onTable makes cmd run an action on a table. An error of plan is misuse, and the table is not
// opened then.
func onTable(
	a *console.App, cmd *cobra.Command, plan func(cmd *cobra.Command, args []string) (tableAction, error),
) *cobra.Command {
	var url string
	cmd.Long += tableHelp
	cmd.Flags().StringVar(&url, "store", "",
		"`URL` of the table, like dynamodb://TABLE (default $WEIR_STORE)")
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		if err := console.RejectBlankFlags(cmd); err != nil {
			return err
		}
		ask, err := plan(cmd, args)
		if err != nil {
			return console.AsUsageError(cmd, err)
		}
		url = cmp.Or(url, a.Env(connect.StoreEnv))
		if url == "" {
			return console.UsageError(cmd, "name the table with --store dynamodb://TABLE, or in %s", connect.StoreEnv)
		}
		table, err := store.Table(url)
		if err != nil {
			return console.UsageError(cmd, "%w", err)
		}
		found, err := ask(cmd.Context(), table)
		if found != nil {
			err = errors.Join(err, a.PrintResult(output, found.Value, found.Table))
		}
		return connect.ServiceError(err)
	})
	return cmd
}

// confirmFlag adds the flag without which a command that deletes data refuses to run.
func confirmFlag(cmd *cobra.Command) func(warning string) error {
	sure := cmd.Flags().Bool("yes", false, "do it without asking")
	return func(warning string) error {
		if *sure {
			return nil
		}
		return console.UsageError(cmd, "%s: give --yes to confirm", warning)
	}
}

// reasonIn returns the text of an error for people, or "" for none.
func reasonIn(err error) string {
	if err == nil {
		return ""
	}
	return console.MistakeLines(fmt.Errorf("%w", err))[0]
}
