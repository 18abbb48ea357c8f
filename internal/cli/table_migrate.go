package cli

import (
	"bytes"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// migrationBody is a migration as --output json prints it.
type migrationBody struct {
	Table      string   `json:"table"`
	DryRun     bool     `json:"dry_run"`
	Step       string   `json:"step"` // none, indexes, limits, buckets, done
	From       string   `json:"from_schema_version,omitempty"`
	Namespaces bool     `json:"had_namespaces"`
	Indexes    []string `json:"missing_indexes"`
	Entities   int64    `json:"entities"`
	Places     int64    `json:"places_with_limits"`
	Registries int64    `json:"registries"`
	Buckets    int64    `json:"buckets"`
	Usage      int64    `json:"usage"`
	Audit      int64    `json:"audit"`
	Unknown    int64    `json:"unknown"`
}

func newMigrationBody(table string, dryRun bool, m *dynamodb.Migration) *migrationBody {
	body := &migrationBody{
		Table: table, DryRun: dryRun, Step: m.Step, From: m.From, Namespaces: m.Namespaces,
		Indexes: append([]string{}, m.Indexes...), Entities: m.Entities, Places: m.Places,
		Registries: m.Registries, Buckets: m.Buckets, Usage: m.Usage, Audit: m.Audit, Unknown: m.Unknown,
	}
	if body.Step == "" {
		body.Step = "none"
	}
	return body
}

// sentence says what the migration has come to.
func (body *migrationBody) sentence() string {
	switch body.Step {
	case "none":
		return "is of the present layout: there is nothing to migrate"
	case "done":
		return "migrated"
	}
	if body.DryRun {
		return "not migrated: this was a dry run"
	}
	return "not migrated yet: run the command again to go on"
}

// table writes the counts.
func (body *migrationBody) table(b *bytes.Buffer) {
	b.WriteString(body.sentence() + "\n")
	if body.Step == "none" {
		return
	}
	namespaces := "none: all of it belongs to default"
	if body.Namespaces {
		namespaces = "as they are"
	}
	t := text.Table{}
	for _, row := range [][2]string{
		{"step", body.Step},
		{"from schema", body.From},
		{"namespaces", namespaces},
		{"missing indexes", strings.Join(body.Indexes, " ")},
		{"entities", text.FormatInt(body.Entities)},
		{"places with limits", text.FormatInt(body.Places)},
		{"registries", text.FormatInt(body.Registries)},
		{"buckets", text.FormatInt(body.Buckets)},
		{"usage", text.FormatInt(body.Usage)},
		{"audit", text.FormatInt(body.Audit)},
		{"unknown items", text.FormatInt(body.Unknown)},
	} {
		if row[1] != "" {
			t.Add(row[0], row[1])
		}
	}
	b.WriteString("\n")
	t.Write(b)
}

func migrateTableCommand(a *console.App) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate a table of an older release of the Python library",
		Long: `Turn a table that a release of the Python library before 0.10.1 has made into one of the
present layout. weir can use the table from the moment at which its limits are carried over,
while its buckets are migrated: balances and debts stay as they are. A command that was
interrupted is run again, and goes on where the first one was.

Stop all processes and the function of the old release first: a process that has opened the
table before does not notice, and would admit by items that nobody reads any more. Make a
backup, too: there is no way back but to restore it. docs/migration.md is the guide.

--dry-run counts what there is to migrate, and changes nothing.`,
		Example: `  weir table migrate --dry-run --store dynamodb://limits?region=eu-central-1
  weir table migrate --store dynamodb://limits?region=eu-central-1`,
		Args: console.Arguments(0, 0, ""),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "count what there is to migrate, and change nothing")
	return onTable(a, cmd, func(*cobra.Command, []string) (tableAction, error) {
		return func(ctx context.Context, t *dynamodb.Table) (*connect.Answer, error) {
			line := a.ProgressLine()
			m, err := t.Migrate(ctx, dryRun, func(m *dynamodb.Migration) {
				if line != nil {
					line.Update(func(int) string { return progressOf(m) })
				}
			})
			line.Clear()
			if m == nil || err != nil && m.Step == "" {
				return nil, err
			}
			body := newMigrationBody(t.Name, dryRun, m)
			return &connect.Answer{Value: body, Table: body.table}, err
		}, nil
	})
}

// progressOf returns the line that shows how far a migration is.
func progressOf(m *dynamodb.Migration) string {
	return m.Step + ": " + text.FormatInt(m.Places) + " places with limits, " +
		text.FormatInt(m.Entities) + " entities, " + text.FormatInt(m.Buckets) + " buckets, " +
		text.FormatInt(m.Usage) + " records of usage, " + text.FormatInt(m.Audit) + " events"
}
