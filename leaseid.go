package weir

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"
)

// LeaseID identifies a reservation. It is a ULID: 48 bits of milliseconds and 80 random bits. In a
// [Request] the zero LeaseID means that the limiter makes one.
type LeaseID [16]byte

const ulidLen = 26

// crockford is the ULID alphabet: no I, L, O or U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewLeaseID returns a new lease ID for an attempt at now. The random bits come from the runtime's
// ChaCha8 generator, so that IDs cannot be guessed from other IDs. The limiter makes the IDs of one
// caller in rows of eight that differ in their last three bits, if the store records the leases of
// a row together (docs/adr/0036-leases-in-the-table.md).
func NewLeaseID(now time.Time) LeaseID {
	var random [10]byte
	binary.BigEndian.PutUint64(random[:], rand.Uint64())
	binary.BigEndian.PutUint16(random[8:], uint16(rand.Uint32()))
	return MakeLeaseID(now.UnixMilli(), random)
}

// MakeLeaseID returns the lease ID with the given instant, in Unix milliseconds, and random bits.
func MakeLeaseID(ms int64, random [10]byte) LeaseID {
	var id LeaseID
	binary.BigEndian.PutUint64(id[:], uint64(ms)<<16)
	copy(id[6:], random[:])
	return id
}

// ParseLeaseID parses a ULID of 26 characters in upper or lower case. For any other string it
// returns an [*Error] with code [Invalid].
func ParseLeaseID(s string) (LeaseID, error) {
	var id LeaseID
	if len(s) != ulidLen {
		return id, notULID(s, "must be a ULID of 26 characters")
	}
	// 26 characters carry 130 bits; of the first character's five bits only three are used.
	var acc uint16
	bits := -2
	n := 0
	for i := range ulidLen {
		v := crockfordValues[s[i]]
		if v == 0 || i == 0 && v > 8 {
			return LeaseID{}, notULID(s, "is not a ULID")
		}
		acc = acc<<5 | uint16(v-1)
		if bits += 5; bits >= 8 {
			bits -= 8
			id[n] = byte(acc >> bits)
			n++
		}
	}
	return id, nil
}

// notULID returns the error for a string. It copies the string, so that the compiler does not move
// a string that a caller converts for [ParseLeaseID] to the heap.
func notULID(s, reason string) error { return invalid("lease_id", strings.Clone(s), reason) }

// crockfordValues has 1 + the value of each character of the alphabet, in upper and lower case, and
// 0 for all other characters.
var crockfordValues = func() (values [256]uint8) {
	for i := range len(crockford) {
		c := crockford[i]
		values[c] = uint8(i) + 1
		if 'A' <= c && c <= 'Z' {
			values[c+'a'-'A'] = uint8(i) + 1
		}
	}
	return values
}()

// String returns the 26 characters of the ULID.
func (id LeaseID) String() string {
	text := id.ulid()
	return string(text[:])
}

// AppendText appends the 26 characters of the ULID. The error is always nil.
func (id LeaseID) AppendText(b []byte) ([]byte, error) {
	text := id.ulid()
	return append(b, text[:]...), nil
}

func (id LeaseID) ulid() (out [ulidLen]byte) {
	var acc uint16
	bits := 2 // the two leading zero bits of 130
	n := 0
	for _, b := range id {
		acc = acc<<8 | uint16(b)
		for bits += 8; bits >= 5; n++ {
			bits -= 5
			out[n] = crockford[acc>>bits&31]
		}
	}
	return out
}

// Time returns the instant in the ID.
func (id LeaseID) Time() time.Time { return time.UnixMilli(id.UnixMilli()) }

// IsZero reports whether the ID is zero.
func (id LeaseID) IsZero() bool { return id == LeaseID{} }

// UnixMilli returns the instant in the ID, in Unix milliseconds.
func (id LeaseID) UnixMilli() int64 {
	return int64(binary.BigEndian.Uint64(id[:8]) >> 16)
}

// MarshalText implements [encoding.TextMarshaler]. It returns the 26 characters of the ULID.
func (id LeaseID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText implements [encoding.TextUnmarshaler]. It parses the text as [ParseLeaseID] does.
func (id *LeaseID) UnmarshalText(text []byte) error {
	parsed, err := ParseLeaseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
