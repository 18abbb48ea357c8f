package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table prints the report for people.
func (r *replayReport) table(b *bytes.Buffer) {
	r.head(b)
	b.WriteString("\n")
	shadow := r.limits(b)
	if shadow {
		b.WriteString("\n* a shadow limit denies nothing: DENIED is what it would have denied,\n" +
			"  ONLY IT what nothing else denied\n")
	}
	b.WriteString("\n")
	r.foot(b)
}

func (r *replayReport) head(b *bytes.Buffer) {
	t := table{columns: make([]column, 2)}
	t.add("trace", r.Trace)
	t.add("calls", thousands(int64(r.Calls)))
	t.add("span", fmt.Sprintf("%v, from %s to %s",
		(time.Duration(r.SpanMS)*time.Millisecond).Round(time.Second), r.From, r.To))
	entities := tenantName(0)
	if r.Entities > 1 {
		entities = fmt.Sprintf("%s (%s to %s)",
			thousands(int64(r.Entities)), entities, tenantName(r.Entities-1))
	}
	t.add("entities", entities)
	t.add("seed", strconv.FormatUint(r.Seed, 10))
	t.add("resource", r.Resource)
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
	t.write(b)
}

// limits prints the rows, and reports whether a shadow limit is among them.
func (r *replayReport) limits(b *bytes.Buffer) (shadow bool) {
	t := table{columns: []column{
		{"ENTITY", false}, {"LIMIT", false}, {"KIND", false}, {"ADMITTED", true}, {"DENIED", true},
		{"ONLY IT", true}, {"USED", true}, {"AVAILABLE", true}, {"UNIT", false}, {"USED %", true},
	}}
	for _, l := range r.Limits {
		entity, name, used := l.Group.title(l.Entity, l.Entities), l.Limit, "-"
		if l.Shadow {
			shadow = true
			name += " *"
		}
		if l.UsedPercent != "" {
			used = string(l.UsedPercent)
		}
		t.add(entity, name, string(l.Kind), thousands(l.Admitted), thousands(l.Denied),
			thousands(l.DeniedOnly), separate(l.Used.String()), separate(l.Available.String()),
			strings.ReplaceAll(l.Unit, "_", "-"), used)
	}
	t.write(b)
	return shadow
}

// title is what a row calls its entities.
func (g entityGroup) title(entity string, entities int) string {
	if g == "" {
		return entity
	}
	return plural(entities, strings.TrimSuffix(string(g), "s"), string(g))
}

func (r *replayReport) foot(b *bytes.Buffer) {
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
		r.Live.foot(b)
	} else if c.Errors > 0 {
		b.WriteString("errors are calls that no wait makes fit: never satisfiable; " +
			"their tokens count as denied\n")
	}
	if c.RetryAfterP50MS != nil {
		fmt.Fprintf(b, "retry after  half of the denials within %s, 95 %% within %s\n",
			milliseconds(*c.RetryAfterP50MS), milliseconds(*c.RetryAfterP95MS))
	}
	wall := "less than 1ms"
	if r.Speed.WallMS > 0 {
		wall = milliseconds(r.Speed.WallMS)
	}
	fmt.Fprintf(b, "replayed in %s: %s operations, %s a second\n", wall,
		thousands(r.Speed.Operations), thousands(r.Speed.OperationsPerSecond))
}

// milliseconds writes a duration as people do: 12ms, 1.234s, 2m3.004s.
func milliseconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
