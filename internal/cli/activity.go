package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

const activityHelp = `Print what a server has decided since it started: how many reservations it admitted
and denied, what each limit decided, who was denied, by whose limit, and the last denials. Who is
denied by a limit of its parent is named too: "who asked" is who the request charged, and "whose
limit" is who the limit belongs to. A request that charges several entities counts for each of them.

With --entity, print only the denials and the counts of who asked or whose limit denied; with
--limit, only the denials and the counts of the limits with this name. The totals are always of all
reservations. There are no counts by entity and limit together.

With --follow, print new denials as they come, one a line (in JSON one object a line), until the
command is interrupted, which is no error. A server lists its last 100 denials: if more come
in a second, the command says how many it has not seen.`

// activityFlags select what is printed of an activity.
type activityFlags struct {
	entity, limit string
	last          int
	follow        bool
}

// maxListed is the number of denials that a server lists.
const maxListed = 100

func activityCommand(a *console.App) *cobra.Command {
	f := &activityFlags{}
	cmd := &cobra.Command{
		Use:   "activity",
		Short: "Print what a server decides, and who is denied",
		Long:  activityHelp,
		Example: `  weir activity
  weir activity --entity team-a
  weir activity --follow --limit tpm`,
		Args:              console.Arguments(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.entity, "entity", "",
		"only denials of the entity with this `NAME`, or by its limits")
	flags.StringVar(&f.limit, "limit", "", "only what limits with this `NAME` decided")
	flags.IntVar(&f.last, "last", 10, "print the last `N` denials, up to 100")
	flags.BoolVarP(&f.follow, "follow", "f", false, "print new denials as they come")
	plan := func(cmd *cobra.Command, _ []string) (connect.Action, error) {
		switch {
		case f.last < 0 || f.last > maxListed:
			return nil, console.UsageError(cmd, "--last %d: must be from 0 to %d", f.last, maxListed)
		case f.follow && flags.Changed("last"):
			return nil, console.UsageError(cmd, "--last cannot be combined with --follow")
		}
		asJSON := cmd.Flag("output").Value.String() == "json"
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			if f.follow {
				w := &denialWatch{app: a, flags: f, json: asJSON, ask: c.Activity}
				return nil, w.run(ctx)
			}
			report, err := c.Activity(ctx)
			if err != nil {
				return nil, err
			}
			f.selectFrom(report)
			write := func(b *bytes.Buffer) { f.write(b, report) }
			return &connect.Answer{Value: report, Table: write}, nil
		}, nil
	}
	return connect.Command(a, cmd, connect.Watches, plan)
}

// selectFrom removes what the flags leave out. Counts that do not say what the flags ask for are
// removed whole.
func (f *activityFlags) selectFrom(r *httpapi.ActivityReport) {
	others := func(e httpapi.ActivityDenied) bool {
		return f.entity != "" && e.Entity != f.entity || f.limit != ""
	}
	r.Askers = slices.DeleteFunc(r.Askers, others)
	r.Owners = slices.DeleteFunc(r.Owners, others)
	r.Limits = slices.DeleteFunc(r.Limits, func(l httpapi.ActivityLimit) bool {
		return f.limit != "" && l.Limit != f.limit || f.entity != ""
	})
	r.Denials = slices.DeleteFunc(r.Denials, func(d httpapi.ActivityDenial) bool { return !f.wants(&d) })
	r.Denials = r.Denials[:min(len(r.Denials), f.last)]
}

// wants reports whether a denial is one that the flags ask for.
func (f *activityFlags) wants(d *httpapi.ActivityDenial) bool {
	asked := slices.ContainsFunc(d.Charges, func(c httpapi.ActivitySubject) bool {
		return c.Entity == f.entity
	})
	owns := slices.ContainsFunc(d.Exceeded, func(x httpapi.ActivityExceeded) bool {
		return x.Entity == f.entity
	})
	named := slices.ContainsFunc(d.Exceeded, func(x httpapi.ActivityExceeded) bool {
		return x.Limit == f.limit
	})
	return (f.entity == "" || asked || owns) && (f.limit == "" || named)
}

// write prints a report as tables.
func (f *activityFlags) write(b *bytes.Buffer, r *httpapi.ActivityReport) {
	writeTotals(b, r)
	writeLimitCounts(b, r.Limits)
	writeDenied(b, "WHO ASKED", r.Askers)
	writeDenied(b, "WHOSE LIMIT", r.Owners)
	switch {
	case f.last == 0:
		return
	case r.Denied == 0:
		b.WriteString("\nnobody has been denied\n")
		return
	case len(r.Denials) == 0:
		fmt.Fprintf(b, "\nnone of the last %d denials is one of these\n", maxListed)
		return
	}
	b.WriteString("\n")
	t := text.Table{Heads: []string{"WHEN", "WHO ASKED", "DENIED BY", "RETRY AFTER"}}
	for i := range r.Denials {
		t.Add(denialCells(&r.Denials[i])...)
	}
	t.Write(b)
}

