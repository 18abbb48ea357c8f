package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// overdrawnSuffix marks counters of events that left a soft limit in debt. No limit's name has a
// "#".
const overdrawnSuffix = "#od"

// Usage is what an entity used of a resource in a window.
type Usage struct {
	Namespace, Entity, Resource string
	Window                      Window
	// Start is the beginning of the window, as [Timestamp] writes it.
	Start string
	// WindowKey is how the item's keys name the window, see [Window.Key]. Older items have the full
	// timestamp for days and months too.
	WindowKey string
	// Events is how many changes were added up.
	Events int64
	// Counters are what was used, by limit, in units.
	Counters map[string]int64
	// Overdrawn is how often a limit that does not deny was in debt, by limit; nil if never.
	Overdrawn map[string]int64
	// TTL is when DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// NewUsage returns the item, with nothing used, of the window that an instant is in.
func NewUsage(id BucketID, w Window, at time.Time) *Usage {
	return &Usage{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource,
		Window: w, Start: Timestamp(w.Start(at)), WindowKey: w.Key(at), Counters: map[string]int64{},
	}
}

// Key is the item's key.
func (u *Usage) Key() Key { return UsageKey(u.Namespace, u.Entity, u.Resource, u.WindowKey) }

// Item returns the item as it is stored. Counters that [UsageKeeps] are left out.
func (u *Usage) Item() Item {
	item := newItem(u.Extra, u.Key(), u.Namespace)
	item[AttrGSI2PK] = String(ResourcePK(u.Namespace, u.Resource))
	item[AttrGSI2SK] = String(UsageGSI2SK(u.WindowKey, u.Entity))
	item[AttrEntity] = String(u.Entity)
	item[AttrResource] = String(u.Resource)
	item[AttrWindow] = String(string(u.Window))
	item[AttrWindowStart] = String(u.Start)
	item[AttrTotalEvents] = Number(u.Events)
	setNumber(item, AttrTTL, u.TTL)
	for limit, n := range u.Counters {
		if !UsageKeeps(limit) {
			item[limit] = Number(n)
		}
	}
	for limit, n := range u.Overdrawn {
		item[limit+overdrawnSuffix] = Number(n)
	}
	return item
}

// UsageKeeps reports whether usage items have the attribute for themselves, so that no limit of
// this name can be counted there.
func UsageKeeps(limit string) bool {
	switch limit {
	case AttrEntity, AttrResource, AttrWindow, AttrWindowStart, AttrTotalEvents:
		return true
	}
	return RegistryKeeps(limit)
}

// ParseUsage reads the item; each number that has no other meaning is a counter. One that cannot be
// read is a [*MalformedError].
func ParseUsage(item Item) (*Usage, error) {
	r := newReader(item)
	ns, entity, err := ParseEntityPK(r.key.PK)
	r.keyError(err)
	resource, windowKey, err := ParseUsageSK(r.key.SK)
	r.keyError(err)
	r.optionalSame(AttrEntity, entity)
	r.optionalSame(AttrResource, resource)
	r.drop(AttrGSI2PK, AttrGSI2SK, AttrGSI4PK, AttrGSI4SK)
	u := &Usage{
		Namespace: ns, Entity: entity, Resource: resource, WindowKey: windowKey,
		Window:   Window(required(r, AttrWindow, text)),
		Start:    required(r, AttrWindowStart, text),
		Events:   optional(r, AttrTotalEvents, number),
		TTL:      optional(r, AttrTTL, number),
		Counters: map[string]int64{},
	}
	for _, name := range r.names() {
		if _, ok := r.rest[name].(*types.AttributeValueMemberN); !ok || UsageKeeps(name) {
			continue
		}
		n := optional(r, name, number)
		limit, overdrawn := strings.CutSuffix(name, overdrawnSuffix)
		if !overdrawn {
			u.Counters[name] = n
			continue
		}
		if u.Overdrawn == nil {
			u.Overdrawn = map[string]int64{}
		}
		u.Overdrawn[limit] = n
	}
	if r.err != nil {
		return nil, r.err
	}
	u.Extra = r.extra()
	return u, nil
}

// Window is how long usage is added up for.
type Window string

// The windows that usage is kept for.
const (
	Hourly  Window = "hourly"
	Daily   Window = "daily"
	Monthly Window = "monthly"
)

// The layouts of instants on items; all are in UTC.
const (
	timestampLayout = "2006-01-02T15:04:05Z"
	offsetLayout    = "2006-01-02T15:04:05+00:00"
	fractionLayout  = "2006-01-02T15:04:05.000000+00:00"
	dayLayout       = "2006-01-02"
	monthLayout     = "2006-01"
)

// Timestamp writes an instant as items have it, to the second: "2024-01-01T10:00:00Z".
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// ParseTimestamp reads what [Timestamp] writes.
func ParseTimestamp(s string) (time.Time, error) {
	t, err := time.Parse(timestampLayout, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("timestamp %q is not like %q", s, timestampLayout)
	}
	return t, nil
}

// OffsetTimestamp writes an instant as [Provisioner.AppliedAt] has it: with "+00:00", and with
// microseconds where there are any.
func OffsetTimestamp(t time.Time) string {
	if t = t.UTC().Truncate(time.Microsecond); t.Nanosecond() != 0 {
		return t.Format(fractionLayout)
	}
	return t.Format(offsetLayout)
}

// Start returns the beginning of the window that an instant is in; the instant itself for a window
// that is none of the three.
func (w Window) Start(t time.Time) time.Time {
	t = t.UTC()
	year, month, day := t.Date()
	switch w {
	case Hourly:
		return time.Date(year, month, day, t.Hour(), 0, 0, 0, time.UTC)
	case Daily:
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	case Monthly:
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

// End returns the first instant after the window that an instant is in; the instant itself for a
// window that is none of the three.
func (w Window) End(t time.Time) time.Time {
	start := w.Start(t)
	switch w {
	case Hourly:
		return start.Add(time.Hour)
	case Daily:
		return start.AddDate(0, 0, 1)
	case Monthly:
		return start.AddDate(0, 1, 0)
	}
	return start
}

// Key is how keys of usage items name the window that an instant is in: the predecessor's full
// timestamp of the hour, but a day or a month by its date, since an hour, a day and a month that
// begin together must not share one item.
func (w Window) Key(t time.Time) string {
	switch start := w.Start(t); w {
	case Daily:
		return start.Format(dayLayout)
	case Monthly:
		return start.Format(monthLayout)
	default:
		return Timestamp(start)
	}
}
