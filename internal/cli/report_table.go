package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
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
	t := text.Table{}
	for _, f := range facts(r.Report) {
		t.Add(f.Name, f.Value)
	}
	t.Write(b)
}

// limits prints the rows, and reports whether a shadow limit is among them.
func (r *replayPrint) limits(b *bytes.Buffer) (shadow bool) {
	t, shadow := r.limitsTable()
	t.Write(b)
	return shadow
}

// limitsTable is the table of the limits; shadow reports whether a shadow limit is among them.
func (r *replayPrint) limitsTable() (t *text.Table, shadow bool) {
	t = &text.Table{Heads: []string{"ENTITY"}}
	if r.Resource == "" {
		t.Heads = append(t.Heads, "RESOURCE")
	}
	t.Heads = append(t.Heads, "LIMIT", "KIND",
		">ADMITTED", ">DENIED", ">ONLY IT", ">USED",
		">AVAILABLE", "UNIT", ">USED %")
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
		t.Add(append(cells, name, string(l.Kind), text.FormatInt(l.Admitted), text.FormatInt(l.Denied),
			text.FormatInt(l.DeniedOnly), text.GroupDigits(l.Used.String()), text.GroupDigits(l.Available.String()),
			strings.ReplaceAll(l.Unit, "_", "-"), used)...)
	}
	return t, shadow
}

// rowEntity is what a row calls its entities.
func rowEntity(l *replay.LimitReport) string {
	if l.Group == "" {
		return l.Entity
	}
	return text.Plural(l.Entities, strings.TrimSuffix(string(l.Group), "s"), string(l.Group))
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
	t := text.Table{Heads: []string{"", ">", ">", ">"}}
	t.Add("calls", text.FormatInt(c.Calls), "", "")
	t.Add("admitted", text.FormatInt(c.Admitted), string(c.AdmittedPercent)+" %",
		text.GroupDigits(c.TokensAdmitted.String())+" tokens")
	t.Add("denied", text.FormatInt(c.Denied), string(c.DeniedPercent)+" %",
		text.GroupDigits(c.TokensDenied.String())+" tokens")
	t.Add("errors", text.FormatInt(c.Errors), "", "")
	t.Write(b)
	if r.Live != nil {
		liveFoot(b, r.Live)
	} else if c.Errors > 0 {
		b.WriteString("errors are calls that no wait makes fit: never satisfiable; " +
			"their tokens count as denied\n")
	}
	if c.RetryAfterP50MS != nil {
		fmt.Fprintf(b, "retry after  half of the denials within %s, 95 %% within %s\n",
			text.FormatMS(*c.RetryAfterP50MS), text.FormatMS(*c.RetryAfterP95MS))
	}
	r.retries(b)
	r.estimates(b)
	fmt.Fprintf(b, "replayed in %s: %s operations, %s a second\n", wallText(r.Speed.WallMS),
		text.FormatInt(r.Speed.Operations), text.FormatInt(r.Speed.OperationsPerSecond))
}

// wallText writes how long something took, which may be very short.
func wallText(ms int64) string {
	if ms <= 0 {
		return "less than 1ms"
	}
	return text.FormatMS(ms)
}
