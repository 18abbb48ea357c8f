package limiter

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Usage returns a page of the recorded usage. If the store is not a [driver.UsageReader], the error
// has code [weir.Unsupported]. Only ctx bounds how long it takes.
func (l *Limiter) Usage(ctx context.Context, q *weir.UsageQuery) (*weir.UsagePage, error) {
	reader, ok := l.store.(driver.UsageReader)
	if !ok {
		return nil, weir.NewError(weir.Unsupported, "store", "", "does not record usage")
	}
	checked, after, err := l.checkUsageQuery(q)
	if err != nil {
		return nil, err
	}
	page := &weir.UsagePage{}
	for u, err := range reader.ReadUsage(ctx, checked, after) {
		if err != nil {
			return nil, classify(err)
		}
		if after != nil && driver.CompareUsage(checked, &u, after) <= 0 || !selectLimit(&u, checked.Limit) {
			continue
		}
		if len(page.Usage) == checked.Size {
			page.Next = encodePosition(checked, &page.Usage[checked.Size-1])
			break
		}
		page.Usage = append(page.Usage, u)
	}
	gaps, err := reader.UsageGaps(ctx, l.options.Now().Truncate(time.Millisecond), checked)
	if err != nil {
		return nil, classify(err)
	}
	for _, g := range gaps {
		if (checked.To.IsZero() || g.From.Before(checked.To)) && g.To.After(checked.From) {
			page.Gaps = append(page.Gaps, g)
		}
	}
	return page, nil
}

// selectLimit leaves only one limit in a record. It reports whether anything is left.
func selectLimit(u *weir.Usage, limit string) bool {
	if limit == "" {
		return true
	}
	n, ok := u.Units[limit]
	if !ok {
		return false
	}
	u.Units = map[string]int64{limit: n}
	if times, ok := u.Overdrawn[limit]; ok {
		u.Overdrawn = map[string]int64{limit: times}
	} else {
		u.Overdrawn = nil
	}
	return true
}

// checkUsageQuery returns the query with its defaults and with bounds that are those of windows, and
// the record that it begins after.
func (l *Limiter) checkUsageQuery(
	in *weir.UsageQuery,
) (q *weir.UsageQuery, after *weir.Usage, err error) {
	q = &weir.UsageQuery{}
	if in != nil {
		*q = *in
	}
	if q.Window == "" {
		q.Window = weir.Hourly
	}
	switch {
	case q.Entity == "" && q.Resource == "":
		return nil, nil, invalid("entity", "", "must be given, or a resource")
	case !q.Window.Valid():
		return nil, nil, invalid("window", string(q.Window), "must be hourly, daily or monthly")
	}
	for _, name := range []struct{ field, value, reason string }{
		{"entity", q.Entity, identifier.CheckEntity(q.Entity)},
		{"resource", q.Resource, identifier.CheckResource(q.Resource)},
		{"limit", q.Limit, identifier.CheckLimit(q.Limit)},
	} {
		if name.value != "" && name.reason != "" {
			return nil, nil, invalid(name.field, name.value, name.reason)
		}
	}
	if q.Size, err = pageSize(q.Size); err != nil {
		return nil, nil, err
	}
	if err := checkBounds(q.From, q.To); err != nil {
		return nil, nil, err
	}
	q.From, q.To = nextWindow(q.Window, q.From), nextWindow(q.Window, q.To)
	after, err = decodePosition(q)
	return q, after, err
}

// lastYear is the last year of a bound, because stores sort times as text.
const lastYear = 9999

// checkBounds refuses a time that is empty, or outside the years 0 to 9999.
func checkBounds(from, to time.Time) error {
	for _, bound := range []struct {
		field string
		at    time.Time
	}{{"from", from}, {"to", to}} {
		if year := bound.at.UTC().Year(); year < 0 || year > lastYear {
			return invalid(bound.field, bound.at.UTC().Format(time.RFC3339),
				"must be in the years 0000 to 9999, in UTC")
		}
	}
	if !to.IsZero() && !from.Before(to) {
		return invalid("to", to.UTC().Format(time.RFC3339), "must be after from")
	}
	return nil
}

// nextWindow returns the start of the first window that begins at or after an instant; zero for
// zero.
func nextWindow(w weir.UsageWindow, at time.Time) time.Time {
	if next := w.End(at); !at.IsZero() && !w.Start(at).Equal(at) && next.Year() <= lastYear {
		return next
	}
	return at
}

// encodePosition returns the cursor of the page that begins after a record.
func encodePosition(q *weir.UsageQuery, u *weir.Usage) string {
	text := strings.Join([]string{
		string(q.Window), strconv.FormatInt(u.Start.Unix(), 10), u.Resource, u.Entity,
	}, " ")
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// decodePosition returns the record that a page begins after; nil if the query has no cursor.
func decodePosition(q *weir.UsageQuery) (*weir.Usage, error) {
	if q.After == "" {
		return nil, nil
	}
	bad := invalid("after", q.After, "must be the next of a page of the same query")
	text, err := base64.RawURLEncoding.DecodeString(q.After)
	if err != nil {
		return nil, bad
	}
	parts := strings.Split(string(text), " ")
	if len(parts) != 4 || parts[0] != string(q.Window) {
		return nil, bad
	}
	seconds, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return nil, bad
	}
	u := &weir.Usage{Entity: parts[3], Resource: parts[2], Start: time.Unix(seconds, 0).UTC()}
	switch {
	case checkBounds(u.Start, time.Time{}) != nil, !q.Window.Start(u.Start).Equal(u.Start),
		u.Start.Before(q.From), !q.To.IsZero() && !u.Start.Before(q.To),
		q.Entity != "" && u.Entity != q.Entity, q.Resource != "" && u.Resource != q.Resource:
		return nil, bad
	}
	return u, nil
}
