package cli

import (
	"context"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

func usageCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "usage",
		Short: "Read who used what",
		Example: `  weir usage list acme --month 2026-10
  weir usage summary acme --month 2026-10
  weir usage plot acme --limit tpm --window daily`,
	})
	cmd.AddCommand(listUsageCommand(a), summarizeUsageCommand(a), plotUsageCommand(a))
	return cmd
}

// usageHelp is the part of the help that the commands on usage share.
const usageHelp = `

Without ENTITY, and with --resource, it is the usage of all entities on the resource.

Time. The windows begin on the hour, the day or the month, in UTC. Without --from, the answer begins
with the last 24 hours, 31 days or 12 months, by --window; older usage is left out, and the output
says so. --month and --day are short for --from and --to, and --month means --window daily
unless another window is named.

The usage of the last minutes may be late, and where usage may be missing the output says from when
to when. What a store records is in docs/usage.md.`

// usageFlags select usage.
type usageFlags struct {
	q              weir.UsageQuery
	window         *console.Choice
	from, to       string
	month, dayFlag string
	// defaulted reports whether From is a default.
	defaulted bool
}

func (f *usageFlags) add(cmd *cobra.Command) {
	cmd.Args = console.Arguments(0, 1, "")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	windows := []string{string(weir.Hourly), string(weir.Daily), string(weir.Monthly)}
	f.window = console.NewChoice(windows...)
	flags := cmd.Flags()
	flags.StringVarP(&f.q.Resource, "resource", "r", "", "only on the resource with this `NAME`")
	flags.StringVar(&f.q.Limit, "limit", "", "only the units of the limit with this `NAME`")
	flags.Var(f.window, "window", "sum usage over windows of this length")
	flags.StringVar(&f.from, "from", "", "only windows that begin at this `TIME` or later, "+
		"like 2026-01-31 or 2026-01-31T15:00:00Z")
	flags.StringVar(&f.to, "to", "", "only windows that begin before this `TIME`")
	flags.StringVar(&f.month, "month", "", "only the windows of this `MONTH`, like 2026-01")
	flags.StringVar(&f.dayFlag, "day", "", "only the windows of this `DAY`, like 2026-01-31")
	console.GroupFlags(cmd, "Which usage", "resource", "limit", "window", "from", "to", "month", "day")
	complete := cobra.FixedCompletions(windows, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("window", complete); err != nil {
		panic(err) // cmd has no such flag
	}
}

// plan reads the arguments and flags. The default of --from depends on now.
func (f *usageFlags) plan(cmd *cobra.Command, args []string, now time.Time) error {
	if err := console.RefuseEmpty(cmd, args, "ENTITY"); err != nil {
		return err
	}
	if len(args) > 0 {
		f.q.Entity = args[0]
	}
	if f.q.Entity == "" && f.q.Resource == "" {
		return console.UsageError(cmd, "give ENTITY, or --resource")
	}
	f.q.Window = weir.UsageWindow(f.window.String())
	if f.month != "" && !cmd.Flags().Changed("window") {
		f.q.Window = weir.Daily
	}
	if f.month != "" || f.dayFlag != "" {
		return f.planPeriod(cmd)
	}
	var err error
	if f.q.From, err = parseTime(cmd, "from", f.from); err != nil {
		return err
	}
	if f.q.To, err = parseTime(cmd, "to", f.to); err != nil {
		return err
	}
	if f.from == "" {
		f.q.From, f.defaulted = firstWindow(f.q.Window, f.q.To, now), true
	}
	return nil
}

// planPeriod sets the bounds by --month or --day.
func (f *usageFlags) planPeriod(cmd *cobra.Command) error {
	if f.from != "" || f.to != "" || f.month != "" && f.dayFlag != "" {
		return console.UsageError(cmd, "give one of --month, --day, and --from with --to")
	}
	var err error
	if f.month != "" {
		f.q.From, err = time.Parse("2006-01", f.month)
		if err != nil {
			return console.UsageError(cmd, "--month %q: must be like 2026-01", f.month)
		}
		f.q.To = f.q.From.AddDate(0, 1, 0)
		return nil
	}
	f.q.From, err = time.Parse(time.DateOnly, f.dayFlag)
	if err != nil {
		return console.UsageError(cmd, "--day %q: must be like 2026-01-31", f.dayFlag)
	}
	f.q.To = f.q.From.AddDate(0, 0, 1)
	if f.q.Window == weir.Monthly {
		return console.UsageError(cmd, "--day %q: must not be combined with --window monthly", f.dayFlag)
	}
	return nil
}

// firstWindow returns the start of the last 24 hours, 31 days or 12 months before to; before now,
// with the window that contains it, if to is zero.
func firstWindow(w weir.UsageWindow, to, now time.Time) time.Time {
	last := w.Start(now)
	if !to.IsZero() {
		last = w.Start(to.Add(-1))
	}
	switch w {
	case weir.Monthly:
		return last.AddDate(0, -11, 0)
	case weir.Daily:
		return last.AddDate(0, 0, -30)
	default:
		return last.Add(-23 * time.Hour)
	}
}

// parseTime reads a day or an instant in UTC.
func parseTime(cmd *cobra.Command, flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, console.UsageError(cmd,
			"--%s %q: must be like 2026-01-31 or 2026-01-31T15:00:00Z", flag, s)
	}
	return t, nil
}

