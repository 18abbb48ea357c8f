package apijson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// UsageList is the answer to GET /v1/usage.
type UsageList struct {
	Usage []Usage    `json:"usage"`
	Gaps  []UsageGap `json:"gaps"`
	Next  string     `json:"next,omitempty"`
}

// Usage is what one entity has used of one resource in one window.
type Usage struct {
	Entity    string           `json:"entity"`
	Resource  string           `json:"resource"`
	Window    weir.UsageWindow `json:"window"`
	Start     string           `json:"start"`
	End       string           `json:"end"`
	Events    int64            `json:"events"`
	Units     map[string]int64 `json:"units"`
	Overdrawn map[string]int64 `json:"overdrawn,omitempty"`
}

// UsageGap is a time for which usage may be missing.
type UsageGap struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// AuditList is the answer to GET /v1/audit.
type AuditList struct {
	Events []AuditEvent `json:"events"`
	Next   string       `json:"next,omitempty"`
}

// AuditEvent is the record of one change of the configuration.
type AuditEvent struct {
	EventID   string         `json:"event_id"`
	Timestamp string         `json:"timestamp"`
	Action    string         `json:"action"`
	Entity    string         `json:"entity"`
	Resource  string         `json:"resource,omitempty"`
	Principal string         `json:"principal,omitempty"`
	Details   map[string]any `json:"details,omitempty"`
}

// UsageListOf returns a page of usage.
func UsageListOf(p *weir.UsagePage) *UsageList {
	b := &UsageList{
		Usage: make([]Usage, len(p.Usage)), Gaps: make([]UsageGap, len(p.Gaps)), Next: p.Next,
	}
	for i := range p.Usage {
		u := &p.Usage[i]
		b.Usage[i] = Usage{
			Entity: u.Entity, Resource: u.Resource, Window: u.Window, Start: instantOf(u.Start),
			End: instantOf(u.End), Events: u.Events, Units: u.Units, Overdrawn: u.Overdrawn,
		}
		if u.Units == nil {
			b.Usage[i].Units = map[string]int64{}
		}
	}
	for i, g := range p.Gaps {
		b.Gaps[i] = UsageGap{To: instantOf(g.To), Reason: g.Reason}
		if !g.From.IsZero() {
			b.Gaps[i].From = instantOf(g.From)
		}
	}
	return b
}

// ReadUsageList reads a [UsageList] that answers a query.
func ReadUsageList(body []byte, q *weir.UsageQuery) (*weir.UsagePage, error) {
	b, err := Read[UsageList](body)
	switch {
	case err != nil:
		return nil, err
	case b.Usage == nil || b.Gaps == nil:
		return nil, errors.New("has no usage or no gaps")
	case b.Next != "" && (len(b.Usage) == 0 || b.Next == q.After):
		return nil, errors.New("has a next page that is no further")
	}
	p := &weir.UsagePage{Next: b.Next}
	for i := range b.Usage {
		u, err := b.Usage[i].usage()
		switch {
		case err != nil:
			return nil, err
		case q.Entity != "" && u.Entity != q.Entity:
			return nil, errors.New("is about another entity: " + Shorten(u.Entity))
		case q.Resource != "" && u.Resource != q.Resource:
			return nil, errors.New("is about another resource: " + Shorten(u.Resource))
		case q.Window != "" && u.Window != q.Window:
			return nil, errors.New("is about another window: " + Shorten(string(u.Window)))
		}
		p.Usage = append(p.Usage, *u)
	}
	for _, g := range b.Gaps {
		gap := weir.UsageGap{Reason: g.Reason}
		if gap.To, err = readInstant(g.To); err == nil && g.From != "" {
			gap.From, err = readInstant(g.From)
		}
		if err != nil {
			return nil, err
		}
		p.Gaps = append(p.Gaps, gap)
	}
	return p, nil
}

