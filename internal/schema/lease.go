package schema

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
)

// A lease record is an item with the leases whose IDs differ in their last three bits only, one in
// each slot (docs/adr/0036-leases-in-the-table.md). The Python library does not know these items.

// LeaseSlots is the number of slots of a lease record.
const LeaseSlots = 8

const (
	// leaseSliceLen is the length of the part of an ID, as text, that names a slice of time: 23
	// bits of the milliseconds, which are 9.3 hours.
	leaseSliceLen = 5
	// leaseTimeLen is the length of the part of an ID that holds the milliseconds. The character
	// after it is random, and is the partition within the slice.
	leaseTimeLen = 10
)

// LeasePartitions are the partitions of the lease records of a slice: a partition bears a thousand
// writes a second.
const LeasePartitions = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// LeaseRecordKey returns the key of the record that has a lease, and the lease's slot.
func LeaseRecordKey(ns string, id weir.LeaseID) (key Key, slot int) {
	last := len(id) - 1
	slot = int(id[last] % LeaseSlots)
	id[last] -= byte(slot)
	text := id.String()
	return Key{LeasesPK(ns, text[:leaseSliceLen], text[leaseTimeLen:leaseTimeLen+1]), text}, slot
}

// LeasesPK is a partition of the lease records of a slice of time.
func LeasesPK(ns, slice, partition string) string {
	return ns + "/" + leasesPrefix + slice + "#" + partition
}

// LeaseSlice returns the slice of time to which the record of a lease belongs.
func LeaseSlice(id weir.LeaseID) string { return id.String()[:leaseSliceLen] }

// LeaseSliceAt returns the slice of time to which an instant belongs. Later slices have greater
// names.
func LeaseSliceAt(at time.Time) string {
	return LeaseSlice(weir.MakeLeaseID(at.UnixMilli(), [10]byte{}))
}

// LeaseSliceStart returns the first instant of a slice; the zero time for a name that no slice has.
func LeaseSliceStart(slice string) time.Time {
	id, err := weir.ParseLeaseID(slice + strings.Repeat("0", len(weir.LeaseID{}.String())-len(slice)))
	if err != nil {
		return time.Time{}
	}
	return id.Time()
}

// LeaseSlicesKey is the key of the registry of the slices that have lease records.
func LeaseSlicesKey(ns string) Key { return Key{SystemPK(ns), SKLeases} }

// LeaseAttribute returns the attribute that holds a slot.
func LeaseAttribute(slot int) string { return "l" + strconv.Itoa(slot) }

// LeaseSlices is the registry of the slices that have lease records.
type LeaseSlices struct{ Names []string } // in order

// ParseLeaseSlices decodes the registry, or returns a [*MalformedError].
func ParseLeaseSlices(item Item) (*LeaseSlices, error) {
	r := newReader(item)
	r.systemItem(SKLeases)
	s := &LeaseSlices{optional(r, AttrSlices, textSet)}
	return s, r.err
}

// LeaseState is the state of a lease in a slot.
type LeaseState byte

// The states. Their values are part of the format.
const (
	LeaseLive      LeaseState = 1
	LeaseCompleted LeaseState = 2
	LeaseCancelled LeaseState = 3
	LeaseVoided    LeaseState = 4 // cancelled before it was reserved
)

// Lease is a lease as a slot holds it.
type Lease struct {
	// Version is random and another one after each write, so that a condition on it recognises any
	// write in between. It is never 0.
	Version uint64
	// Prev is the last half of the version that this one has replaced; 0 if the slot was empty.
	Prev  uint32
	State LeaseState
	// Fingerprint is the request's.
	Fingerprint     uint64
	AtMS, ExpiresMS int64
	// Seq is the sequence number of the last adjust, at SeqAtMS.
	Seq, SeqAtMS int64
	Charges      int
	Keys         []uint64 // of the charges; nil if the request was not keyed
	Takes        []LeaseTake
	// EndedMS is when the lease ended. EndFingerprint is of the totals that ended it.
	EndedMS        int64
	EndFingerprint uint64
}

// LeaseTake is what a lease stands for on one limit.
type LeaseTake struct {
	weir.Subject
	Limit string
	// Brought is the definition of a limit that the request brought; nil for a configured one.
	Brought *weir.Limit
	Parts   []LeasePart
	Pieces  []LeasePiece // on the shards; nil if all of it is on the first one
}

// LeasePart is the units of one charge.
type LeasePart struct {
	Charge int
	Units  int64
}

// LeasePiece is the milli-units on one shard.
type LeasePiece struct {
	Shard int
	Milli int64
}