func writeTotals(b *bytes.Buffer, r *httpapi.ActivityReport) {
	t := text.Table{}
	t.Add("since", formatTime(time.UnixMilli(r.SinceMS))+", for "+
		time.Duration((r.NowMS-r.SinceMS)/1000*int64(time.Second)).String())
	admitted := text.FormatInt(r.Admitted)
	if r.Degraded > 0 {
		admitted += ", " + text.FormatInt(r.Degraded) + " of them degraded: the store did not answer"
	}
	t.Add("admitted", admitted)
	t.Add("denied", text.FormatInt(r.Denied)+shareOf(r.Denied, r.Admitted))
	t.Add("last 2 min", lastMinutes(&r.Seconds))
	if r.Replayed > 0 {
		t.Add("repeated", text.FormatInt(r.Replayed))
	}
	var codes []string
	for _, e := range r.Errors {
		codes = append(codes, strings.TrimPrefix(string(e.Code), "weir: ")+" "+text.FormatInt(e.Count))
	}
	if len(codes) > 0 {
		t.Add("errors", strings.Join(codes, ", "))
	}
	t.Write(b)
}

// lastMinutes says what was decided in the last two minutes.
func lastMinutes(s *httpapi.ActivitySeconds) string {
	sum := func(counts []int64) (n int64) {
		for _, c := range counts {
			n += c
		}
		return n
	}
	admitted, denied := sum(s.Admitted), sum(s.Denied)
	return fmt.Sprintf("%s admitted, %s denied%s", text.FormatInt(admitted), text.FormatInt(denied),
		shareOf(denied, admitted))
}

// shareOf returns the share of denials in tenths of a per cent, rounded down; "" if there are none.
func shareOf(denied, admitted int64) string {
	if denied <= 0 {
		return ""
	}
	all := new(big.Int).Add(big.NewInt(denied), big.NewInt(admitted))
	tenths := new(big.Int).Mul(big.NewInt(denied), big.NewInt(1000))
	n := tenths.Div(tenths, all).Int64()
	return fmt.Sprintf(", %d.%d %% of reservations", n/10, n%10)
}

func writeLimitCounts(b *bytes.Buffer, limits []httpapi.ActivityLimit) {
	if len(limits) == 0 {
		return
	}
	b.WriteString("\n")
	t := text.Table{Heads: []string{
		"LIMIT", "KIND", ">ADMITTED", ">DENIED", ">EXCEEDED IN SHADOW", ">UNITS RESERVED",
	}}
	most := slices.Clone(limits)
	slices.SortStableFunc(most, func(a, b httpapi.ActivityLimit) int {
		return cmp.Compare(b.Denied, a.Denied)
	})
	for _, l := range most {
		t.Add(cmp.Or(l.Limit, "(all others)"), string(l.Kind), text.FormatInt(l.Admitted),
			text.FormatInt(l.Denied), text.FormatInt(l.Shadow), text.FormatInt(l.Reserved))
	}
	t.Write(b)
}

// writeDenied prints counts of denials by entity.
func writeDenied(b *bytes.Buffer, head string, counts []httpapi.ActivityDenied) {
	if len(counts) == 0 {
		return
	}
	b.WriteString("\n")
	t := text.Table{Heads: []string{head, ">DENIED"}}
	for _, e := range counts {
		t.Add(cmp.Or(e.Entity, "(all others)"), text.FormatInt(e.Denied))
	}
	t.Write(b)
}

// denialCells returns when a denial was, who asked, the limits that denied with whose they are, and
// the retry-after.
func denialCells(d *httpapi.ActivityDenial) []string {
	var who, by []string
	for _, c := range d.Charges {
		if name := c.Entity + "/" + c.Resource; !slices.Contains(who, name) {
			who = append(who, name)
		}
	}
	for i := range d.Exceeded {
		x := &d.Exceeded[i]
		by = append(by, fmt.Sprintf("%s/%s %s (asked %s, available %s)", x.Entity, x.Resource, x.Limit,
			text.FormatInt(x.Requested), text.FormatInt(x.Available)))
	}
	if d.More > 0 {
		by = append(by, "and "+text.Plural(d.More, "other", "others"))
	}
	if d.Contended {
		by = append(by, "other writers")
	}
	wait := text.FormatMS(d.RetryAfterMS)
	if d.AtLeast {
		wait = "at least " + wait
	}
	at := formatTime(time.UnixMilli(d.AtMS))
	return []string{at, strings.Join(who, ", "), strings.Join(by, ", "), wait}
}
