package weir

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"
)

// LeaseID names one live reservation: a ULID, 48 bits of milliseconds and 80 random bits.
// The zero LeaseID means "make one".
type LeaseID [16]byte

const ulidLen = 26

// crockford is the ULID alphabet: no I, L, O or U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewLeaseID makes a lease ID for an attempt at now. The random part comes from the runtime's
// ChaCha8 generator, so IDs cannot be guessed from one another.
func NewLeaseID(now time.Time) LeaseID {
	var random [10]byte
	binary.BigEndian.PutUint64(random[:], rand.Uint64())
	binary.BigEndian.PutUint16(random[8:], uint16(rand.Uint32()))
	return MakeLeaseID(now.UnixMilli(), random)
}

// MakeLeaseID makes the lease ID of an instant in Unix milliseconds, with the random part given.
func MakeLeaseID(ms int64, random [10]byte) LeaseID {
	var id LeaseID
	binary.BigEndian.PutUint64(id[:], uint64(ms)<<16)
	copy(id[6:], random[:])
	return id
}

// ParseLeaseID reads a ULID of 26 characters, upper or lower case. A string that is none is an
// [*Error] with code [Invalid].
func ParseLeaseID(s string) (LeaseID, error) {
	var id LeaseID
	if len(s) != ulidLen {
		return id, notULID(s, "must be a ULID of 26 characters")
	}
	// 26 characters carry 130 bits; the first may use only three of its five.
	var acc uint16
	bits := -2
	n := 0
	for i := range ulidLen {
		v := crockfordValues[s[i]]
		if v == 0 || i == 0 && v > 8 {
			return LeaseID{}, notULID(s, "is no ULID")
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

// notULID keeps a copy of the string, so that one which is made for [ParseLeaseID] alone need not
// be allocated.
func notULID(s, reason string) error { return invalid("lease_id", strings.Clone(s), reason) }

// crockfordValues has 1 + the value of each character of the alphabet, upper or lower case.
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

// String returns the ULID's 26 characters.
func (id LeaseID) String() string {
	text := id.ulid()
	return string(text[:])
}

// AppendText appends the ULID's 26 characters. The error is always nil.
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

// Time returns the instant that the ID carries.
func (id LeaseID) Time() time.Time { return time.UnixMilli(id.UnixMilli()) }

// IsZero reports whether the ID is unset.
func (id LeaseID) IsZero() bool { return id == LeaseID{} }

// UnixMilli returns the instant that the ID carries, in milliseconds since 1970.
func (id LeaseID) UnixMilli() int64 {
	return int64(binary.BigEndian.Uint64(id[:8]) >> 16)
}

// MarshalText returns the ULID's 26 characters.
func (id LeaseID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads what [ParseLeaseID] reads.
func (id *LeaseID) UnmarshalText(text []byte) error {
	parsed, err := ParseLeaseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
