package cli

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// auditListDefault is the default number of events that a list prints.
const auditListDefault = 100

type (
	auditBody struct {
		Events []auditEventBody `json:"events"`
		Next   string           `json:"next,omitempty"`
	}
	auditEventBody struct {
		EventID   string         `json:"event_id"`
		Timestamp string         `json:"timestamp"`
		Action    string         `json:"action"`
		Entity    string         `json:"entity"`
		Resource  string         `json:"resource,omitempty"`
		Principal string         `json:"principal,omitempty"`
		Details   map[string]any `json:"details,omitempty"`
	}
)

func auditCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:     "audit",
		Short:   "Read who changed the configuration",
		Example: "  weir audit list acme",
	})
	cmd.AddCommand(listAuditCommand(a))
	return cmd
}

func listAuditCommand(a *console.App) *cobra.Command {
	q := &weir.AuditQuery{}
	var from, to, archived string
	cmd := &cobra.Command{
		Use:   "list [ENTITY]",
		Short: "List the changes at a place, the newest first",
		Long: `List the recorded changes of an entity and its limits, the newest first: on every
resource, or on the one that --resource names. Without an entity they are those of the
resource's own limits, and without either those of the system.

The column BY names who made a change: the owner of the bearer token on a server, or what
the store knows of a program that opened it.

With --archive the changes are those that weir aggregate --archive has put into an S3 bucket,
because their time on the table had ended. The URL is s3://BUCKET/PREFIX, with or without
?region=, ?endpoint=, and ?namespace=NAME (default "default") or ?namespace_id=ID. If an object
is damaged, it is reported, the rest is listed, and the exit code is 1.

CSV. With --output csv the columns are event_id, timestamp, action, entity, resource,
principal and details, which are JSON.`,
		Example: `  weir audit list acme
  weir audit list acme --from 2026-10-01 --to 2026-11-01
  weir audit list --resource gpt-4o --output csv
  weir audit list --store dynamodb://limits --size 20
  weir audit list acme --archive s3://my-bucket/limits --from 2025-10-01`,
		Args:              console.Arguments(0, 1, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVarP(&q.At.Resource, "resource", "r", "", "`NAME` of the resource")
	flags.StringVar(&from, "from", "", "only changes at this `TIME` or later, "+
		"like 2026-01-31 or 2026-01-31T15:00:00Z")
	flags.StringVar(&to, "to", "", "only changes before this `TIME`")
	flags.StringVar(&q.After, "after", "", "start after the event with this `ID`")
	flags.IntVar(&q.Size, "size", auditListDefault, "print at most `N` events")
	flags.StringVar(&archived, "archive", "",
		"`URL` of an archive to list instead, like s3://BUCKET/PREFIX")
	plan := func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "ENTITY"); err != nil {
			return nil, err
		}
		if q.Size < 1 {
			return nil, console.UsageError(cmd, "--size %d: must be above zero", q.Size)
		}
		if _, err := weir.ParseLeaseID(q.After); q.After != "" && err != nil { // a ULID as well
			return nil, console.UsageError(cmd,
				"--after %q: must be the ID of an event: a ULID, of 26 characters", q.After)
		}
		if len(args) > 0 {
			q.At.Entity = args[0]
		}
		var err error
		if q.From, err = parseTime(cmd, "from", from); err != nil {
			return nil, err
		}
		if q.To, err = parseTime(cmd, "to", to); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			return listAudit(ctx, c.Records, q)
		}, nil
	}
	return orFromArchive(a, connect.ListCommand(a, cmd, plan), plan, q, &archived)
}

// listAudit reads pages until the list has q.Size events.
func listAudit(
	ctx context.Context, r httpapi.Records, q *weir.AuditQuery,
) (*connect.Answer, error) {
	body := &auditBody{Events: []auditEventBody{}}
	asked := *q
	for {
		asked.Size = min(q.Size-len(body.Events), largestPage)
		page, err := r.Audit(ctx, &asked)
		if err != nil {
			return nil, err
		}
		body.add(page.Events...)
		asked.After, body.Next = page.Next, page.Next
		if page.Next == "" || len(body.Events) >= q.Size {
			break
		}
	}
	return body.answer(), nil
}

func (body *auditBody) add(events ...weir.AuditEvent) {
	for _, e := range events {
		body.Events = append(body.Events, auditEventBody{
			EventID: e.ID, Timestamp: timeText(e.At), Action: e.Action, Entity: e.Entity,
			Resource: e.Resource, Principal: e.Principal, Details: e.Details,
		})
	}
}

func (body *auditBody) answer() *connect.Answer {
	answer := &connect.Answer{Value: body, Table: body.table, CSV: body.rows}
	if body.Next != "" {
		answer.Notes = []string{"there is more: --after " + body.Next}
	}
	return answer
}

func (body *auditBody) table(b *bytes.Buffer) {
	if len(body.Events) == 0 {
		b.WriteString("no changes are recorded\n")
		return
	}
	t := text.Table{Heads: []string{"TIME", "ACTION", "ENTITY", "RESOURCE", "BY", "DETAILS"}}
	for _, e := range body.Events {
		t.Add(e.Timestamp, e.Action, e.Entity, e.Resource, e.Principal, text.FormatMap(e.Details, asJSON))
	}
	t.Write(b)
	if body.Next != "" {
		b.WriteString("… more with --after " + text.Printable(body.Next) + "\n")
	}
}

// rows returns the rows of CSV.
func (body *auditBody) rows() [][]string {
	rows := [][]string{{
		"event_id", "timestamp", "action", "entity", "resource", "principal", "details",
	}}
	for _, e := range body.Events {
		details := ""
		if len(e.Details) > 0 {
			details = asJSON(e.Details)
		}
		rows = append(rows, []string{
			e.EventID, e.Timestamp, e.Action, e.Entity, e.Resource, e.Principal, details,
		})
	}
	return rows
}

// asJSON writes a value of an event's details.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(data)
}
