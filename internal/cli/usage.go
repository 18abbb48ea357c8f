package cli

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/limiter"
)

type (
	usageListBody struct {
		Usage []usageBody `json:"usage"`
		More  bool        `json:"more,omitempty"`
	}
	usageBody struct {
		Entity      string           `json:"entity,omitempty"`
		Resource    string           `json:"resource,omitempty"`
		Window      string           `json:"window"`
		WindowStart string           `json:"window_start,omitempty"`
		WindowEnd   string           `json:"window_end,omitempty"`
		Windows     int              `json:"windows"`
		TotalEvents int64            `json:"total_events"`
		Units       map[string]int64 `json:"units"`
		Overdrawn   map[string]int64 `json:"overdrawn,omitempty"`
	}
)

// usageFlags select usage.
type usageFlags struct {
	q          weir.UsageQuery
	start, end string
}

const usageHelp = `

Only a store on a DynamoDB table keeps usage, and it is asked directly: name it with
--store. The table's aggregator must run, because it counts the usage.`

func usageCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "usage",
		Short: "Read how much was used",
		Example: `  weir usage list acme --window hourly --store dynamodb://limits
  weir usage summary --resource gpt-4o --window daily --store dynamodb://limits`,
	})
	cmd.AddCommand(listUsageCommand(a), summarizeUsageCommand(a))
	return cmd
}

func listUsageCommand(a *console.App) *cobra.Command {
	f := &usageFlags{}
	var most int
	cmd := &cobra.Command{
		Use:   "list [ENTITY]",
		Short: "List usage by hour, day or month",
		Long: `List what an entity used in each hour, or in each window of another length. With
--resource and without ENTITY, list what all entities used of the resource.` + usageHelp,
		Example: `  weir usage list acme --store dynamodb://limits
  weir usage list acme --resource gpt-4o --start 2026-01-01 \
    --store dynamodb://limits
  weir usage list --resource gpt-4o --store dynamodb://limits`,
	}
	f.add(cmd)
	cmd.Flags().IntVar(&most, "size", recordsDefault, "print at most `N` windows")
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if most < 1 {
			return nil, console.UsageError(cmd, "--size %d: must be above zero", most)
		}
		if err := f.plan(cmd, args); err != nil {
			return nil, err
		}
		return fromRecords(cmd, func(ctx context.Context, l *limiter.Limiter) (*connect.Answer, error) {
			return listUsage(ctx, l, &f.q, most)
		}), nil
	})
}

func summarizeUsageCommand(a *console.App) *cobra.Command {
	f := &usageFlags{}
	cmd := &cobra.Command{
		Use:   "summary [ENTITY]",
		Short: "Print the sum of usage",
		Long: `Print the sum of what an entity used, or of what all entities used of a
resource, over all windows of one length.` + usageHelp,
		Example: `  weir usage summary acme --window monthly --store dynamodb://limits
  weir usage summary --resource gpt-4o --start 2026-01-01 --end 2026-02-01 \
    --store dynamodb://limits`,
	}
	f.add(cmd)
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := f.plan(cmd, args); err != nil {
			return nil, err
		}
		return fromRecords(cmd, func(ctx context.Context, l *limiter.Limiter) (*connect.Answer, error) {
			return summarizeUsage(ctx, l, &f.q)
		}), nil
	})
}

func (f *usageFlags) add(cmd *cobra.Command) {
	cmd.Args = console.Arguments(0, 1, "")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	flags := cmd.Flags()
	flags.StringVarP(&f.q.Resource, "resource", "r", "", "only on the resource with this `NAME`")
	flags.StringVar((*string)(&f.q.Window), "window", string(weir.Hourly), "only windows of this `LENGTH`: hourly, daily or monthly")
	flags.StringVar(&f.start, "start", "", "only windows that begin at this `TIME` or later, "+
		"like 2026-01-31 or 2026-01-31T15:00:00Z")
	flags.StringVar(&f.end, "end", "", "only windows that begin before this `TIME`")
}

