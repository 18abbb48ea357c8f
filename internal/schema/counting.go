package schema

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The aggregator's own items are in the table's system partition, and in no namespace's index GSI4:
// they belong to the table, and a purge of a namespace leaves them. The Python library does not know
// them.

// Attributes of the aggregator's items that single updates change.
const (
	AttrLabel    = "stream_label"
	AttrUntil    = "counted_until"
	AttrDays     = "days_until"
	AttrMonths   = "months_until"
	AttrSequence = "sequence"
	AttrPosition = "position"
	AttrDone     = "done"
)

// SKAggregator is the sort key of [Aggregator], and the prefix of the aggregator's other items.
const SKAggregator = "#AGGREGATOR"

const (
	skAggregatorCheckpoint = SKAggregator + "#SHARD#"
	skAggregatorGap        = SKAggregator + "#GAP#"
	skAggregatorResource   = SKAggregator + "#RESOURCE#"

	positionPrefix = "sq#"
	countedPrefix  = "tc#"

	attrSince     = "counted_since"
	attrTakenOver = "taken_over_at"
	attrFrom      = "gap_from"
	attrTo        = "gap_to"
	attrReason    = "gap_reason"
	attrMarkedAt  = "marked_at"
)

// instantLayout is the form of the instants on the aggregator's items. It sorts by time.
const instantLayout = "2006-01-02T15:04:05.000Z"

// setTime sets an attribute to an instant, to the millisecond, unless it is zero.
func setTime(item Item, name string, at time.Time) {
	if !at.IsZero() {
		item[name] = Instant(at)
	}
}

// Instant returns the value of an attribute with an instant. Such values sort by time.
func Instant(at time.Time) types.AttributeValue { return String(at.UTC().Format(instantLayout)) }

// instant decodes what setTime encodes.
func instant(value types.AttributeValue) (time.Time, string) {
	s, reason := text(value)
	if reason != "" {
		return time.Time{}, reason
	}
	at, err := time.Parse(instantLayout, s)
	if err != nil {
		return time.Time{}, "is not like " + instantLayout
	}
	return at, ""
}

// PositionAttribute is the attribute of a usage item that holds the position up to which the records
// of a shard of the bucket are in its sums.
func PositionAttribute(shard int) string { return positionPrefix + strconv.Itoa(shard) }

// CountedAttribute is the attribute of a usage item that holds the units ever taken on a shard of
// the bucket, as the last record in the item's sums has them.
func CountedAttribute(shard int) string { return countedPrefix + strconv.Itoa(shard) }

// IsPosition reports whether an attribute of a usage item is a [PositionAttribute].
func IsPosition(attribute string) bool { return strings.HasPrefix(attribute, positionPrefix) }

