package replay

import (
	"reflect"
	"testing"
)

// tenantsOf says which tenant makes each of n calls, counted from 0.
func tenantsOf(n, tenants int, seed uint64) []int32 {
	w := NewWorkload(traceOf(make([]Call, n)...), &WorkloadOptions{Entities: tenants, Seed: seed})
	out := make([]int32, n)
	for i := range w.calls {
		out[i] = w.callers[w.calls[i].Caller].rank
	}
	return out
}

// TestSpreadCalls pins what the help promises: a seed gives the same tenants for ever. They were
// worked out by another implementation of PCG-DXSM.
func TestSpreadCalls(t *testing.T) {
	t.Parallel()
	got := tenantsOf(16, 4, 7)
	want := []int32{2, 3, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 2, 3, 0, 2}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got tenants %v, want %v", got, want)
	}
	if got := tenantsOf(3, 1, 7); !reflect.DeepEqual(got, []int32{0, 0, 0}) {
		t.Errorf("got %v for one tenant, want it alone", got)
	}
	if got := TenantName(0); got != "tenant-1" {
		t.Errorf("got %s as the first tenant, want tenant-1", got)
	}
}

// TestSpreadIsEven: every tenant gets about the same number of calls.
func TestSpreadIsEven(t *testing.T) {
	t.Parallel()
	const calls, tenants = 100_000, 10
	var count [tenants]int
	for _, tenant := range tenantsOf(calls, tenants, 42) {
		count[tenant]++
	}
	for tenant, n := range count {
		if n < 9_600 || n > 10_400 {
			t.Errorf("got %d calls of tenant %d, want about 10,000", n, tenant)
		}
	}
}

// TestLeaseIDs: IDs carry the time that they are made for, differ, and follow from the seed.
func TestLeaseIDs(t *testing.T) {
	t.Parallel()
	a, b, other := newLeaseIDs(5), newLeaseIDs(5), newLeaseIDs(6)
	seen := map[string]bool{}
	for i := range int64(1000) {
		at := 1_704_067_200_000 + i/2
		id := a.next(at)
		if got := id.Time().UnixMilli(); got != at {
			t.Errorf("got an ID of %d, want %d", got, at)
		}
		if again := b.next(at); again != id {
			t.Errorf("got %s and %s from one seed, want the same", id, again)
		}
		if id == other.next(at) || seen[id.String()] {
			t.Errorf("got %s twice", id)
		}
		seen[id.String()] = true
	}
	if got, want := newLeaseIDs(5).next(1_704_067_200_000).String(), "01HK153X00PV1P0XSGS4NBZR73"; got != want {
		t.Errorf("got %s, want %s as ever", got, want)
	}
}
