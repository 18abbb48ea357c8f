package aggregator

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/schema"
)

// Kind says what happened to an item.
type Kind int

// The kinds of records.
const (
	Inserted Kind = iota + 1
	Modified
	Removed
)

// Record is a record of the stream: an item before and after one write.
type Record struct {
	// Sequence is the sequence number of the record in its shard of the stream.
	Sequence string
	Position Position
	// At is the time of the write. Streams have it to the second.
	At   time.Time
	Kind Kind
	Key  schema.Key
	// Old and New are the whole item before and after; nil if it did not exist.
	Old, New schema.Item
	// Expired reports whether DynamoDB removed the item because of its ttl.
	Expired bool
}

// IsExpiry reports whether the identity of a record, its type and its principal, is the one by which
// DynamoDB removes items that have expired.
func IsExpiry(kind, principal string) bool {
	return kind == "Service" && principal == "dynamodb.amazonaws.com"
}

// Counts are the units ever taken (tc), in milli-units, by limit. They include the limit that counts
// writes, which is never shown but never goes down while the item exists.
type Counts map[string]int64

// Change is what one write changed in the counts of a bucket item.
type Change struct {
	Bucket   schema.BucketID
	Position Position
	At       time.Time
	// Created reports whether the write created the item.
	Created       bool
	Before, After Counts
	// Unread are the limits whose counts cannot be read.
	Unread []string
	// Overdrawn are the limits that may go into debt and did, in order.
	Overdrawn []string
}

// Fault is the reason why a record, or one limit of it, is not counted.
type Fault struct {
	Key    schema.Key
	Limit  string // empty for the whole record
	Reason string
}

// Error names the item, the limit and the reason.
func (f *Fault) Error() string {
	limit := ""
	if f.Limit != "" {
		limit = fmt.Sprintf(" limit %.64q:", f.Limit)
	}
	return fmt.Sprintf("item %.128q %.64q:%s %s", f.Key.PK, f.Key.SK, limit, f.Reason)
}

// Parse returns the change of a record; nil if the record is of another item, or changes no units.
// A malformed limit is left out, with a fault. The other limits count.
func Parse(r *Record) (*Change, []*Fault) {
	if r.Key.SK != schema.SKState || r.Kind == Removed {
		return nil, nil
	}
	id, err := schema.ParseBucketPK(r.Key.PK)
	if err != nil {
		return nil, nil // another program's item
	}
	whole := func(reason string) (*Change, []*Fault) {
		return nil, []*Fault{{Key: r.Key, Reason: reason}}
	}
	switch {
	case r.Kind != Inserted && r.Kind != Modified:
		return whole("the record is of an unknown kind")
	case r.New == nil:
		return whole("the record does not have the item after the write")
	case r.Kind == Modified && r.Old == nil:
		return whole("the record does not have the item before the write")
	case r.Kind == Inserted && r.Old != nil:
		return whole("the record has an item before the write that created it")
	case r.Position == "" || r.At.IsZero():
		return whole("the record has no position or no time")
	case r.At.UTC().Year() < 1 || r.At.UTC().Year() > lastYear:
		return whole("the record has an impossible time")
	case !sameKey(r.New, r.Key) || r.Old != nil && !sameKey(r.Old, r.Key):
		return whole("the record's item has another key")
	}
	c := &Change{Bucket: id, Position: r.Position, At: r.At, Created: r.Kind == Inserted}
	after, faults := counts(r.New)
	before, more := counts(r.Old)
	faults = append(faults, more...)
	for _, f := range faults {
		f.Key = r.Key
		delete(after, f.Limit)
		delete(before, f.Limit)
		c.Unread = append(c.Unread, f.Limit)
	}
	c.Before, c.After = before, after
	c.Overdrawn = overdrawn(c, r.New)
	if !c.counts() {
		return nil, faults
	}
	return c, faults
}

// lastYear is the last year that a key can have.
const lastYear = 9999

func sameKey(item schema.Item, want schema.Key) bool {
	key, err := schema.KeyOf(item)
	return err == nil && key == want
}

// counts returns the counts of a bucket item, and the limits that are malformed or cannot be
// counted.
func counts(item schema.Item) (Counts, []*Fault) {
	c := make(Counts)
	var faults []*Fault
	for name, value := range item {
		limit, field, ok := schema.ParseBucketAttribute(name)
		if !ok || field != schema.FieldConsumed {
			continue
		}
		n, err := schema.Int64(value)
		switch {
		case err != nil:
			faults = append(faults, &Fault{Limit: limit, Reason: name + " " + err.Error()})
		case schema.UsageKeeps(limit):
			faults = append(faults, &Fault{
				Limit: limit, Reason: "usage items have an attribute of this name",
			})
		default:
			c[limit] = n
		}
	}
	slices.SortFunc(faults, func(a, b *Fault) int { return strings.Compare(a.Limit, b.Limit) })
	return c, faults
}

// overdrawn returns the limits that have no hard bound and that the write left in debt.
func overdrawn(c *Change, item schema.Item) []string {
	var names []string
	for _, limit := range slices.Sorted(maps.Keys(c.After)) {
		if _, soft := item[schema.BucketAttribute(limit, schema.FieldSoft)]; !soft {
			continue
		}
		balance, err := schema.Int64(item[schema.BucketAttribute(limit, schema.FieldBalance)])
		if err == nil && balance < 0 && c.After[limit] > c.Before[limit] {
			names = append(names, limit)
		}
	}
	return names
}

// counts reports whether a change counts: whether it changes the whole units of a limit.
func (c *Change) counts() bool {
	for limit := range c.After {
		if c.units(limit) != 0 {
			return true
		}
	}
	return len(c.Overdrawn) > 0
}

// units returns the whole units that a change adds to a limit. A limit that the item had not before
// began at 0.
func (c *Change) units(limit string) int64 {
	if limit == schema.WritesLimit {
		return 0
	}
	return wholeUnits(c.After[limit]) - wholeUnits(c.Before[limit])
}

// milliPerUnit is the number of milli-units in a unit.
const milliPerUnit = 1000

// wholeUnits rounds milli-units down to units.
func wholeUnits(milli int64) int64 {
	units := milli / milliPerUnit
	if milli%milliPerUnit < 0 {
		units--
	}
	return units
}

// unreadCount stands for a count that could not be read.
const unreadCount = math.MinInt64

// unreadText is how Counts encodes it.
const unreadText = "?"

// String encodes counts, in the order of the names: "rpm=5000 tpm=70000 wcu=3000".
func (c Counts) String() string {
	var b strings.Builder
	for _, limit := range slices.Sorted(maps.Keys(c)) {
		if strings.ContainsAny(limit, " =") {
			continue // no such limit can be set; see ParseCounts
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		number := strconv.FormatInt(c[limit], 10)
		if c[limit] == unreadCount {
			number = unreadText
		}
		b.WriteString(limit + "=" + number)
	}
	return b.String()
}

// ParseCounts decodes what [Counts.String] encodes. ok is false for any other text.
func ParseCounts(s string) (c Counts, ok bool) {
	c = make(Counts)
	for pair := range strings.FieldsSeq(s) {
		limit, number, found := strings.Cut(pair, "=")
		if number == unreadText && limit != "" {
			c[limit] = unreadCount
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if !found || limit == "" || err != nil {
			return nil, false
		}
		c[limit] = n
	}
	return c, true
}
