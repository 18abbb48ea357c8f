package cli

import (
	"strings"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// comparedTiles are the few numbers that matter most of two replays.
func (p *replayPage) comparedTiles() []chart.Tile {
	c, a, b := p.compare, &p.sides[0].Totals, &p.sides[1].Totals
	only := func(name string, n *replay.CallCount) chart.Tile {
		return chart.Tile{
			Name: "Only " + name + " admits", Value: text.FormatInt(n.Calls),
			Note: string(n.Percent) + " %, " + text.GroupDigits(n.Tokens.String()) + " tokens",
		}
	}
	return []chart.Tile{
		{Name: "Calls", Value: text.FormatInt(a.Calls), Note: "in " + replaySpan(p.sides[0].Report)},
		{
			Name: "Admitted by " + firstName, Value: text.FormatInt(a.Admitted),
			Note: string(a.AdmittedPercent) + " %, " + text.GroupDigits(a.TokensAdmitted.String()) + " tokens",
		},
		{
			Name: "Admitted by " + secondName, Value: text.FormatInt(b.Admitted),
			Note: string(b.AdmittedPercent) + " %, " + text.GroupDigits(b.TokensAdmitted.String()) + " tokens",
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
