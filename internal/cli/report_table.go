package cli

import (
	"bytes"
	"fmt"
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
	for _, f := range facts(r.Report) {
		t.add(f.Name, f.Value)
	}
	t.write(b)
}

// limits prints the rows, and reports whether a shadow limit is among them.
func (r *replayPrint) limits(b *bytes.Buffer) (shadow bool) {
	t, shadow := r.limitsTable()
	t.write(b)
	return shadow
}

// limitsTable is the table of the limits; shadow reports whether a shadow limit is among them.
func (r *replayPrint) limitsTable() (t *table, shadow bool) {
	t = &table{columns: []column{{"ENTITY", false}}}
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
	return t, shadow
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
	fmt.Fprintf(b, "replayed in %s: %s operations, %s a second\n", wallText(r.Speed.WallMS),
		thousands(r.Speed.Operations), thousands(r.Speed.OperationsPerSecond))
}

// milliseconds writes a duration as people do: 12ms, 1.234s, 2m3.004s.
func milliseconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// wallText writes how long something took, which may be very short.
func wallText(ms int64) string {
	if ms <= 0 {
		return "less than 1ms"
	}
	return milliseconds(ms)
}
