package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// Page returns the page of the result. It is the same for two runs of the same command. The page
// shows command as the way to make it again.
func (o *Result) Page(command string) *chart.Page {
	calls, against := text.Plural(o.Calls, "call", "calls"), o.LimitsFile
	switch {
	case o.Live != nil:
		against = "the server " + o.Live.Server
	case o.Compare != nil:
		against = fmt.Sprintf("two limits files: A is %s, B is %s", o.LimitsFile, o.Compare.Second.LimitsFile)
	}
	page := &chart.Page{
		Title: "Replay of " + o.Trace, Subtitle: calls + " against " + against,
		Facts: o.facts(), Tiles: o.tiles(), Footer: "Made by: " + command,
	}
	if o.Live != nil && o.Live.Stopped != "" {
		page.Facts = append(page.Facts, chart.Fact{Name: "stopped early", Value: o.Live.Stopped})
	}
	if c := o.Compare; c != nil {
		page.Sections = []chart.Section{
			{
				Title: "Totals", Note: "The change is B less A.",
				Table: pageTable(totalsTable(o.Report, c.Second)),
			},
			{
				Title: "The same calls",
				Note: "Each call belongs to one of these. What one file alone admits is what changes " +
					"for the callers.",
				Table: pageTable(callsTable(&c.Calls)),
			},
		}
	}
	t, shadow := o.limitsTable(true)
	limits := chart.Section{Title: "Limits", Table: pageTable(t), Figures: o.denials()}
	if shadow {
		limits.Table.Note = "* A shadow limit denies nothing: “denied” is what it would have denied"
		if o.Compare == nil {
			limits.Table.Note += ", “sole cause” what nothing else would have denied"
		}
		limits.Table.Note += "."
	}
	page.Sections = append(page.Sections, o.overTime(), limits)
	for _, s := range [][]chart.Section{o.Suggest.sections(), o.uses(), o.waits(), o.estimated(), {o.reading()}} {
		page.Sections = append(page.Sections, s...)
	}
	return page
}

// titled puts the side's name behind a title.
func (s *side) titled(title string) string {
	if s.name == "" {
		return title
	}
	return title + ": " + s.name
}

// tiles returns the most important numbers.
func (o *Result) tiles() []chart.Tile {
	t := &o.Totals
	calls := chart.Tile{Name: "Calls", Value: text.FormatInt(t.Calls), Note: "in " + spanText(o.SpanMS)}
	if c := o.Compare; c != nil {
		tile := func(name string, calls int64, share, tokens string) chart.Tile {
			return chart.Tile{Name: name, Value: text.FormatInt(calls), Note: share + " %, " + tokens + " tokens"}
		}
		only := func(name string, n *replay.CallCount) chart.Tile {
			return tile("Only "+name+" admits", n.Calls, string(n.Percent), text.FormatBig(n.Tokens))
		}
		admitted := func(name string, t *replay.Totals) chart.Tile {
			return tile("Admitted by "+name, t.Admitted, string(t.AdmittedPercent), text.FormatBig(t.TokensAdmitted))
		}
		return []chart.Tile{
			calls, admitted("A", t), admitted("B", &c.Second.Totals),
			only("A", &c.Calls.OnlyFirst), only("B", &c.Calls.OnlySecond),
		}
	}
	tiles := []chart.Tile{
		calls,
		{Name: "Admitted", Value: text.FormatInt(t.Admitted), Note: string(t.AdmittedPercent) + " %"},
		{Name: "Denied", Value: text.FormatInt(t.Denied), Note: string(t.DeniedPercent) + " %", Tone: chart.Bad},
		{
			Name: "Tokens admitted", Value: text.FormatCompact(t.TokensAdmitted),
			Note: text.FormatBig(t.TokensAdmitted) + "; " + text.FormatBig(t.TokensDenied) + " denied",
		},
	}
	if o.Retry != nil {
		w := o.Retry.WaitMS
		tiles[1].Note += ", " + text.FormatInt(o.Retry.AdmittedFirst) + " at once"
		tiles = append(tiles, chart.Tile{
			Name: "Waited until admitted", Value: roughDuration(w.P95),
			Note: "95 % within that, half within " + text.FormatMS(w.P50),
		})
	} else if t.RetryAfterP50MS != nil {
		tiles = append(tiles, chart.Tile{
			Name: "Retry after", Value: roughDuration(*t.RetryAfterP95MS),
			Note: "95 % of the denials within that, half within " + text.FormatMS(*t.RetryAfterP50MS),
		})
	}
	if e := o.Estimates; e != nil && e.Calls > 0 {
		tiles = append(tiles, chart.Tile{
			Name: "Within the estimate", Value: string(e.CoveredPercent) + " %",
			Note: text.FormatBig(e.TokensOver) + " tokens reserved and not used",
		})
	}
	if t.Errors > 0 {
		tiles = append(tiles, chart.Tile{Name: "Errors", Value: text.FormatInt(t.Errors), Tone: chart.Bad})
	}
	return tiles
}

// roughDuration writes a duration in milliseconds, to the second if it is long.
func roughDuration(ms int64) string {
	if ms < time.Minute.Milliseconds() {
		return text.FormatMS(ms)
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

// reading explains what the page counts.
func (o *Result) reading() chart.Section {
	words := []string{
		"A call is a line of the trace: it reserves when it arrives, and settles with what it used when it ends.",
		"It is admitted if it fits every limit that applies. Otherwise it is denied, and nothing is charged.",
	}
	if o.Retry != nil {
		words = append(words, "A denied call comes back after its retry-after, until it is admitted or gives "+
			"up. A call counts once, by its last attempt; limits count each attempt.")
	}
	if o.Live != nil {
		words = append(words, "Errors are neither: the server gave another answer, or none.")
	} else {
		words = append(words, "Errors are calls that can never be admitted, because they cost more than a "+
			"limit can hold; their tokens count as denied.")
	}
	words = append(words,
		"One denial counts on every limit that was exceeded, and under “sole cause” if no other limit was.",
		"Used is what calls were charged at their end; slots count for the seconds for which they were held.",
		"Available is what could have been used from the first call to the end of the last: the capacity and the "+
			"refill of a bucket, the capacity of each window that begins, the capacity of a budget for each of its "+
			"periods, and all slots for the whole time.")
	if o.Estimates != nil {
		words = append(words, "An estimate is the number of output tokens that a call reserved. Tokens that it "+
			"generated above that are an overrun; tokens below that were reserved and not used.")
	}
	if o.Compare != nil {
		words = append(words, "A and B are separate runs with the same calls, callers and costs.")
	}
	return chart.Section{Title: "How to read this page", Note: strings.Join(words, " ")}
}

// pageTable converts a table for a terminal to one for a page. Its heads are in lower case but for
// the first letter, and for A and B, which are names.
func pageTable(t *text.Table) *chart.Table {
	out := &chart.Table{Rows: t.Rows}
	for i := range t.Heads {
		head, right := t.Head(i)
		words := strings.Fields(head)
		for i, word := range words {
			switch {
			case word == "A" || word == "B":
			case i == 0:
				words[i] = word[:1] + strings.ToLower(word[1:])
			default:
				words[i] = strings.ToLower(word)
			}
		}
		out.Columns = append(out.Columns, chart.Column{
			Name: strings.Join(words, " "), Number: right,
			Alarm: strings.HasPrefix(head, "DENIED") || head == "SOLE CAUSE",
		})
	}
	return out
}
