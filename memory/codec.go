package memory

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/weir-limiter/weir"
)

// codec encodes the body of a snapshot or decodes one. The same methods do both, so that reading
// and writing cannot differ: each takes a pointer, which it reads when encoding and sets when
// decoding.
//
// A body is a sequence of values without names. Counts are uvarints, other numbers are varints. A
// string or a limit that may recur is written in full the first time, after a 0, and after that as
// its number, from 1.
//
// After the first mistake nothing more is read or written. A count is refused if the rest of the
// data is too short for that number of elements, so that a hostile file cannot make a reader
// allocate much more than its own size.
type codec struct {
	reading bool
	// version is the version of the format that is read.
	version uint32
	// data has the bytes written so far, or those left to read.
	data   []byte
	failed bool

	names  []string
	limits []*weir.Limit
	// numbers and known have the numbers of names and limits that were written. met has the same
	// for limits by their address, which is faster to compare, because most limits are shared.
	numbers map[string]uint64
	known   map[weir.Limit]uint64
	met     map[*weir.Limit]uint64
}

// errMalformed is the error for a body that no codec has written. It gives no details: the checksum
// has ruled out accidents.
var errMalformed = errors.New("is malformed")

func newReader(body []byte, version uint32) *codec {
	return &codec{reading: true, version: version, data: body}
}

func newWriter(buffer []byte) *codec {
	return &codec{
		data: buffer, numbers: make(map[string]uint64), known: make(map[weir.Limit]uint64),
		met: make(map[*weir.Limit]uint64),
	}
}

// check records a mistake unless ok, and reports whether there has been none so far.
func (c *codec) check(ok bool) bool {
	c.failed = c.failed || !ok
	if c.failed {
		c.data = nil
	}
	return !c.failed
}

// grow makes room for n more bytes.
func (c *codec) grow(n int) { c.data = slices.Grow(c.data, n) }

func (c *codec) uvarint(v *uint64) {
	if !c.reading {
		c.data = binary.AppendUvarint(c.data, *v)
		return
	}
	got, n := binary.Uvarint(c.data)
	if *v = 0; c.check(n > 0) {
		*v, c.data = got, c.data[n:]
	}
}

func (c *codec) varint(v *int64) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, *v)
		return
	}
	got, n := binary.Varint(c.data)
	if *v = 0; c.check(n > 0) {
		*v, c.data = got, c.data[n:]
	}
}

// natural encodes a number from 0 to most.
func (c *codec) natural(v *int64, most int64) {
	c.varint(v)
	c.check(*v >= 0 && *v <= most)
}

// positive encodes a number above zero.
func (c *codec) positive(v *int64) {
	c.varint(v)
	c.check(*v > 0)
}

// bytes encodes a fixed number of bytes.
func (c *codec) bytes(b []byte) {
	if !c.reading {
		c.data = append(c.data, b...)
	} else if c.check(len(c.data) >= len(b)) {
		c.data = c.data[copy(b, c.data):]
	}
}

// enum encodes a number below n in one byte, and returns it.
func (c *codec) enum(v, n int) int {
	b := [1]byte{byte(v)}
	c.bytes(b[:])
	if !c.check(int(b[0]) < n) {
		return 0
	}
	return int(b[0])
}

// flags encodes up to eight bools in one byte.
func (c *codec) flags(flags ...*bool) {
	b := 0
	for i, set := range flags {
		if *set {
			b |= 1 << i
		}
	}
	b = c.enum(b, 1<<len(flags))
	if c.reading {
		for i := range flags {
			*flags[i] = b&(1<<i) != 0
		}
	}
}

// count encodes the number of elements that follow, each at least size bytes long, and returns it.
func (c *codec) count(n, size int) int {
	v := uint64(n)
	c.uvarint(&v)
	if c.reading && !c.check(v <= uint64(len(c.data)/size)) {
		return 0
	}
	return int(v)
}

// list encodes the length of a slice whose elements the caller encodes next, each at least size
// bytes long, and returns the slice.
func list[T any](c *codec, s *[]T, size int) []T {
	n := c.count(len(*s), size)
	if c.reading {
		*s = make([]T, n)
	}
	return *s
}

// text encodes a string that is not expected to recur.
func (c *codec) text(s *string) {
	n := c.count(len(*s), 1)
	if !c.reading {
		c.data = append(c.data, *s...)
		return
	}
	*s, c.data = string(c.data[:n]), c.data[n:]
}

// name encodes a string that may recur.
func (c *codec) name(s *string) {
	n := c.numbers[*s]
	c.uvarint(&n)
	switch {
	case n == 0:
		c.text(s)
		if !c.reading {
			c.numbers[*s] = uint64(len(c.numbers) + 1)
		} else {
			c.names = append(c.names, *s)
		}
	case c.reading && c.check(n <= uint64(len(c.names))):
		*s = c.names[n-1]
	}
}

var kinds = [...]weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget}

func (c *codec) kind(k *weir.Kind) { oneOf(c, k, kinds[:]) }

// oneOf encodes one of a few values by its index among them. It does not assign to a value that is
// written, which may be shared with other goroutines.
func oneOf[T comparable](c *codec, v *T, of []T) {
	i := slices.Index(of, *v)
	if c.reading {
		*v = of[c.enum(0, len(of))]
	} else if c.check(i >= 0) {
		c.enum(i, len(of))
	}
}

// limit encodes a definition. One that is read must be valid and normalized.
func (c *codec) limit(l **weir.Limit) {
	if !c.reading {
		c.writeLimit(*l)
		return
	}
	var n uint64
	c.uvarint(&n)
	*l = &weir.Limit{}
	switch {
	case n == 0:
		c.newLimit(*l)
		normal, err := (*l).Normalize()
		c.check(!c.failed && err == nil && normal.Same(**l))
		c.limits = append(c.limits, *l)
	case c.check(n <= uint64(len(c.limits))):
		*l = c.limits[n-1]
	}
}

func (c *codec) writeLimit(l *weir.Limit) {
	n, ok := c.met[l]
	if !ok {
		plain := plainLimit(l)
		if n, ok = c.known[plain]; !ok {
			c.known[plain] = uint64(len(c.known) + 1)
			c.met[l] = c.known[plain]
			c.uvarint(&n)
			c.newLimit(&plain)
			return
		}
		c.met[l] = n
	}
	c.uvarint(&n)
}

// plainLimit returns a copy of a limit without its private fields, as a key for known.
func plainLimit(l *weir.Limit) weir.Limit {
	return weir.Limit{
		Name: l.Name, Kind: l.Kind, Capacity: l.Capacity, RefillAmount: l.RefillAmount,
		RefillPeriod: l.RefillPeriod, Window: l.Window, Timeout: l.Timeout,
		Every: l.Every, Zone: l.Zone, Shadow: l.Shadow,
	}
}

func (c *codec) newLimit(l *weir.Limit) {
	c.name(&l.Name)
	c.kind(&l.Kind)
	c.varint(&l.Capacity)
	c.varint(&l.RefillAmount)
	c.varint((*int64)(&l.RefillPeriod))
	c.varint((*int64)(&l.Window))
	c.varint((*int64)(&l.Timeout))
	c.name(&l.Every)
	c.name(&l.Zone)
	c.flags(&l.Shadow)
}

// sum returns a+b. A negative b and a sum that overflows are mistakes.
func (c *codec) sum(a, b int64) int64 {
	if !c.check(b >= 0 && a <= math.MaxInt64-b) {
		return 0
	}
	return a + b
}
