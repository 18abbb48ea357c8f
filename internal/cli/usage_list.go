package cli

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

type (
	usageListBody struct {
		From  string      `json:"from"`
		To    string      `json:"to,omitempty"`
		Usage []usageBody `json:"usage"`
		Gaps  []gapBody   `json:"gaps"`
		More  bool        `json:"more,omitempty"`
	}
	usageBody struct {
		Entity    string           `json:"entity"`
		Resource  string           `json:"resource"`
		Window    weir.UsageWindow `json:"window"`
		Start     string           `json:"start"`
		End       string           `json:"end"`
		Events    int64            `json:"events"`
		Units     map[string]int64 `json:"units"`
		Overdrawn map[string]int64 `json:"overdrawn,omitempty"`
	}
	gapBody struct {
		From   string `json:"from,omitempty"`
		To     string `json:"to"`
		Reason string `json:"reason"`
	}
)

// usageListDefault is the default number of windows that a list of usage prints: those of a month
// by day on 32 resources.
const usageListDefault = 1000

func listUsageCommand(a *console.App) *cobra.Command {
	f := &usageFlags{}
	var most int
	cmd := &cobra.Command{
		Use:   "list [ENTITY]",
		Short: "List usage by hour, day or month",
		Long: `List what an entity used in each hour, or in each window of another length: one row for
each resource and window in which something was used.` + usageHelp + `

CSV. With --output csv there is one row for each window and limit, with the columns entity,
resource, window, start, end, limit, units and overdrawn. What is missing or left out is then said
on standard error.`,
		Example: `  weir usage list acme --month 2026-10
  weir usage list acme --window daily --from 2026-10-01 --to 2026-11-01
  weir usage list acme --resource gpt-4o --day 2026-10-31 --output csv
  weir usage list --resource gpt-4o --window monthly --store dynamodb://limits`,
	}
	f.add(cmd)
	cmd.Flags().IntVar(&most, "size", usageListDefault, "print at most `N` windows")
	do := usagePlan(f, func(ctx context.Context, r httpapi.Records) (*connect.Answer, error) {
		found, err := readUsage(ctx, r, &f.q, most)
		if err != nil {
			return nil, err
		}
		return f.listAnswer(found), nil
	})
	plan := func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if most < 1 {
			return nil, console.UsageError(cmd, "--size %d: must be above zero", most)
		}
		return do(cmd, args)
	}
	return connect.ListCommand(a, cmd, plan)
}

// listAnswer prints usage with a row for each record.
func (f *usageFlags) listAnswer(found *usageRecords) *connect.Answer {
	body := &usageListBody{
		From: timeText(f.q.From), To: timeText(f.q.To), Usage: []usageBody{}, Gaps: gapBodies(found.gaps),
		More: found.more,
	}
	for i := range found.usage {
		body.Usage = append(body.Usage, usageBodyOf(&found.usage[i]))
	}
	notes := f.notes(found)
	return &connect.Answer{
		Value: body, Notes: notes,
		CSV: func() [][]string { return usageRows(found.usage) },
		Table: func(b *bytes.Buffer) {
			writeUsage(b, f.q.Window, found.usage)
			writeNotes(b, notes)
		},
	}
}

func usageBodyOf(u *weir.Usage) usageBody {
	body := usageBody{
		Entity: u.Entity, Resource: u.Resource, Window: u.Window, Start: timeText(u.Start),
		End: timeText(u.End), Events: u.Events, Units: u.Units, Overdrawn: u.Overdrawn,
	}
	if body.Units == nil {
		body.Units = map[string]int64{}
	}
	return body
}

func gapBodies(gaps []weir.UsageGap) []gapBody {
	out := make([]gapBody, len(gaps))
	for i, g := range gaps {
		out[i] = gapBody{timeText(g.From), timeText(g.To), g.Reason}
	}
	return out
}

// maxLimitColumns is the number of limits that have a column of their own in a table.
const maxLimitColumns = 6

// writeUsage prints a table, with a column for each limit if they are few.
func writeUsage(b *bytes.Buffer, w weir.UsageWindow, usage []weir.Usage) {
	if len(usage) == 0 {
		b.WriteString("no usage is recorded\n")
		return
	}
	limits := limitsOf(usage)
	overdrawn := slices.ContainsFunc(usage, func(u weir.Usage) bool { return len(u.Overdrawn) > 0 })
	heads := []string{strings.ToUpper(windowWord(w)), "ENTITY", "RESOURCE", ">EVENTS"}
	if len(limits) > maxLimitColumns {
		limits, heads = nil, append(heads, "UNITS")
	}
	for _, limit := range limits {
		heads = append(heads, ">"+text.Printable(limit))
	}
	if overdrawn {
		heads = append(heads, "OVERDRAWN")
	}
	t := text.Table{Heads: heads}
	for i := range usage {
		u := &usage[i]
		cells := []string{startText(u), u.Entity, u.Resource, text.FormatInt(u.Events)}
		if limits == nil {
			cells = append(cells, text.FormatMap(u.Units, text.FormatInt))
		}
		for _, limit := range limits {
			cells = append(cells, unitsText(u.Units, limit))
		}
		if overdrawn {
			cells = append(cells, text.FormatMap(u.Overdrawn, text.FormatInt))
		}
		t.Add(cells...)
	}
	t.Write(b)
}

// unitsText writes the units of a limit; empty if there are none.
func unitsText(units map[string]int64, limit string) string {
	n, ok := units[limit]
	if !ok {
		return ""
	}
	return text.FormatInt(n)
}

// limitsOf returns the limits of all records, in order.
func limitsOf(usage []weir.Usage) []string {
	names := make(map[string]bool)
	for i := range usage {
		for name := range usage[i].Units {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// usageRows returns the rows of CSV.
func usageRows(usage []weir.Usage) [][]string {
	rows := [][]string{{
		"entity", "resource", "window", "start", "end", "limit", "units", "overdrawn",
	}}
	for i := range usage {
		u := &usage[i]
		for _, limit := range slices.Sorted(maps.Keys(u.Units)) {
			rows = append(rows, []string{
				u.Entity, u.Resource, string(u.Window), timeText(u.Start), timeText(u.End), limit,
				strconv.FormatInt(u.Units[limit], 10), strconv.FormatInt(u.Overdrawn[limit], 10),
			})
		}
	}
	return rows
}

// writeNotes prints sentences below a table.
func writeNotes(b *bytes.Buffer, notes []string) {
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	for _, note := range notes {
		b.WriteString(text.Printable(note) + "\n")
	}
}
