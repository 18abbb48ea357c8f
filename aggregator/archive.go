package aggregator

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/schema"
)

// ArchivePrefix begins the key of every object of the archive.
const ArchivePrefix = "audit/"

// archiveDay is the layout of the rest of a day's keys. It is that of the Python library's
// function, and many tools take it for a partition.
const archiveDay = "year=2006/month=01/day=02/"

// ArchiveDay returns the prefix of the keys of a day.
func ArchiveDay(day time.Time) string { return ArchivePrefix + day.UTC().Format(archiveDay) }

// ArchiveObject is an object of the archive: the events of one day among the records of a batch,
// as lines of JSON that are compressed with gzip.
type ArchiveObject struct {
	Key  string
	Body []byte
	// Events is the number of lines.
	Events int
	// Faults are the items among them that cannot be read. Their lines have them as they are.
	Faults []*Fault
}

// IsArchived reports whether a record belongs into the archive: DynamoDB removed the item of an
// audit event because of its ttl. One that was deleted otherwise does not.
func IsArchived(r *Record) bool {
	return r.Kind == Removed && r.Expired && strings.HasPrefix(r.Key.SK, schema.SKAuditPrefix)
}

// Archive returns the objects for those records of a batch that belong into the archive, by day.
// names has the names of the namespaces that are known, by ID.
//
// The day is that of the event. The key has the first and the last sequence number of the
// object's records, so it says which records of the shard the object has. A batch that is read
// again with the same borders writes the same object, and one with other borders does not replace
// it by one that has less.
func Archive(
	shard string, records []*Record, names map[string]string,
) ([]*ArchiveObject, error) {
	days := make(map[string][]*archiveEntry)
	var order []string
	for _, r := range records {
		if !IsArchived(r) {
			continue
		}
		e, err := newArchiveEntry(r, names)
		if err != nil {
			return nil, err
		}
		if days[e.day] == nil {
			order = append(order, e.day)
		}
		days[e.day] = append(days[e.day], e)
	}
	slices.Sort(order)
	var objects []*ArchiveObject
	for _, day := range order {
		o, err := newArchiveObject(shard, days[day])
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// ArchivedNamespaces returns the IDs of the namespaces of those records that belong into the
// archive.
func ArchivedNamespaces(records []*Record) []string {
	var ids []string
	for _, r := range records {
		if !IsArchived(r) {
			continue
		}
		if id, _, err := schema.ParseAuditPK(r.Key.PK); err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// archiveEntry is a line of an object.
type archiveEntry struct {
	day      string
	position Position
	sequence string
	line     []byte
	fault    *Fault
}

func newArchiveEntry(r *Record, names map[string]string) (*archiveEntry, error) {
	e := &archiveEntry{position: r.Position, sequence: r.Sequence}
	line, day, err := parseArchived(r, names)
	if err == nil {
		e.line, err = json.Marshal(line) // the error is that of a number that is none
	}
	if err == nil {
		e.day = ArchiveDay(day)
		return e, nil
	}
	e.fault = &Fault{Key: r.Key, Reason: err.Error()}
	e.day = ArchiveDay(unreadDay(r))
	item := r.Old
	if item == nil {
		item = r.Key.Item()
	}
	e.line, err = json.Marshal(&archiveLine{Error: e.fault.Reason, Item: schema.TypedJSON(item)})
	return e, err
}

// unreadDay returns the day of an event that cannot be read: by its timestamp, or else the time
// at which it was removed.
func unreadDay(r *Record) time.Time {
	at, err := schema.ParseTimestamp(schema.StringAttribute(r.Old, schema.AttrTimestamp))
	if err == nil {
		return at
	}
	if year := r.At.UTC().Year(); year < 1 || year > lastYear {
		return time.Time{} // no key has this year
	}
	return r.At
}

// parseArchived returns the line of a record and the time of its event.
func parseArchived(r *Record, names map[string]string) (*archiveLine, time.Time, error) {
	var none time.Time
	switch {
	case r.Old == nil:
		return nil, none, errNoImage
	case !sameKey(r.Old, r.Key):
		return nil, none, errOtherKey
	}
	e, err := schema.ParseAuditEvent(r.Old)
	if err != nil {
		return nil, none, err
	}
	line := &archiveLine{
		EventID: e.ID, NamespaceID: e.Namespace, Entity: e.Entity, Action: e.Action, Timestamp: e.Timestamp,
		Namespace: orNull(names[e.Namespace]), Principal: orNull(e.Principal), Resource: orNull(e.Resource),
		Details: e.Details,
	}
	if !schema.IsPlain(e.Details) {
		line.Typed = schema.TypedJSON(schema.Item{schema.AttrDetails: r.Old[schema.AttrDetails]})
	}
	if e.Extra != nil {
		line.Others = schema.TypedJSON(e.Extra)
	}
	at, err := line.check()
	return line, at, err
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// archiveLine is a line of an object. Those of the Python library's function have the fields from
// EventID on, without the namespace.
type archiveLine struct {
	EventID     string         `json:"event_id"`
	Namespace   *string        `json:"namespace"`
	NamespaceID string         `json:"namespace_id"`
	Entity      string         `json:"entity_id"`
	Action      string         `json:"action"`
	Timestamp   string         `json:"timestamp"`
	Principal   *string        `json:"principal"`
	Resource    *string        `json:"resource"`
	Details     map[string]any `json:"details"`
	// Typed has the details with the types of DynamoDB, if there are any that JSON does not have.
	Typed map[string]any `json:"typed,omitempty"`
	// Others are the other attributes of the item, with their types.
	Others map[string]any `json:"other_attributes,omitempty"`
	// Error is the reason why an item could not be read, and Item is the item, with the types of
	// its values.
	Error string         `json:"error,omitempty"`
	Item  map[string]any `json:"item,omitempty"`
}

// check returns the time of an event, or the reason why a line is not one.
func (l *archiveLine) check() (time.Time, error) {
	for _, field := range []struct{ name, value string }{
		{"event_id", l.EventID}, {"entity_id", l.Entity}, {"action", l.Action},
	} {
		if field.value == "" {
			return time.Time{}, fmt.Errorf("%s is missing", field.name)
		}
	}
	return schema.ParseTimestamp(l.Timestamp)
}

// newArchiveObject returns the object of a day's lines, in the order of their records. A record
// that occurs twice has one line.
func newArchiveObject(shard string, entries []*archiveEntry) (*ArchiveObject, error) {
	slices.SortStableFunc(entries, func(a, b *archiveEntry) int {
		return cmp.Compare(a.position, b.position)
	})
	entries = slices.CompactFunc(entries, func(a, b *archiveEntry) bool {
		return a.position == b.position
	})
	o := &ArchiveObject{
		Key: fmt.Sprintf("%saudit-%s-%s-%s.jsonl.gz", entries[0].day, shard,
			entries[0].sequence, entries[len(entries)-1].sequence),
		Events: len(entries),
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body) // its header has no time, so equal lines are equal bytes
	for _, e := range entries {
		if _, err := z.Write(append(e.line, '\n')); err != nil {
			return nil, err
		}
		if e.fault != nil {
			o.Faults = append(o.Faults, e.fault)
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	o.Body = body.Bytes()
	return o, nil
}
