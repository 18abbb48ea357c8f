package replay

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/lab/trace"
)

// tenantsOf returns the tenant that makes each of n calls, counted from 0.
func tenantsOf(n, tenants int, seed uint64) []int32 {
	w := NewWorkload(traceOf(make([]trace.Call, n)...), &WorkloadOptions{Entities: tenants, Seed: seed})
	out := make([]int32, n)
	for i := range w.calls {
		out[i] = w.callers[w.calls[i].Caller].Rank
	}
	return out
}

// TestSpreadCalls pins the promise of the help that a seed gives the same tenants for ever. Another
// implementation of PCG-DXSM computed them.
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

// TestSpreadIsEven checks that every tenant gets about the same number of calls.
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

// TestLeaseIDs checks that IDs carry their time, differ, and follow from the seed.
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

// TestSpreadModels checks that calls that name a model are spread over tenants like others, that
// each tenant has its own calls to each model, and that another seed spreads them as well.
func TestSpreadModels(t *testing.T) {
	t.Parallel()
	recorded := traceOf(make([]trace.Call, 100)...)
	recorded.Callers = []trace.EntityModel{{Resource: "x"}, {Resource: "y"}}
	for i := range recorded.Calls {
		recorded.Calls[i].Caller = int32(i % 2)
	}
	for _, seed := range []uint64{7, 8, 7} {
		w := NewWorkload(recorded, &WorkloadOptions{Entities: 3, Seed: seed})
		if len(w.callers) != 6 {
			t.Errorf("got callers %v, want three tenants with two resources each", w.callers)
		}
		tenants := tenantsOf(100, 3, seed)
		for i := range w.calls {
			by := w.callers[w.calls[i].Caller]
			if want := TenantName(int(tenants[i])); by.Entity != want || by.Resource != "xy"[i%2:i%2+1] {
				t.Errorf("seed %d, call %d: got %v, want %s", seed, i, by, want)
			}
		}
	}
}

// TestCallers checks that an entity and a resource have one string each, and that each pair of them
// is one caller.
func TestCallers(t *testing.T) {
	t.Parallel()
	text := "when,in,out,who,what\n1,1,1,b,y\n2,1,1,a,x\n3,1,1,b,y\n4,1,1,b,x\n"
	o := &trace.Options{Time: "when", Input: "in", Output: "out", Entity: "who", Model: "what"}
	got, err := trace.Read(t.Context(), "t.csv", strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	callers := []trace.EntityModel{{Entity: "b", Resource: "y"}, {Entity: "a", Resource: "x"}, {Entity: "b", Resource: "x"}}
	if !reflect.DeepEqual(got.Callers, callers) {
		t.Errorf("got callers %v, want %v", got.Callers, callers)
	}
	var by []int32
	for _, c := range got.Calls {
		by = append(by, c.Caller)
	}
	if want := []int32{0, 1, 0, 2}; !reflect.DeepEqual(by, want) {
		t.Errorf("got calls by %v, want %v", by, want)
	}
	// Nothing is spread, because the trace names the callers.
	w := NewWorkload(got, &WorkloadOptions{Entities: 5, Seed: 1})
	if !reflect.DeepEqual(w.callers, callers) || w.spread != 0 {
		t.Errorf("got %v spread over %d, want the trace's callers", w.callers, w.spread)
	}
}
