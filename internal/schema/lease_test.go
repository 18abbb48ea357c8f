package schema_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

var leaseID = weir.MakeLeaseID(1_700_000_000_000, [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 5})

// liveLease is a lease of a cascade on two limits, the second of which the request brought.
func liveLease() *schema.Lease {
	child := weir.Subject{Entity: "team-a", Resource: "openai/gpt-4o"}
	parent := weir.Subject{Entity: "acme", Resource: "openai/gpt-4o"}
	return &schema.Lease{
		Version: 0x0102030405060708, Prev: 77, State: schema.LeaseLive, Fingerprint: 99,
		AtMS: 1_700_000_000_123, ExpiresMS: 1_700_003_600_123, Seq: 3, SeqAtMS: 1_700_000_001_000,
		Charges: 2, Keys: []uint64{7, math.MaxUint64},
		Takes: []schema.LeaseTake{
			{Subject: child, Limit: "rpm", Parts: []schema.LeasePart{{Units: 1}}},
			{
				Subject: child, Limit: "tpm", Parts: []schema.LeasePart{{Charge: 0, Units: 5}, {Charge: 1, Units: 1 << 50}},
				Pieces: []schema.LeasePiece{{Shard: 3, Milli: 1500}, {Shard: 0, Milli: -7}},
			},
			{
				Subject: parent, Limit: "tpm", Parts: []schema.LeasePart{{Charge: 1, Units: 5}},
				Brought: &weir.Limit{
					Name: "tpm", Kind: weir.Bucket, Capacity: 100, RefillAmount: 10, RefillPeriod: time.Minute,
				},
			},
		},
	}
}

func recordOf(id weir.LeaseID, slot types.AttributeValue) schema.Item {
	key, n := schema.LeaseRecordKey("default", id)
	item := key.Item()
	item[schema.LeaseAttribute(n)] = slot
	return item
}

func TestLease(t *testing.T) {
	t.Parallel()
	for name, lease := range map[string]*schema.Lease{
		"live":    liveLease(),
		"nothing": {Version: 1, State: schema.LeaseLive, AtMS: leaseID.UnixMilli(), ExpiresMS: leaseID.UnixMilli(), Charges: 1},
		"ended":   {Version: 2, State: schema.LeaseCompleted, EndedMS: 1_700_000_000_500, EndFingerprint: 1},
		"voided":  {Version: 3, State: schema.LeaseVoided, EndedMS: 1_600_000_000_000},
	} {
		got, err := schema.ParseLease(recordOf(leaseID, lease.Encode(leaseID)), leaseID)
		if err != nil || !reflect.DeepEqual(got, lease) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, lease)
		}
	}
	if got, err := schema.ParseLease(schema.Item{}, leaseID); got != nil || err != nil {
		t.Errorf("no slot: got %v, %v", got, err)
	}
}

// TestLeaseRecordKey compares the keys of eight IDs in a row.
func TestLeaseRecordKey(t *testing.T) {
	t.Parallel()
	id := leaseID
	first, slot := schema.LeaseRecordKey("ns", id)
	if slot != 5 || !strings.HasPrefix(first.PK, "ns/LEASES#") || strings.Contains(first.PK, first.SK) {
		t.Errorf("got %v, slot %d", first, slot)
	}
	for n := range byte(8) {
		id[15] = leaseID[15]&^7 | n
		if key, slot := schema.LeaseRecordKey("ns", id); key != first || slot != int(n) {
			t.Errorf("%v: got %v, slot %d, want %v, slot %d", id, key, slot, first, n)
		}
	}
	id[15] = leaseID[15] + 8
	if key, _ := schema.LeaseRecordKey("ns", id); key == first {
		t.Errorf("the next row has the same record %v", key)
	}
	pk := schema.LeasesPK("ns", schema.LeaseSlice(leaseID), leaseID.String()[10:11])
	if pk != first.PK || strings.IndexByte(schema.LeasePartitions, leaseID.String()[10]) < 0 {
		t.Errorf("got the partition %q, want %q", first.PK, pk)
	}
}