// leaseFormat is the version of the encoding. A slot of a higher one cannot be read.
const leaseFormat = 1

// The flags of an encoded take.
const (
	takeSameResource = 1 << iota // the resource is that of the take before
	takeSameEntity
	takeBrought
	takeManyParts
	takePieces
)

const versionLen = 8

// leaseReplaces is added to the state of a slot that names the version it replaced. A slot that was
// empty before does not name one, so that eight new leases fit in a kilobyte.
const leaseReplaces = 0x80

// LeaseVersion encodes a version: the first bytes of a slot.
func LeaseVersion(version uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, version)
}

// Encode returns the slot of the lease with an ID. A checksum with the ID is at its end.
func (l *Lease) Encode(id weir.LeaseID) types.AttributeValue {
	b := append(make([]byte, 0, 96), LeaseVersion(l.Version)...)
	if l.Prev == 0 {
		b = append(b, leaseFormat, byte(l.State))
	} else {
		b = append(b, leaseFormat, byte(l.State)|leaseReplaces)
		b = binary.BigEndian.AppendUint32(b, l.Prev)
	}
	if l.State == LeaseLive {
		b = l.appendLive(b, id)
	} else {
		b = binary.AppendVarint(b, l.EndedMS-id.UnixMilli())
		b = binary.BigEndian.AppendUint64(b, l.EndFingerprint)
	}
	b = binary.BigEndian.AppendUint32(b, leaseChecksum(id, b))
	return &types.AttributeValueMemberB{Value: b}
}

// leaseChecksum returns the checksum of an encoded slot.
func leaseChecksum(id weir.LeaseID, b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(id[:], table), table, b)
}

func (l *Lease) appendLive(b []byte, id weir.LeaseID) []byte {
	b = binary.BigEndian.AppendUint64(b, l.Fingerprint)
	b = binary.AppendVarint(b, l.AtMS-id.UnixMilli())
	b = binary.AppendVarint(b, l.ExpiresMS-l.AtMS)
	b = binary.AppendVarint(b, l.Seq)
	if l.Seq != 0 {
		b = binary.AppendVarint(b, l.SeqAtMS-l.AtMS)
	}
	b = binary.AppendUvarint(b, uint64(l.Charges))
	b = binary.AppendUvarint(b, uint64(len(l.Keys)))
	for _, k := range l.Keys {
		b = binary.BigEndian.AppendUint64(b, k)
	}
	var before weir.Subject
	for i := range l.Takes {
		b = l.Takes[i].append(b, before)
		before = l.Takes[i].Subject
	}
	return b
}