// usage checks the end by the window, because an end in the year 10000 cannot be parsed.
func (b *Usage) usage() (*weir.Usage, error) {
	start, err := readInstant(b.Start)
	if err != nil {
		return nil, err
	}
	u := &weir.Usage{
		Entity: b.Entity, Resource: b.Resource, Window: b.Window, Start: start,
		End: b.Window.End(start), Events: b.Events, Units: b.Units, Overdrawn: b.Overdrawn, Windows: 1,
	}
	switch {
	case b.Entity == "" || b.Resource == "" || b.Units == nil:
		return nil, errors.New("has a record without entity, resource or units")
	case !b.Window.Valid():
		return nil, errors.New("has an unknown window: " + Shorten(string(b.Window)))
	case !b.Window.Start(start).Equal(start) || b.End != instantOf(u.End):
		return nil, fmt.Errorf("has a window that is not %s: %s to %s", b.Window, Shorten(b.Start),
			Shorten(b.End))
	case b.Events < 0:
		return nil, errors.New("has a negative number of events")
	}
	return u, nil
}

// AuditListOf returns a page of events.
func AuditListOf(p *weir.AuditPage) *AuditList {
	b := &AuditList{Events: make([]AuditEvent, len(p.Events)), Next: p.Next}
	for i := range p.Events {
		e := &p.Events[i]
		b.Events[i] = AuditEvent{
			EventID: e.ID, Timestamp: instantOf(e.At), Action: e.Action, Entity: e.Entity,
			Resource: e.Resource, Principal: e.Principal, Details: e.Details,
		}
	}
	return b
}

// ReadAuditList reads an [AuditList] that answers a query. Whole numbers in the details become
// int64s if they fit, and other numbers [json.Number]s.
func ReadAuditList(body []byte, q *weir.AuditQuery) (*weir.AuditPage, error) {
	// The numbers in the details must not be rounded to float64s.
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var b AuditList
	if err := d.Decode(&b); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	_, err := d.Token()
	switch {
	case !errors.Is(err, io.EOF):
		return nil, errors.New("has something behind it")
	case b.Events == nil:
		return nil, errors.New("has no events")
	case b.Next != "" && (len(b.Events) == 0 || b.Next == q.After):
		return nil, errors.New("has a next page that is no further")
	}
	p := &weir.AuditPage{Next: b.Next}
	for i := range b.Events {
		e := &b.Events[i]
		at, err := readInstant(e.Timestamp)
		if err != nil {
			return nil, err
		}
		if e.EventID == "" || e.Action == "" || e.Entity == "" {
			return nil, errors.New("has an event without ID, action or entity")
		}
		p.Events = append(p.Events, weir.AuditEvent{
			ID: e.EventID, At: at, Action: e.Action, Entity: e.Entity, Resource: e.Resource,
			Principal: e.Principal, Details: wholeNumbers(e.Details),
		})
	}
	return p, nil
}

// wholeNumbers returns details with int64s instead of the [json.Number]s that fit.
func wholeNumbers(details map[string]any) map[string]any {
	for name, v := range details {
		details[name] = wholeNumber(v)
	}
	return details
}

func wholeNumber(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	case map[string]any:
		return wholeNumbers(v)
	case []any:
		for i := range v {
			v[i] = wholeNumber(v[i])
		}
	}
	return v
}

// instantOf writes an instant as RFC 3339 has it, in UTC.
func instantOf(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// readInstant reads an instant of an answer.
func readInstant(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, errors.New("has a time that is not RFC 3339: " + Shorten(text))
	}
	return at.UTC(), nil
}

// Bound writes a bound of a query: empty for the zero time.
func Bound(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return instantOf(at)
}

// ReadBound reads the parameter name of a query, an instant or a date in UTC. An empty text is the
// zero time.
func ReadBound(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err == nil:
		return at.UTC(), nil
	case strings.Contains(text, " "):
		return at, Invalid(name, text,
			"must be like 2026-01-31 or 2026-01-31T15:00:00Z; in a query, + is written %2B")
	}
	return at, Invalid(name, text, "must be like 2026-01-31 or 2026-01-31T15:00:00Z")
}