// TestLeaseFits checks that eight new leases with long names fit a write unit.
func TestLeaseFits(t *testing.T) {
	t.Parallel()
	of := weir.Subject{Entity: "tenant-3f9c2a51-77b0-4d0e-9b1e-5f1c9d0a", Resource: "anthropic/claude-sonnet-4-5"}
	size := len("PK") + len("SK") + len(schema.AttrTTL) + 8
	key, _ := schema.LeaseRecordKey("default", leaseID)
	size += len(key.PK) + len(key.SK)
	for range schema.LeaseSlots {
		l := liveLease()
		l.Prev, l.Keys, l.Takes = 0, nil, []schema.LeaseTake{
			{Subject: of, Limit: "rpm", Parts: []schema.LeasePart{{Units: 1}}},
			{Subject: of, Limit: "tpm", Parts: []schema.LeasePart{{Units: 100_000}}},
		}
		size += len("l0") + len(l.Encode(leaseID).(*types.AttributeValueMemberB).Value)
	}
	if size > 1024 {
		t.Errorf("eight leases take %d bytes, more than a write unit", size)
	}
}

// TestLeaseAltered changes each bit of a slot in turn, and shortens and extends it.
func TestLeaseAltered(t *testing.T) {
	t.Parallel()
	slot := liveLease().Encode(leaseID).(*types.AttributeValueMemberB).Value
	fails := func(what string, id weir.LeaseID, b []byte) {
		t.Helper()
		l, err := schema.ParseLease(recordOf(id, &types.AttributeValueMemberB{Value: b}), id)
		if _, ok := errors.AsType[*schema.MalformedError](err); !ok {
			t.Errorf("%s: got %v, %v, want a malformed error", what, l, err)
		}
	}
	for bit := range len(slot) * 8 {
		b := bytes.Clone(slot)
		b[bit/8] ^= 1 << (bit % 8)
		fails("a changed bit", leaseID, b)
	}
	for n := range slot {
		fails("shortened", leaseID, slot[:n])
	}
	fails("extended", leaseID, append(bytes.Clone(slot), 0))
	other := leaseID
	other[0]++
	fails("of another lease", other, slot)
	_, err := schema.ParseLease(recordOf(leaseID, schema.String("x")), leaseID)
	if err == nil || !strings.Contains(err.Error(), "binary") {
		t.Errorf("a string: got %v", err)
	}
	newer := bytes.Clone(slot)
	newer[8] = 2
	_, err = schema.ParseLease(recordOf(leaseID, &types.AttributeValueMemberB{Value: newer}), leaseID)
	if err == nil || !strings.Contains(err.Error(), "newer weir") {
		t.Errorf("a newer format: got %v", err)
	}
}

func FuzzLease(f *testing.F) {
	f.Add(liveLease().Encode(leaseID).(*types.AttributeValueMemberB).Value)
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := schema.ParseLease(recordOf(leaseID, &types.AttributeValueMemberB{Value: b}), leaseID)
		if err != nil {
			return
		}
		again, err := schema.ParseLease(recordOf(leaseID, l.Encode(leaseID)), leaseID)
		if err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("got %+v, %v, want %+v", again, err, l)
		}
	})
}

// TestLeaseRandom encodes random leases.
func TestLeaseRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	text := func() string { return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(300)) }
	for range 2000 {
		l := &schema.Lease{
			Version: r.Uint64(), State: schema.LeaseLive, Fingerprint: r.Uint64(), Charges: r.IntN(17),
			AtMS: leaseID.UnixMilli() + r.Int64N(1000) - 500,
		}
		l.ExpiresMS = l.AtMS + r.Int64N(1<<40)
		for range r.IntN(20) {
			take := schema.LeaseTake{Subject: weir.Subject{Entity: text(), Resource: text()}, Limit: text()}
			for range 1 + r.IntN(3) {
				take.Parts = append(take.Parts, schema.LeasePart{Charge: r.IntN(16), Units: r.Int64()})
			}
			for range r.IntN(3) {
				take.Pieces = append(take.Pieces, schema.LeasePiece{Shard: r.IntN(32), Milli: -r.Int64()})
			}
			l.Takes = append(l.Takes, take)
		}
		got, err := schema.ParseLease(recordOf(leaseID, l.Encode(leaseID)), leaseID)
		if err != nil || !reflect.DeepEqual(got, l) {
			t.Fatalf("got %+v, %v, want %+v", got, err, l)
		}
	}
}
