package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// facts say what was replayed, and how.
func facts(r *replay.Report) []chart.Fact {
	f := []chart.Fact{
		{Name: "trace", Value: r.Trace},
		{Name: "calls", Value: text.FormatInt(int64(r.Calls))},
		{Name: "span", Value: fmt.Sprintf("%s, from %s to %s", replaySpan(r), r.From, r.To)},
	}
	add := func(name, value string) { f = append(f, chart.Fact{Name: name, Value: value}) }
	entities := replay.TenantName(0)
	if r.EntityColumn != "" {
		entities = fmt.Sprintf("%s, by the column %s", text.FormatInt(int64(r.Entities)), r.EntityColumn)
	} else if r.Entities > 1 {
		entities = fmt.Sprintf("%s (%s to %s)",
			text.FormatInt(int64(r.Entities)), entities, replay.TenantName(r.Entities-1))
	}
	add("entities", entities)
	if r.EntityColumn == "" {
		add("seed", strconv.FormatUint(r.Seed, 10))
	}
	if r.Resource != "" {
		add("resource", r.Resource)
	} else {
		add("resources", text.FormatInt(int64(r.Resources)))
	}
	if r.Live != nil {
		add("server", fmt.Sprintf("%s, %s times as fast as recorded",
			r.Live.Server, text.FormatInt(r.Live.Speed)))
	} else {
		add("limits", r.LimitsFile)
	}
	add("latency", r.Latency)
	if costs := text.FormatMap(r.Costs, strings.Clone); costs != "" {
		add("costs", costs)
	}
	if r.Estimates != nil {
		add("estimate", r.Estimate)
	}
	if r.Retry != nil {
		add("retry", "until "+text.FormatMS(r.Retry.PatienceMS)+" after a call came")
	}
	return f
}

// replaySpan is how long it all took, in whole seconds; in days where a duration might not hold it.
func replaySpan(r *replay.Report) string {
	const day = 24 * time.Hour
	if days := r.SpanMS / day.Milliseconds(); days >= 100_000 {
		return text.FormatInt(days) + " days"
	}
	return (time.Duration(r.SpanMS) * time.Millisecond).Round(time.Second).String()
}
