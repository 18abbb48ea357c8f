package httpapi

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

func TestFlatBounds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	const room = 100 * (flatEntry + 256)
	f := newFlatLeases(room)
	key := strings.Repeat("k", 256)
	ids := make([]weir.LeaseID, 1000)
	for i := range ids {
		ids[i] = weir.NewLeaseID(start)
		at := start.Add(time.Duration(i) * time.Millisecond)
		f.reserved(&weir.Lease{ID: ids[i], ReservedAt: at, Expires: at.Add(time.Hour)}, []string{key})
		if f.bytes > room {
			t.Fatalf("%d bytes after %d leases, at most %d", f.bytes, i+1, room)
		}
	}
	if len(f.byID) != 100 || len(f.queue) != 100 || f.keys(ids[899]) != nil ||
		f.keys(ids[900]) == nil {
		t.Errorf("%d leases and %d in the queue, want the last hundred", len(f.byID), len(f.queue))
	}
	f.reserved(&weir.Lease{ID: ids[0], ReservedAt: start}, nil)
	if len(f.byID) != 100 {
		t.Error("a lease without flat keys is remembered")
	}
	// The same lease again takes no more room.
	f.reserved(&weir.Lease{ID: ids[999], ReservedAt: start, Expires: start.Add(2 * time.Hour)},
		[]string{key})
	if f.bytes != room {
		t.Errorf("%d bytes after a replay, want %d", f.bytes, room)
	}
	last := start.Add(time.Hour + flatMemory + 998*time.Millisecond)
	f.settled(&weir.Receipt{At: last})
	if f.keys(ids[997]) != nil || f.keys(ids[998]) == nil || f.keys(ids[999]) == nil ||
		len(f.byID) != 2 {
		t.Errorf("%d leases are left at the end of the last but one", len(f.byID))
	}
	f.settled(&weir.Receipt{LeaseID: ids[999], At: last}) // ended now, not in two hours
	f.settled(&weir.Receipt{At: last.Add(flatMemory)})
	if f.keys(ids[999]) == nil {
		t.Error("a settled lease was forgotten too early")
	}
	f.settled(&weir.Receipt{At: last.Add(flatMemory + time.Millisecond)})
	if len(f.byID) != 0 || len(f.queue) != 0 || f.bytes != 0 {
		t.Errorf("%d leases, %d in the queue, %d bytes at the end", len(f.byID), len(f.queue), f.bytes)
	}
}

func TestReserveWords(t *testing.T) {
	t.Parallel()
	several := reserveRequest{requirements: []requirementBody{{"b", 1}, {"a", 2}}}
	several.translate()
	single := reserveRequest{requirements: []requirementBody{{"a", 2}}}
	single.translate()
	for _, c := range []struct {
		r                  *reserveRequest
		field, value, want string
	}{
		{&several, "charges[0].entity", "a", "requirements[1].key"},
		{&several, "charges[1].entity", "b", "requirements[0].key"},
		{&several, "charges[0].costs.units", "2", "requirements[1].amount"},
		{&several, "entity", "a", "requirements[1].key"},
		{&several, "entity", "parent", "entity"},
		{&several, "costs.units", "2", "requirements"},
		{&several, "charges", "17", "requirements"},
		{&several, "lease_id", "x", "lease_id"},
		{&single, "costs.units", "2", "requirements[0].amount"},
		{&single, "charges[0].costs.units", "-1", "requirements[0].amount"},
	} {
		if got := c.r.word(invalid(c.field, c.value, "x")); got != c.want {
			t.Errorf("%s %s is called %s, want %s", c.field, c.value, got, c.want)
		}
	}
	if keys := strings.Join(several.keys(), " "); keys != "a b" {
		t.Errorf("keys are %s", keys)
	}
}

func BenchmarkFlatLeases(b *testing.B) {
	f := newFlatLeases(flatRoom)
	start := time.Now()
	keys := make([]string, 16)
	for i := range keys {
		keys[i] = "key" + strconv.Itoa(i)
	}
	for b.Loop() {
		id := weir.NewLeaseID(start)
		f.reserved(&weir.Lease{ID: id, ReservedAt: start, Expires: start.Add(time.Hour)}, keys)
		f.settled(&weir.Receipt{LeaseID: id, At: start})
	}
}