// append encodes a take after the take of the subject before.
func (t *LeaseTake) append(b []byte, before weir.Subject) []byte {
	var flags byte
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	set(takeSameEntity, t.Entity == before.Entity)
	set(takeSameResource, t.Resource == before.Resource)
	set(takeBrought, t.Brought != nil)
	set(takeManyParts, len(t.Parts) != 1 || t.Parts[0].Charge != 0)
	set(takePieces, t.Pieces != nil)
	b = append(b, flags)
	if t.Entity != before.Entity {
		b = appendText(b, t.Entity)
	}
	if t.Resource != before.Resource {
		b = appendText(b, t.Resource)
	}
	b = appendText(b, t.Limit)
	if d := t.Brought; d != nil {
		b = binary.AppendVarint(b, d.Capacity)
		b = binary.AppendVarint(b, d.RefillAmount)
		b = binary.AppendVarint(b, d.RefillPeriod.Milliseconds())
	}
	if flags&takeManyParts == 0 {
		b = binary.AppendVarint(b, t.Parts[0].Units)
	} else {
		b = binary.AppendUvarint(b, uint64(len(t.Parts)))
		for _, p := range t.Parts {
			b = binary.AppendUvarint(b, uint64(p.Charge))
			b = binary.AppendVarint(b, p.Units)
		}
	}
	if t.Pieces != nil {
		b = binary.AppendUvarint(b, uint64(len(t.Pieces)))
		for _, p := range t.Pieces {
			b = binary.AppendUvarint(b, uint64(p.Shard))
			b = binary.AppendVarint(b, p.Milli)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var (
	errLeaseShort    = errors.New("is too short")
	errLeaseNumber   = errors.New("has a number out of range")
	errLeaseChecksum = errors.New("does not match its checksum: another program has changed it")
)

// ParseLease decodes the slot of a lease in a record. It returns nil if the slot is empty, and a
// [*MalformedError] if it was altered or if a newer weir has written it.
func ParseLease(item Item, id weir.LeaseID) (*Lease, error) {
	name := LeaseAttribute(int(id[len(id)-1] % LeaseSlots))
	value, ok := item[name]
	if !ok {
		return nil, nil
	}
	l, err := decodeLease(value, id)
	if err != nil {
		key, _ := KeyOf(item)
		return nil, &MalformedError{Key: key, Attribute: name, Reason: err.Error()}
	}
	return l, nil
}

func decodeLease(value types.AttributeValue, id weir.LeaseID) (*Lease, error) {
	b, ok := value.(*types.AttributeValueMemberB)
	const sumLen, headLen = 4, versionLen + 2
	switch {
	case !ok:
		return nil, errors.New("is not binary")
	case len(b.Value) < headLen+sumLen:
		return nil, errLeaseShort
	case b.Value[versionLen] > leaseFormat:
		return nil, errors.New("has format " + strconv.Itoa(int(b.Value[versionLen])) +
			" of a newer weir: upgrade this one")
	}
	body, sum := b.Value[:len(b.Value)-sumLen], b.Value[len(b.Value)-sumLen:]
	if binary.BigEndian.Uint32(sum) != leaseChecksum(id, body) {
		return nil, errLeaseChecksum
	}
	state := body[versionLen+1]
	l := &Lease{
		Version: binary.BigEndian.Uint64(body), State: LeaseState(state &^ leaseReplaces),
	}
	r := &byteReader{b: body[headLen:]}
	if state&leaseReplaces != 0 {
		l.Prev = r.uint32()
	}
	switch l.State {
	case LeaseLive:
		l.readLive(r, id)
	case LeaseCompleted, LeaseCancelled, LeaseVoided:
		l.EndedMS = id.UnixMilli() + r.varint()
		l.EndFingerprint = r.uint64()
	default:
		return nil, errors.New("has an unknown state " + strconv.Itoa(int(l.State)))
	}
	if len(r.b) > 0 && r.err == nil {
		r.err = errors.New("is too long")
	}
	return l, r.err
}

func (l *Lease) readLive(r *byteReader, id weir.LeaseID) {
	l.Fingerprint = r.uint64()
	l.AtMS = id.UnixMilli() + r.varint()
	l.ExpiresMS = l.AtMS + r.varint()
	if l.Seq = r.varint(); l.Seq != 0 {
		l.SeqAtMS = l.AtMS + r.varint()
	}
	l.Charges = r.number(math.MaxUint16)
	for range r.count() {
		l.Keys = append(l.Keys, r.uint64())
	}
	var before weir.Subject
	for len(r.b) > 0 && r.err == nil {
		t := LeaseTake{Subject: before}
		t.read(r)
		l.Takes = append(l.Takes, t)
		before = t.Subject
	}
}

// read decodes a take. Its subject is that of the take before.
func (t *LeaseTake) read(r *byteReader) {
	flags := r.byte()
	if flags&takeSameEntity == 0 {
		t.Entity = r.text()
	}
	if flags&takeSameResource == 0 {
		t.Resource = r.text()
	}
	t.Limit = r.text()
	if flags&takeBrought != 0 {
		t.Brought = &weir.Limit{
			Name: t.Limit, Kind: weir.Bucket, Capacity: r.varint(), RefillAmount: r.varint(),
			RefillPeriod: time.Duration(r.varint()) * time.Millisecond,
		}
	}
	if flags&takeManyParts == 0 {
		t.Parts = []LeasePart{{Units: r.varint()}}
	} else {
		for range r.count() {
			t.Parts = append(t.Parts, LeasePart{r.number(math.MaxUint16), r.varint()})
		}
	}
	if flags&takePieces != 0 {
		for range r.count() {
			t.Pieces = append(t.Pieces, LeasePiece{r.number(maxShard), r.varint()})
		}
	}
}

// byteReader decodes bytes. After an error it returns zeros.
type byteReader struct {
	b   []byte
	err error
}

// bytes returns the next n bytes; nil if there are fewer.
func (r *byteReader) bytes(n int) []byte {
	if r.err != nil || n > len(r.b) {
		r.err, r.b = errLeaseShort, nil
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

func (r *byteReader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *byteReader) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *byteReader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *byteReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.err, r.b = errLeaseShort, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// number decodes a number from 0 to most.
func (r *byteReader) number(most uint64) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.err, r.b = errLeaseNumber, nil
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

// count decodes a number of things that follow, each of at least one byte.
func (r *byteReader) count() int { return r.number(uint64(min(len(r.b), math.MaxUint16))) }

func (r *byteReader) text() string { return string(r.bytes(r.count())) }
