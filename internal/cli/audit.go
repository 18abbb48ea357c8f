package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/limiter"
)

// recordsDefault is the default number of records that a list prints.
const recordsDefault = 100

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
		Example: "  weir audit list acme --store dynamodb://limits",
	})
	cmd.AddCommand(listAuditCommand(a))
	return cmd
}

func listAuditCommand(a *console.App) *cobra.Command {
	var at weir.Subject
	var after string
	var most int
	cmd := &cobra.Command{
		Use:   "list [ENTITY]",
		Short: "List the changes at a place, the newest first",
		Long: `List the recorded changes of an entity and its limits, the newest first: on every
resource, or on the one that --resource names. Without an entity they are those of the
resource's own limits, and without either those of the system.

Only a store on a DynamoDB table keeps an audit, and it is asked directly: name it with
--store.`,
		Example: `  weir audit list acme --store dynamodb://limits
  weir audit list --resource gpt-4o --store dynamodb://limits
  weir audit list --store dynamodb://limits --size 20`,
		Args:              console.Arguments(0, 1, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&at.Resource, "resource", "r", "", "`NAME` of the resource")
	cmd.Flags().StringVar(&after, "after", "", "start after the event with this `ID`")
	cmd.Flags().IntVar(&most, "size", recordsDefault, "print at most `N` events")
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "ENTITY"); err != nil {
			return nil, err
		}
		if most < 1 {
			return nil, console.UsageError(cmd, "--size %d: must be above zero", most)
		}
		if _, err := weir.ParseLeaseID(after); after != "" && err != nil { // a ULID as well
			return nil, console.UsageError(cmd, "--after %q: must be the ID of an event: a ULID, of 26 characters", after)
		}
		if len(args) > 0 {
			at.Entity = args[0]
		}
		return fromRecords(cmd, func(ctx context.Context, l *limiter.Limiter) (*connect.Answer, error) {
			return listAudit(ctx, l, at, after, most)
		}), nil
	})
}

// fromRecords is an action on the store's own limiter, because a server does not serve its records.
func fromRecords(
	cmd *cobra.Command, do func(context.Context, *limiter.Limiter) (*connect.Answer, error),
) connect.Action {
	return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
		if lim, ok := c.Admin.(*limiter.Limiter); ok {
			return do(ctx, lim)
		}
		return nil, console.UsageError(cmd, "the audit and the usage are read from the table, not from a server: "+
			"name it with --store dynamodb://TABLE")
	}
}

func listAudit(
	ctx context.Context, l *limiter.Limiter, at weir.Subject, after string, most int,
) (*connect.Answer, error) {
	body := &auditBody{Events: []auditEventBody{}}
	page, err := l.Audit(ctx, &weir.AuditQuery{At: at, After: after, Size: most})
	if err != nil {
		return nil, err
	}
	body.Next = page.Next
	for _, e := range page.Events {
		body.Events = append(body.Events, auditEventBody{
			EventID: e.ID, Timestamp: e.At.UTC().Format(time.RFC3339), Action: e.Action, Entity: e.Entity,
			Resource: e.Resource, Principal: e.Principal, Details: e.Details,
		})
	}
	return &connect.Answer{Value: body, Table: body.table}, nil
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

// asJSON writes a value of an event's details.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(data)
}
