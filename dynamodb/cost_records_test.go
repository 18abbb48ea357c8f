package dynamodb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// costOfRecord is a row of the table of lease records: leases of one kind, the size of their
// record, and what the last of them costs.
type costOfRecord struct {
	what           string
	limits, leases int
	long           bool // the names are long
	parent         bool // the parent is charged too
	bytes          int
	full, lean     recordUnits
}

// recordUnits are the write units of a warm reserve and of completing it with less, in thousandths.
type recordUnits struct{ reserve, complete int64 }

// String returns the row in Markdown.
func (c *costOfRecord) String() string {
	return fmt.Sprintf("| %s | %d | %d | %s, %s | %s, %s |\n", c.what, c.leases, c.bytes,
		inUnits(c.full.reserve), inUnits(c.full.complete),
		inUnits(c.lean.reserve), inUnits(c.lean.complete))
}

// The long names, of 37 and 27 characters.
const (
	longParent   = "tenant-7c9e6679-7425-40de-944b-e07fc1"
	longEntity   = "tenant-0f8fad5b-d9cb-469f-a165-708677"
	longResource = "anthropic/claude-opus-4.5-x"
)

// TestCostOfRecords checks the size of a lease record and the units of a reserve and a complete by
// the number of leases in the record, of limits, and of characters in names. A record of more than
// a kilobyte costs two units.
func TestCostOfRecords(t *testing.T) {
	t.Parallel()
	if len(longEntity) != 37 || len(longParent) != 37 || len(longResource) != 27 {
		t.Fatal("the names do not have the lengths that docs/dynamodb.md says")
	}
	full, lean := costKinds(t)
	docs := costDocs(t)
	for _, want := range []costOfRecord{
		{
			what: "two limits", limits: 2, leases: 1,
			bytes: 122, full: recordUnits{3000, 3000}, lean: recordUnits{2000, 2000},
		},
		{
			what: "two limits", limits: 2, leases: 8,
			bytes: 528, full: recordUnits{3000, 3000}, lean: recordUnits{2000, 2000},
		},
		{
			what: "eight limits", limits: 8, leases: 1,
			bytes: 174, full: recordUnits{3000, 3000}, lean: recordUnits{2000, 2000},
		},
		{
			what: "eight limits", limits: 8, leases: 8,
			bytes: 944, full: recordUnits{3000, 3000}, lean: recordUnits{2000, 2000},
		},
		{
			what: "two limits, long names", limits: 2, leases: 1, long: true,
			bytes: 176, full: recordUnits{3000, 3000}, lean: recordUnits{2000, 2000},
		},
		{
			what: "two limits, long names", limits: 2, leases: 8, long: true,
			bytes: 960, full: recordUnits{3000, 3000}, lean: recordUnits{2000, 2000},
		},
		{
			what: "two limits and two of the parent, long names", limits: 2, leases: 1, long: true, parent: true,
			bytes: 228, full: recordUnits{5000, 5000}, lean: recordUnits{3000, 3000},
		},
		{
			what: "two limits and two of the parent, long names", limits: 2, leases: 8, long: true, parent: true,
			bytes: 1376, full: recordUnits{6000, 6000}, lean: recordUnits{4000, 4000},
		},
		{
			what: "eight limits, long names", limits: 8, leases: 1, long: true,
			bytes: 228, full: recordUnits{5000, 5000}, lean: recordUnits{3000, 3000},
		},
		{
			what: "eight limits, long names", limits: 8, leases: 8, long: true,
			bytes: 1376, full: recordUnits{6000, 6000}, lean: recordUnits{4000, 4000},
		},
	} {
		t.Run(fmt.Sprintf("%s, %d", want.what, want.leases), func(t *testing.T) {
			t.Parallel()
			got := want
			got.bytes, got.full = recordOn(t, full, &want)
			_, got.lean = recordOn(t, lean, &want)
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			t.Log(got.String())
			docs.has(t, got.String())
		})
	}
}

// recordOn reserves the leases of a row under IDs that share a record, and completes the last one.
// It returns the size of the record with all of them live, and the costs of the last one.
func recordOn(t *testing.T, table *Table, of *costOfRecord) (bytes int, units recordUnits) {
	t.Helper()
	s := newCostWorld(t, table)
	p := s.first
	r := &weir.Request{Entity: "acme", Resource: costResource, Costs: weir.Costs{}}
	if of.long {
		r.Entity, r.Resource = longEntity, longResource
	}
	less := weir.Costs{}
	var limits []weir.Limit
	for _, name := range strings.Fields("rpm tpm rpd tpd images audio input output")[:of.limits] {
		limits = append(limits, perMinute(name, 1_000_000))
		r.Costs[name], less[name] = 2048, 137
	}
	p.set("", r.Resource, limits...)
	if of.parent {
		p.declare(longParent, "")
		p.declare(r.Entity, longParent)
	}
	id := func(slot byte) weir.LeaseID {
		return weir.MakeLeaseID(s.clock.Now().UnixMilli(), [10]byte{9: 8 + slot})
	}
	reserve := func(slot byte) int64 {
		r.LeaseID = id(slot)
		p.settled()
		p.reset()
		if _, err := p.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		p.settled()
		return p.units(p.calls.Snapshot()).write
	}
	r.LeaseID = weir.NewLeaseID(s.clock.Now())
	if _, err := p.Reserve(t.Context(), r); err != nil { // makes the bucket item
		t.Fatal(err)
	}
	for slot := range of.leases {
		units.reserve = reserve(byte(slot))
	}
	key, slot := schema.LeaseRecordKey(p.store.config.Namespace, r.LeaseID)
	if slot != of.leases-1 {
		t.Fatalf("the last lease has slot %d", slot)
	}
	item, err := connected(t, table).GetItem(t.Context(), key, true)
	if err != nil {
		t.Fatal(err)
	}
	p.reset()
	if _, err := p.Complete(t.Context(), r.LeaseID, []weir.Costs{less}); err != nil {
		t.Fatal(err)
	}
	p.settled()
	units.complete = p.units(p.calls.Snapshot()).write
	return itemBytes(item), units
}
