package report

import (
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// pageReplay is a replay that a page shows: the only one, or one of two.
type pageReplay struct {
	*reportPrinter

	name    string // empty for the only one
	samples *replaySamples
}

// replayPage makes a page about one replay or two. It has nothing in it that differs between two
// runs of one command.
type replayPage struct {
	sides   []*pageReplay
	compare *replay.Comparison // nil for one
}

func (p *replayPage) add(name string, r *replay.Report, s *replaySamples) {
	p.sides = append(p.sides, &pageReplay{reportPrinter: &reportPrinter{Report: r}, name: name, samples: s})
}

// against is what the calls were replayed against.
func (s *pageReplay) against() string {
	if s.Live != nil {
		return "the server " + s.Live.Server
	}
	return s.LimitsFile
}

// titled puts the side's name behind a title.
func (s *pageReplay) titled(title string) string {
	if s.name == "" {
		return title
	}
	return title + ": " + s.name
}

// tiles are the few numbers that matter most.
func (s *pageReplay) tiles() []chart.Tile {
	t := &s.Totals
	tiles := []chart.Tile{
		{Name: "Calls", Value: text.FormatInt(t.Calls), Note: "in " + replaySpan(s.Report)},
		{Name: "Admitted", Value: text.FormatInt(t.Admitted), Note: string(t.AdmittedPercent) + " %"},
		{Name: "Denied", Value: text.FormatInt(t.Denied), Note: string(t.DeniedPercent) + " %", Tone: chart.Bad},
		{
			Name: "Tokens admitted", Value: text.FormatCompact(t.TokensAdmitted),
			Note: text.FormatBig(t.TokensAdmitted) + "; " + text.FormatBig(t.TokensDenied) + " denied",
		},
	}
	if s.Retry != nil {
		w := s.Retry.WaitMS
		tiles[1].Note += ", " + text.FormatInt(s.Retry.AdmittedFirst) + " at once"
		tiles = append(tiles, chart.Tile{
			Name: "Waited until admitted", Value: formatDuration(w.P95),
			Note: "95 % within that, half within " + text.FormatMS(w.P50),
		})
	} else if t.RetryAfterP50MS != nil {
		tiles = append(tiles, chart.Tile{
			Name: "Told to wait", Value: formatDuration(*t.RetryAfterP95MS),
			Note: "95 % of the denials within that, half within " + text.FormatMS(*t.RetryAfterP50MS),
		})
	}
	if e := s.Estimates; e != nil && e.Calls > 0 {
		tiles = append(tiles, chart.Tile{
			Name: "Within the estimate", Value: string(e.CoveredPercent) + " %",
			Note: text.FormatBig(e.TokensOver) + " tokens reserved in vain",
		})
	}
	if t.Errors > 0 {
		tiles = append(tiles, chart.Tile{Name: "Errors", Value: text.FormatInt(t.Errors), Tone: chart.Bad})
	}
	return tiles
}

// formatDuration writes a duration in milliseconds, to the second where it is long.
func formatDuration(ms int64) string {
	if ms < time.Minute.Milliseconds() {
		return text.FormatMS(ms)
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

// comparedTiles are the few numbers that matter most of two replays.
func (p *replayPage) comparedTiles() []chart.Tile {
	c, a, b := p.compare, &p.sides[0].Totals, &p.sides[1].Totals
	only := func(name string, n *replay.CallCount) chart.Tile {
		return chart.Tile{
			Name: "Only " + name + " admits", Value: text.FormatInt(n.Calls),
			Note: string(n.Percent) + " %, " + text.FormatBig(n.Tokens) + " tokens",
		}
	}
	return []chart.Tile{
		{Name: "Calls", Value: text.FormatInt(a.Calls), Note: "in " + replaySpan(p.sides[0].Report)},
		{
			Name: "Admitted by " + firstName, Value: text.FormatInt(a.Admitted),
			Note: string(a.AdmittedPercent) + " %, " + text.FormatBig(a.TokensAdmitted) + " tokens",
		},
		{
			Name: "Admitted by " + secondName, Value: text.FormatInt(b.Admitted),
			Note: string(b.AdmittedPercent) + " %, " + text.FormatBig(b.TokensAdmitted) + " tokens",
		},
		only(firstName, &c.Calls.OnlyFirst), only(secondName, &c.Calls.OnlySecond),
	}
}

// differences show what changes from one file to the other; none for one replay.
func (p *replayPage) differences() []chart.Section {
	c := p.compare
	if c == nil {
		return nil
	}
	totals := totalsRows(p.sides[0].Report, p.sides[1].Report, &c.Change)
	calls := callsRows(&c.Calls)
	return []chart.Section{
		{
			Title: "Totals", Note: "The change is " + secondName + " less " + firstName + ".",
			Table: pageTable(&text.Table{Heads: totalsHeads(), Rows: totals}),
		},
		{
			Title: "The same calls",
			Note: "Each call belongs to one of these. What one file alone admits is what changes " +
				"for the callers.",
			Table: pageTable(&text.Table{Heads: callsHeads(), Rows: calls}),
		},
	}
}

// reading says what is counted.
func reading(r *replay.Report, compared bool) chart.Section {
	words := []string{
		"A call is a line of the trace: it reserves when it comes, and settles with what it used when it ends.",
		"It is admitted if every limit that applies has room, and denied if one has not; then nothing is charged.",
	}
	if r.Retry != nil {
		words = append(words, "A denied call comes back at the instant that it was told, until it is admitted "+
			"or gives up: calls count once, by what became of them in the end, limits count each attempt.")
	}
	if r.Live != nil {
		words = append(words, "Errors are neither: the server said something else, or nothing.")
	} else {
		words = append(words, "Errors are calls that no wait makes fit, since they cost more than a limit can "+
			"ever hold; their tokens count as denied.")
	}
	words = append(words,
		"One denial counts on every limit that was exceeded, under “only it” where no other was.",
		"Used is what calls were charged for in the end; slots count for the seconds that they were held.",
		"Available is what could have been used from the first call to the end of the last: capacity and refill "+
			"of a bucket, the capacity of a window as often as one begins and of a budget in each period touched, "+
			"slots all the time.")
	if r.Estimates != nil {
		words = append(words, "An estimate is how many tokens a call was taken to generate when it reserved: what "+
			"it generated beyond that is an overrun, what it did not use of it was reserved in vain.")
	}
	if compared {
		words = append(words, "A and B had the same calls by the same callers with the same costs, each file alone.")
	}
	return chart.Section{Title: "How to read this page", Note: strings.Join(words, " ")}
}

// pageTable makes a table of a page from one for a terminal.
func pageTable(t *text.Table) *chart.Table {
	out := &chart.Table{Rows: t.Rows}
	for i := range t.Heads {
		head, right := t.Head(i)
		out.Columns = append(out.Columns, chart.Column{
			Name: pageHead(head), Number: right,
			Alarm: strings.HasPrefix(head, "DENIED") || head == "ONLY IT",
		})
	}
	return out
}

// pageHead writes a head without capitals but the first letter, and A and B, which are names.
func pageHead(head string) string {
	words := strings.Fields(head)
	for i, word := range words {
		if word == firstName || word == secondName {
			continue
		}
		words[i] = strings.ToLower(word)
		if i == 0 {
			words[i] = word[:1] + words[i][1:]
		}
	}
	return strings.Join(words, " ")
}