func (f *usageFlags) plan(cmd *cobra.Command, args []string) error {
	if err := console.RefuseEmpty(cmd, args, "ENTITY"); err != nil {
		return err
	}
	if len(args) > 0 {
		f.q.Entity = args[0]
	}
	if f.q.Entity == "" && f.q.Resource == "" {
		return console.UsageError(cmd, "give ENTITY, or --resource")
	}
	var err error
	if f.q.From, err = parseDay(cmd, "start", f.start); err != nil {
		return err
	}
	f.q.To, err = parseDay(cmd, "end", f.end)
	return err
}

// parseDay reads a day or an instant in UTC.
func parseDay(cmd *cobra.Command, flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, console.UsageError(cmd, "--%s %q: must be like 2026-01-31 or 2026-01-31T15:00:00Z", flag, s)
	}
	return t, nil
}

// listUsage lists the first windows.
func listUsage(
	ctx context.Context, l *limiter.Limiter, q *weir.UsageQuery, most int,
) (*connect.Answer, error) {
	body := &usageListBody{Usage: []usageBody{}}
	for u, err := range allUsage(ctx, l, q) {
		if err != nil {
			return nil, err
		}
		if len(body.Usage) == most {
			body.More = true
			break
		}
		body.Usage = append(body.Usage, *newUsageBody(&u))
	}
	return &connect.Answer{Value: body, Table: body.table}, nil
}

// summarizeUsage adds up all windows.
func summarizeUsage(
	ctx context.Context, l *limiter.Limiter, q *weir.UsageQuery,
) (*connect.Answer, error) {
	total := &weir.Usage{Entity: q.Entity, Resource: q.Resource, Window: q.Window}
	for u, err := range allUsage(ctx, l, q) {
		if err == nil {
			err = total.Add(&u)
		}
		if err != nil {
			return nil, err
		}
	}
	return summaryAnswer(newUsageBody(total)), nil
}

// allUsage yields the usage of all pages.
func allUsage(
	ctx context.Context, l *limiter.Limiter, q *weir.UsageQuery,
) iter.Seq2[weir.Usage, error] {
	asked := *q
	return func(yield func(weir.Usage, error) bool) {
		for {
			page, err := l.Usage(ctx, &asked)
			if err != nil {
				yield(weir.Usage{}, err)
				return
			}
			for _, u := range page.Usage {
				if !yield(u, nil) {
					return
				}
			}
			if asked.After = page.Next; asked.After == "" {
				return
			}
		}
	}
}

func newUsageBody(u *weir.Usage) *usageBody {
	out := &usageBody{
		Entity: u.Entity, Resource: u.Resource, Window: string(u.Window), Windows: u.Windows,
		TotalEvents: u.Events, Units: u.Units, Overdrawn: u.Overdrawn,
	}
	if u.Windows > 0 {
		out.WindowStart = u.Start.UTC().Format(time.RFC3339)
		out.WindowEnd = u.End.UTC().Format(time.RFC3339)
	}
	return out
}

func (body *usageListBody) table(b *bytes.Buffer) {
	if len(body.Usage) == 0 {
		b.WriteString("no usage is recorded\n")
		return
	}
	t := text.Table{Heads: []string{"START", "WINDOW", "ENTITY", "RESOURCE", ">EVENTS", "UNITS"}}
	for _, u := range body.Usage {
		t.Add(u.WindowStart, u.Window, u.Entity, u.Resource, text.FormatInt(u.TotalEvents), text.FormatMap(u.Units, text.FormatInt))
	}
	t.Write(b)
	if body.More {
		b.WriteString("… more with a larger --size, or narrow --start and --end\n")
	}
}

func summaryAnswer(body *usageBody) *connect.Answer {
	return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
		if body.Windows == 0 {
			b.WriteString("no usage is recorded\n")
			return
		}
		head := text.Table{}
		head.Add("windows", text.FormatInt(int64(body.Windows))+" "+body.Window)
		head.Add("from", body.WindowStart)
		head.Add("until", body.WindowEnd)
		head.Add("events", text.FormatInt(body.TotalEvents))
		head.Write(b)
		b.WriteString("\n")
		t := text.Table{Heads: []string{"LIMIT", ">UNITS", ">PER WINDOW"}}
		for _, name := range slices.Sorted(maps.Keys(body.Units)) {
			n := body.Units[name]
			t.Add(name, text.FormatInt(n), text.FormatInt(n/int64(body.Windows)))
		}
		t.Write(b)
	}}
}
