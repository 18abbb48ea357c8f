package cli

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

type (
	usageSummaryBody struct {
		From   string           `json:"from"`
		To     string           `json:"to,omitempty"`
		Window weir.UsageWindow `json:"window"`
		Usage  []usageSumBody   `json:"usage"`
		Total  usageSumBody     `json:"total"`
		Gaps   []gapBody        `json:"gaps"`
	}
	// usageSumBody is a sum. The total has no names but those of the query.
	usageSumBody struct {
		Entity    string           `json:"entity,omitempty"`
		Resource  string           `json:"resource,omitempty"`
		Windows   int              `json:"windows"`
		Events    int64            `json:"events"`
		Units     map[string]int64 `json:"units"`
		Overdrawn map[string]int64 `json:"overdrawn,omitempty"`
	}
)

func summarizeUsageCommand(a *console.App) *cobra.Command {
	f := &usageFlags{}
	cmd := &cobra.Command{
		Use:   "summary [ENTITY]",
		Short: "Print the sums of usage",
		Long: `Print the sum of what an entity used of each resource, or of what each entity used of
one resource, with a total, and the average over the windows in which something was
used.` + usageHelp,
		Example: `  weir usage summary acme --month 2026-10
  weir usage summary acme --window monthly
  weir usage summary --resource gpt-4o --from 2026-01-01 --to 2026-02-01`,
	}
	f.add(cmd)
	return connect.Command(a, cmd, connect.Reads,
		usagePlan(f, func(ctx context.Context, r httpapi.Records) (*connect.Answer, error) {
			s, err := summarizeUsage(ctx, r, &f.q)
			if err != nil {
				return nil, err
			}
			return f.summaryAnswer(s), nil
		}))
}

// usageSummary has the sums of a query.
type usageSummary struct {
	sums  []*weir.Usage // one for each resource, or for each entity if the query names none
	total weir.Usage
	gaps  []weir.UsageGap
}

// summarizeUsage adds up all windows.
func summarizeUsage(
	ctx context.Context, r httpapi.Records, q *weir.UsageQuery,
) (*usageSummary, error) {
	s := &usageSummary{total: weir.Usage{Entity: q.Entity, Resource: q.Resource, Window: q.Window}}
	sums, starts := make(map[weir.Subject]*weir.Usage), make(map[time.Time]bool)
	for u, err := range allUsage(ctx, r, q, largestPage, &s.gaps) {
		if err != nil {
			return nil, err
		}
		at := weir.Subject{Entity: u.Entity, Resource: u.Resource}
		if sums[at] == nil {
			sums[at] = &weir.Usage{Entity: u.Entity, Resource: u.Resource, Window: q.Window}
			s.sums = append(s.sums, sums[at])
		}
		if err := sums[at].Add(&u); err != nil {
			return nil, err
		}
		if err := s.total.Add(&u); err != nil {
			return nil, err
		}
		starts[u.Start] = true
	}
	s.total.Windows = len(starts)
	slices.SortFunc(s.sums, func(a, b *weir.Usage) int {
		return strings.Compare(a.Resource+" "+a.Entity, b.Resource+" "+b.Entity)
	})
	return s, nil
}

// summaryAnswer prints sums, with a row for each limit.
func (f *usageFlags) summaryAnswer(s *usageSummary) *connect.Answer {
	body := &usageSummaryBody{
		From: timeText(f.q.From), To: timeText(f.q.To), Window: f.q.Window, Usage: []usageSumBody{},
		Total: usageSumBodyOf(&s.total), Gaps: gapBodies(s.gaps),
	}
	for _, u := range s.sums {
		body.Usage = append(body.Usage, usageSumBodyOf(u))
	}
	notes := f.notes(&usageRecords{gaps: s.gaps})
	return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) {
		f.writeSummary(b, s)
		writeNotes(b, notes)
	}}
}

func usageSumBodyOf(u *weir.Usage) usageSumBody {
	body := usageSumBody{
		Entity: u.Entity, Resource: u.Resource, Windows: u.Windows, Events: u.Events, Units: u.Units,
		Overdrawn: u.Overdrawn,
	}
	if body.Units == nil {
		body.Units = map[string]int64{}
	}
	return body
}

func (f *usageFlags) writeSummary(b *bytes.Buffer, s *usageSummary) {
	if len(s.sums) == 0 {
		b.WriteString("no usage is recorded\n")
		return
	}
	word := strings.ToUpper(windowWord(f.q.Window))
	t := text.Table{Heads: []string{
		"ENTITY", "RESOURCE", "LIMIT", ">UNITS", ">" + word + "S", ">PER " + word,
	}}
	for _, u := range s.sums {
		addSum(&t, u.Entity, u.Resource, u)
	}
	if len(s.sums) > 1 {
		addSum(&t, "(total)", "", &s.total)
	}
	t.Write(b)
}

// addSum adds a row for each limit of a sum.
func addSum(t *text.Table, entity, resource string, u *weir.Usage) {
	for _, limit := range slices.Sorted(maps.Keys(u.Units)) {
		n := u.Units[limit]
		t.Add(entity, resource, limit, text.FormatInt(n), text.FormatInt(int64(u.Windows)),
			text.FormatInt(n/int64(u.Windows)))
	}
}
