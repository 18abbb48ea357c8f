package memory

import (
	"bytes"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/kernel"
)

// FuzzDecodeSnapshot checks that no input makes the decoder panic, and that what it accepts is the
// same after it is encoded and decoded again.
func FuzzDecodeSnapshot(f *testing.F) {
	whole := smallSnapshot(f)
	body, _, err := openEnvelope(whole)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(body)
	f.Add([]byte{0, 0, 0})
	kept, ctx, now := bareStore(f), f.Context(), time.Unix(1e9, 0)
	limits := []weir.Limit{{Name: "rpm", Capacity: 5}}
	err = errors.Join(
		kept.WriteEntity(ctx, now, "top", "", false), kept.WriteEntity(ctx, now, "low", "top", true),
		kept.WriteLimits(ctx, now, weir.Subject{Resource: "r"}, limits),
		kept.WriteLimits(ctx, now, weir.Subject{Entity: "low", Resource: "r"}, limits),
		kept.WriteDeclared(ctx, now, &declare.Record{}, &declare.Record{
			Managed: declare.Managed{Entities: []string{"low", "top"}}, Apply: &declare.Mark{ID: "x"},
		}))
	if err != nil {
		f.Fatal(err)
	}
	if body, err = kept.snapshot(nil); err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, data []byte) {
		version := uint32(snapshotVersion)
		if body, v, err := openEnvelope(data); err == nil {
			data, version = body, v
		}
		first := bareStore(t)
		if first.decode(data, version) != nil {
			return
		}
		once, err := first.snapshot(nil)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		second := bareStore(t)
		second.store.seed = first.store.seed // for the same stripes and order
		if err := second.decode(once, snapshotVersion); err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		twice, err := second.snapshot(nil)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("got %x, %v; want %x", twice, err, once)
		}
	})
}

func TestEncodeRefusesImpossibleState(t *testing.T) {
	t.Parallel()
	s := busyStore(t)
	for i := range s.store.stripes {
		for _, it := range s.store.stripes[i].dense {
			for _, st := range it.states {
				if b, ok := st.counter.(*kernel.Bucket); ok {
					b.BalanceMilli = b.Rate.CapacityMilli + 1
				}
			}
		}
	}
	if _, err := s.snapshot(nil); err == nil {
		t.Error("a balance above the capacity: got no error")
	}
}

// BenchmarkEncode measures encoding a snapshot of a thousand entities, each with four limits and a
// live lease.
func BenchmarkEncode(b *testing.B) {
	s := bareStore(b)
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	limits := sweepLimits(b)
	for i := range 1000 {
		out, err := s.store.reserveTakes(now, takesOf("entity-"+strconv.Itoa(i), limits))
		if err != nil {
			b.Fatal(err)
		}
		lease := driver.LeaseRecord{
			ID: weir.NewLeaseID(now), State: driver.LeaseLive, At: out.At, Expires: out.At.Add(time.Hour),
			Holdings: out.Holdings, Limits: out.Limits,
		}
		s.records.add(now.UnixMilli(), &leaseRecord{LeaseRecord: lease, memory: 600_000}, 0)
	}
	var buffer []byte
	for b.Loop() {
		var err error
		if buffer, err = s.snapshot(buffer[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(buffer)), "bytes")
}
