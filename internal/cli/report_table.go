package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/replay"
)

// replayPrint prints a report for people.
type replayPrint struct {
	*replay.Report

	chart *chart.TextOptions
}

// table prints the report.
func (r *replayPrint) table(b *bytes.Buffer) {
	r.head(b)
	b.WriteString("\n")
	shadow := r.limits(b)
	if shadow {
		b.WriteString("\n* a shadow limit denies nothing: DENIED is what it would have denied,\n" +
			"  ONLY IT what nothing else denied\n")
	}
	r.charts(b)
	b.WriteString("\n")
	r.foot(b)
}

func (r *replayPrint) head(b *bytes.Buffer) {
	t := table{columns: make([]column, 2)}
	t.add("trace", r.Trace)
	t.add("calls", thousands(int64(r.Calls)))
	t.add("span", fmt.Sprintf("%v, from %s to %s",
		(time.Duration(r.SpanMS)*time.Millisecond).Round(time.Second), r.From, r.To))
	entities := replay.TenantName(0)
	if r.EntityColumn != "" {
		entities = fmt.Sprintf("%s, by the column %s", thousands(int64(r.Entities)), r.EntityColumn)
	} else if r.Entities > 1 {
		entities = fmt.Sprintf("%s (%s to %s)",
			thousands(int64(r.Entities)), entities, replay.TenantName(r.Entities-1))
	}
	t.add("entities", entities)
	if r.EntityColumn == "" {
		t.add("seed", strconv.FormatUint(r.Seed, 10))
	}
	if r.Resource != "" {
		t.add("resource", r.Resource)
	} else {
		t.add("resources", thousands(int64(r.Resources)))
	}
	if r.Live != nil {
		t.add("server", fmt.Sprintf("%s, %s times as fast as recorded",
			r.Live.Server, thousands(r.Live.Speed)))
	} else {
		t.add("limits", r.LimitsFile)
	}
	t.add("latency", r.Latency)
	var costs []string
	for _, name := range slices.Sorted(maps.Keys(r.Costs)) {
		costs = append(costs, name+"="+r.Costs[name])
	}
	if len(costs) > 0 {
		t.add("costs", strings.Join(costs, " "))
	}
	if r.Estimates != nil {
		t.add("estimate", r.Estimate)
	}
	if r.Retry != nil {
		t.add("retry", "until "+milliseconds(r.Retry.PatienceMS)+" after a call came")
	}
	t.write(b)
}

// limits prints the rows, and reports whether a shadow limit is among them.
func (r *replayPrint) limits(b *bytes.Buffer) (shadow bool) {
	t := table{columns: []column{{"ENTITY", false}}}
	if r.Resource == "" {
		t.columns = append(t.columns, column{"RESOURCE", false})
	}
	t.columns = append(t.columns, column{"LIMIT", false}, column{"KIND", false},
		column{"ADMITTED", true}, column{"DENIED", true}, column{"ONLY IT", true}, column{"USED", true},
		column{"AVAILABLE", true}, column{"UNIT", false}, column{"USED %", true})
	for _, l := range r.Limits {
		cells := []string{rowEntity(l)}
		if r.Resource == "" {
			cells = append(cells, rowResource(l.Resource))
		}
		name, used := l.Limit, "-"
		if l.Shadow {
			shadow = true
			name += " *"
		}
		if l.UsedPercent != "" {
			used = string(l.UsedPercent)
		}
		t.add(append(cells, name, string(l.Kind), thousands(l.Admitted), thousands(l.Denied),
			thousands(l.DeniedOnly), separate(l.Used.String()), separate(l.Available.String()),
			strings.ReplaceAll(l.Unit, "_", "-"), used)...)
	}
	t.write(b)
	return shadow
}

// rowEntity is what a row calls its entities.
func rowEntity(l *replay.LimitReport) string {
	if l.Group == "" {
		return l.Entity
	}
	return plural(l.Entities, strings.TrimSuffix(string(l.Group), "s"), string(l.Group))
}

// rowResource is what a row calls its resources.
func rowResource(name string) string {
	if name == "" {
		return "all"
	}
	return name
}

func (r *replayPrint) foot(b *bytes.Buffer) {
	c := &r.Totals
	t := table{columns: []column{{"", false}, {"", true}, {"", true}, {"", true}}}
	t.add("calls", thousands(c.Calls), "", "")
	t.add("admitted", thousands(c.Admitted), string(c.AdmittedPercent)+" %",
		separate(c.TokensAdmitted.String())+" tokens")
	t.add("denied", thousands(c.Denied), string(c.DeniedPercent)+" %",
		separate(c.TokensDenied.String())+" tokens")
	t.add("errors", thousands(c.Errors), "", "")
	t.write(b)
	if r.Live != nil {
		liveFoot(b, r.Live)
	} else if c.Errors > 0 {
		b.WriteString("errors are calls that no wait makes fit: never satisfiable; " +
			"their tokens count as denied\n")
	}
	if c.RetryAfterP50MS != nil {
		fmt.Fprintf(b, "retry after  half of the denials within %s, 95 %% within %s\n",
			milliseconds(*c.RetryAfterP50MS), milliseconds(*c.RetryAfterP95MS))
	}
	r.retries(b)
	r.estimates(b)
	wall := "less than 1ms"
	if r.Speed.WallMS > 0 {
		wall = milliseconds(r.Speed.WallMS)
	}
	fmt.Fprintf(b, "replayed in %s: %s operations, %s a second\n", wall,
		thousands(r.Speed.Operations), thousands(r.Speed.OperationsPerSecond))
}

// milliseconds writes a duration as people do: 12ms, 1.234s, 2m3.004s.
func milliseconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
