package dynamodb

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// TestReadyIsBounded checks that a probe without an answer holds no caller beyond the caller's own
// deadline, that callers share it, and that it ends after the write timeout.
func TestReadyIsBounded(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	p := &trap{fault: testkit.DelayedRequest, operation: "GetItem"}
	o := &testkit.FaultOptions{Rules: []testkit.FaultRule{p.rule()}}
	s := w.side(t, "probing", Options{Now: w.clock.now, WriteTimeout: time.Second}, limiter.Options{}, o).store
	p.set(1 << 20)
	w.clock.advance(probeEvery)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		err := s.Ready(ctx)
		cancel()
		wantCode(t, err, weir.Unavailable)
	}
	wantCode(t, s.Ready(t.Context()), weir.Unavailable)
	if n := s.Stats().Probes; n != 1 {
		t.Errorf("got %d probes, want 1", n)
	}
	p.set(0)
	w.clock.advance(probeEvery)
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("after ten seconds: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.Ready(t.Context()), weir.Unavailable)
}

// TestSettleInPurgedNamespace checks that settling a lease after its items were purged with their
// namespace writes nothing, and that a lease whose items still exist is settled on them. If leases
// are in the table, a purged lease is unknown.
func TestSettleInPurgedNamespace(t *testing.T) {
	t.Parallel()
	for _, process := range []bool{false, true} {
		t.Run(leasesIn(process), func(t *testing.T) {
			t.Parallel()
			settleInPurgedNamespace(t, process)
		})
	}
}

func settleInPurgedNamespace(t *testing.T, process bool) {
	t.Helper()
	w := newFaultWorld(t)
	w.limits(t, "", perSecond("rpm", 20, 1))
	s := w.side(t, "serving", Options{ProcessLeases: process}, limiter.Options{CacheTTL: -1}, nil)
	kept, purged := mustTake(t, s, "acme", 4), mustTake(t, s, "acme", 5)
	n, err := w.table.DeleteNamespace(t.Context(), w.eye.options.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.limiter.Reserve(t.Context(), &weir.Request{
		Entity: "acme", Resource: faultResource, Costs: weir.Costs{"rpm": 1},
	})
	wantCode(t, err, weir.NotFound)
	if _, err := kept.Complete(t.Context(), weir.Costs{"rpm": 7}); err != nil {
		t.Errorf("complete: %v", err)
	}
	s.store.running.Wait()
	w.wantTaken(t, "acme", "rpm", 12)
	if _, err := w.table.PurgeNamespace(t.Context(), n.ID, true, nil); err != nil {
		t.Fatal(err)
	}
	_, err = purged.Complete(t.Context(), weir.Costs{"rpm": 9})
	s.store.running.Wait()
	if !process {
		wantCode(t, err, weir.UnknownLease)
	} else if err != nil {
		t.Errorf("complete after the purge: %v", err)
	}
	wantNoRecords(t, w)
	for _, m := range w.images(t, "acme") {
		if m != nil {
			t.Errorf("the purged namespace has a bucket item again: %+v", m.Item)
		}
	}
}

// wantNoRecords checks that the table has no lease record.
func wantNoRecords(t *testing.T, w *faultWorld) {
	t.Helper()
	all, err := w.eye.client.API.Scan(t.Context(), &dynamodb.ScanInput{TableName: &w.table.Name})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range all.Items {
		if pk := client.TextOf(item, schema.AttrPK); strings.Contains(pk, "/LEASES#") {
			t.Errorf("the purged namespace has a lease record: %s", pk)
		}
	}
}
