package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
)

// overdrawnSuffix marks the counters of events that left a soft limit in debt. The name of a limit
// has no "#".
const overdrawnSuffix = "#od"

// UsageRetentionDays is the default retention of usage in days.
const UsageRetentionDays = 90

// OverdrawnAttribute is the attribute that counts the events that left a soft limit in debt.
func OverdrawnAttribute(limit string) string { return limit + overdrawnSuffix }

// Usage is the usage of a resource by an entity in a window.
type Usage struct {
	Namespace, Entity, Resource string
	Window                      weir.UsageWindow
	// Start is the start of the window, formatted by [Timestamp].
	Start string
	// WindowKey is the name of the window in the item's keys, see the function [WindowKey]. Older items have
	// the full timestamp for days and months too.
	WindowKey string
	// Events is the number of changes in the sums.
	Events int64
	// Counters are the units used, by limit.
	Counters map[string]int64
	// Overdrawn counts events that left a soft limit in debt, by limit; nil if there were none.
	Overdrawn map[string]int64
	// TTL is the time from which DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
	// Extra are all attributes that no field holds, as they were read.
	Extra Item
}

// NewUsage returns the item of the window that contains at, with no usage.
func NewUsage(id BucketID, w weir.UsageWindow, at time.Time) *Usage {
	return &Usage{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource,
		Window: w, Start: Timestamp(w.Start(at)), WindowKey: WindowKey(w, at), Counters: map[string]int64{},
	}
}

// Key is the item's key.
func (u *Usage) Key() Key { return UsageKey(u.Namespace, u.Entity, u.Resource, u.WindowKey) }

// Item returns the item as it is stored. It leaves out counters with a name of [UsageKeeps].
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
		item[OverdrawnAttribute(limit)] = Number(n)
	}
	return item
}

// UsageKeeps reports whether a name is an attribute of the item itself, so that the item cannot
// count a limit with this name.
func UsageKeeps(limit string) bool {
	switch limit {
	case AttrEntity, AttrResource, AttrWindow, AttrWindowStart, AttrTotalEvents:
		return true
	}
	return RegistryKeeps(limit)
}

// ParseUsage decodes the item, or returns a [*MalformedError]. Every number without another meaning
// is a counter.
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
		Window:   weir.UsageWindow(required(r, AttrWindow, text)),
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

// The layouts of timestamps on items; all are in UTC.
const (
	timestampLayout = "2006-01-02T15:04:05Z"
	offsetLayout    = "2006-01-02T15:04:05+00:00"
	fractionLayout  = "2006-01-02T15:04:05.000000+00:00"
	dayLayout       = "2006-01-02"
	monthLayout     = "2006-01"
)

// Timestamp formats an instant as items have it, to the second: "2024-01-01T10:00:00Z".
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// ParseTimestamp parses what [Timestamp] formats.
func ParseTimestamp(s string) (time.Time, error) {
	t, err := time.Parse(timestampLayout, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("timestamp %q is not like %q", s, timestampLayout)
	}
	return t, nil
}

// OffsetTimestamp formats an instant as [Provisioner.AppliedAt] has it: with "+00:00", and with
// microseconds if they are not 0.
func OffsetTimestamp(t time.Time) string {
	if t = t.UTC().Truncate(time.Microsecond); t.Nanosecond() != 0 {
		return t.Format(fractionLayout)
	}
	return t.Format(offsetLayout)
}

// WindowKey returns the name of the window that contains t in the keys of usage items. An hour has its
// full timestamp, as in older versions of the library; a day and a month have their date only,
// because an hour, a day and a month that start together must not share one item.
func WindowKey(w weir.UsageWindow, t time.Time) string {
	switch start := w.Start(t); w {
	case weir.Daily:
		return start.Format(dayLayout)
	case weir.Monthly:
		return start.Format(monthLayout)
	default:
		return Timestamp(start)
	}
}