// usagePlan returns the plan of a command on usage.
func usagePlan(
	f *usageFlags, do func(ctx context.Context, r httpapi.Records) (*connect.Answer, error),
) connect.Plan {
	return func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := f.plan(cmd, args, time.Now()); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			return do(ctx, c.Records)
		}, nil
	}
}

// largestPage is the largest page of records.
const largestPage = 1000

// pageOf returns the number of windows to ask for at once. A store may add up a record from hundreds
// of hours, and a server must answer within seconds.
func pageOf(w weir.UsageWindow) int {
	switch w {
	case weir.Monthly:
		return largestPage / 20
	case weir.Daily:
		return largestPage / 4
	default:
		return largestPage
	}
}

// usageRecords is the usage that a query finds, up to a number of windows.
type usageRecords struct {
	usage []weir.Usage
	gaps  []weir.UsageGap
	// more reports whether there are more windows.
	more bool
}

// readUsage reads at most a number of windows.
func readUsage(
	ctx context.Context, r httpapi.Records, q *weir.UsageQuery, most int,
) (*usageRecords, error) {
	found := &usageRecords{}
	for u, err := range allUsage(ctx, r, q, most, &found.gaps) {
		if err != nil {
			return nil, err
		}
		if len(found.usage) == most {
			found.more = true
			break
		}
		found.usage = append(found.usage, u)
	}
	return found, nil
}

// allUsage yields the usage of all pages, and sets the gaps. A page has at most one window more than
// the caller wants, which tells it that there are more.
func allUsage(
	ctx context.Context, r httpapi.Records, q *weir.UsageQuery, most int, gaps *[]weir.UsageGap,
) iter.Seq2[weir.Usage, error] {
	asked := *q
	asked.Size = min(most, pageOf(q.Window)-1) + 1
	return func(yield func(weir.Usage, error) bool) {
		for {
			page, err := r.Usage(ctx, &asked)
			if err != nil {
				yield(weir.Usage{}, err)
				return
			}
			*gaps = page.Gaps
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

// notes returns what a reader must know about the usage: what is missing, and what was left out.
func (f *usageFlags) notes(found *usageRecords) []string {
	var notes []string
	for _, g := range found.gaps {
		notes = append(notes, gapNote(g))
	}
	if f.defaulted {
		notes = append(notes, "usage before "+timeText(f.q.From)+" is left out: name a time with --from")
	}
	if found.more {
		notes = append(notes, "there is more: give a larger --size, or a shorter time")
	}
	return notes
}

// gapNote says that usage may be missing.
func gapNote(g weir.UsageGap) string {
	from := "before"
	if !g.From.IsZero() {
		from = "from " + timeText(g.From) + " to"
	}
	return "usage may be missing " + from + " " + timeText(g.To) + ": " + g.Reason
}

// timeText writes an instant as the wire does; empty for the zero time.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// startText writes the start of a window as short as its length allows.
func startText(u *weir.Usage) string {
	switch u.Window {
	case weir.Monthly:
		return u.Start.UTC().Format("2006-01")
	case weir.Daily:
		return u.Start.UTC().Format(time.DateOnly)
	default:
		return u.Start.UTC().Format("2006-01-02T15:04Z")
	}
}

// windowWord is the word for one window: "hour", "day" or "month".
func windowWord(w weir.UsageWindow) string {
	switch w {
	case weir.Monthly:
		return "month"
	case weir.Daily:
		return "day"
	default:
		return "hour"
	}
}