// StringAttribute returns a string attribute of an item; empty if it has none.
func StringAttribute(item Item, attribute string) string {
	s, _ := item[attribute].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// AggregatorKey is the key of the aggregator's state.
func AggregatorKey() Key { return Key{SystemPK(RegistryNamespace), SKAggregator} }

// Aggregator is the state of the counting of usage on a table.
type Aggregator struct {
	// Label identifies the stream that is read.
	Label string
	// Since is the first instant whose records are counted.
	Since time.Time
	// Until is the instant up to which the stream was read when the item was written.
	Until time.Time
	// Days is the start of the first day that has no item yet, and Months of the first month.
	Days, Months time.Time
	// TakenOver is when the table was taken over from another aggregator; zero if it was not.
	TakenOver time.Time
}

// Item returns the item as it is stored.
func (a *Aggregator) Item() Item {
	item := AggregatorKey().Item()
	setText(item, AttrLabel, a.Label)
	setTime(item, attrSince, a.Since)
	setTime(item, AttrUntil, a.Until)
	setTime(item, AttrDays, a.Days)
	setTime(item, AttrMonths, a.Months)
	setTime(item, attrTakenOver, a.TakenOver)
	return item
}

// ParseAggregator decodes the item, or returns a [*MalformedError].
func ParseAggregator(item Item) (*Aggregator, error) {
	r := newReader(item)
	if r.err == nil && r.key != AggregatorKey() {
		r.fail(AttrSK, "is not that of the aggregator")
	}
	a := &Aggregator{
		Label: optional(r, AttrLabel, text), Since: optional(r, attrSince, instant),
		Until: optional(r, AttrUntil, instant), Days: optional(r, AttrDays, instant),
		Months: optional(r, AttrMonths, instant), TakenOver: optional(r, attrTakenOver, instant),
	}
	return a, r.err
}

// Checkpoint is how far a shard of a stream has been counted.
type Checkpoint struct {
	Label, Shard string
	// Sequence is the number of the last record counted, and Position is its position, which can be
	// compared; empty if there was none.
	Sequence, Position string
	// Until is the time up to which all records of the shard are counted.
	Until time.Time
	// Done reports whether the shard was read to its end.
	Done bool
	// TTL is the time from which DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
}

// Key is the item's key.
func (c *Checkpoint) Key() Key {
	return Key{SystemPK(RegistryNamespace), skAggregatorCheckpoint + c.Label + "#" + c.Shard}
}

// Item returns the item as it is stored.
func (c *Checkpoint) Item() Item {
	item := c.Key().Item()
	setText(item, AttrSequence, c.Sequence)
	setText(item, AttrPosition, c.Position)
	setTime(item, AttrUntil, c.Until)
	item[AttrDone] = Bool(c.Done)
	setNumber(item, AttrTTL, c.TTL)
	return item
}

// ParseCheckpoint decodes the item, or returns a [*MalformedError].
func ParseCheckpoint(item Item) (*Checkpoint, error) {
	r := newReader(item)
	label, shard, ok := strings.Cut(strings.TrimPrefix(r.key.SK, skAggregatorCheckpoint), "#")
	if r.err == nil && (!ok || !IsCheckpoint(r.key)) {
		r.fail(AttrSK, "is not that of a checkpoint")
	}
	c := &Checkpoint{
		Label: label, Shard: shard, Sequence: optional(r, AttrSequence, text),
		Position: optional(r, AttrPosition, text), Until: optional(r, AttrUntil, instant), Done: optional(r, AttrDone, truth),
		TTL: optional(r, AttrTTL, number),
	}
	return c, r.err
}

// IsCheckpoint reports whether a key is that of a [Checkpoint].
func IsCheckpoint(key Key) bool { return isAggregators(key, skAggregatorCheckpoint) }

// Gap is a time whose usage is incomplete.
type Gap struct {
	// From and To are the first instant and the first one after it. From is zero if all usage
	// before To is incomplete.
	From, To time.Time
	// Namespace is the ID of the only namespace concerned; empty for all.
	Namespace string
	// Reason says why, for people.
	Reason string
	// MarkedAt is when the gap was noticed.
	MarkedAt time.Time
	// TTL is the time from which DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
}

// Key is the item's key. A gap that is marked twice, with one start and for one namespace, has one
// item.
func (g *Gap) Key() Key {
	from := "start"
	if !g.From.IsZero() {
		from = Timestamp(g.From)
	}
	return Key{SystemPK(RegistryNamespace), skAggregatorGap + from + "#" + g.Namespace}
}

// Item returns the item as it is stored.
func (g *Gap) Item() Item {
	item := g.Key().Item()
	setTime(item, attrFrom, g.From)
	setTime(item, attrTo, g.To)
	setText(item, AttrNamespaceID, g.Namespace)
	setText(item, attrReason, g.Reason)
	setTime(item, attrMarkedAt, g.MarkedAt)
	setNumber(item, AttrTTL, g.TTL)
	return item
}

// ParseGap decodes the item, or returns a [*MalformedError].
func ParseGap(item Item) (*Gap, error) {
	r := newReader(item)
	if r.err == nil && !IsGap(r.key) {
		r.fail(AttrSK, "is not that of a gap")
	}
	g := &Gap{
		From: optional(r, attrFrom, instant), To: required(r, attrTo, instant),
		Namespace: optional(r, AttrNamespaceID, text), Reason: optional(r, attrReason, text),
		MarkedAt: optional(r, attrMarkedAt, instant), TTL: optional(r, AttrTTL, number),
	}
	return g, r.err
}

// IsGap reports whether a key is that of a [Gap].
func IsGap(key Key) bool { return isAggregators(key, skAggregatorGap) }

// CountedResource is a resource of a namespace for which usage was counted.
type CountedResource struct{ Namespace, Resource string }

// Key is the item's key.
func (c CountedResource) Key() Key {
	return Key{
		SystemPK(RegistryNamespace), skAggregatorResource + c.Namespace + "/" + c.Resource,
	}
}

// ParseCountedResource decodes the key of the item, or returns a [*MalformedError].
func ParseCountedResource(key Key) (CountedResource, error) {
	rest := strings.TrimPrefix(key.SK, skAggregatorResource)
	ns, resource, ok := strings.Cut(rest, "/")
	if !ok || !IsCountedResource(key) {
		return CountedResource{}, keyError(AttrSK, key.SK, "is not that of a counted resource")
	}
	return CountedResource{ns, resource}, nil
}

// IsCountedResource reports whether a key is that of a [CountedResource].
func IsCountedResource(key Key) bool { return isAggregators(key, skAggregatorResource) }

func isAggregators(key Key, prefix string) bool {
	return key.PK == SystemPK(RegistryNamespace) && strings.HasPrefix(key.SK, prefix)
}
