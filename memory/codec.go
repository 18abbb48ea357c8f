package memory

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/weir-limiter/weir"
)

// codec writes the body of a snapshot, or reads one: the same functions describe both, so that they
// cannot differ.
//
// A body is a list of values without names. Counts are uvarints, other numbers varints. A string or
// a limit that recurs is written in full once, after a 0, and from then on as its number.
//
// After the first mistake nothing more is read or written. A count is never larger than what is
// left of the data could hold, so no data makes a reader allocate out of proportion.
type codec struct {
	reading bool
	// data is what has been written, or what is left to be read.
	data   []byte
	failed bool

	names  []string
	limits []*weir.Limit
	// numbers and known find names and limits again, for writing; met saves comparing limits by
	// what they say, since most are shared.
	numbers map[string]uint64
	known   map[weir.Limit]uint64
	met     map[*weir.Limit]uint64
}

// errMalformed is all that is said of a body that no codec wrote: the checksum has already told
// accidents apart.
var errMalformed = errors.New("is malformed")

func newReader(body []byte) *codec { return &codec{reading: true, data: body} }

func newWriter(buffer []byte) *codec {
	return &codec{
		data: buffer, numbers: make(map[string]uint64), known: make(map[weir.Limit]uint64),
		met: make(map[*weir.Limit]uint64),
	}
}

// check notes a mistake, and reports whether there is none so far.
func (c *codec) check(ok bool) bool {
	c.failed = c.failed || !ok
	if c.failed {
		c.data = nil
	}
	return !c.failed
}

// grow makes room for n bytes more.
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

// natural is a number from 0 to most.
func (c *codec) natural(v *int64, most int64) {
	c.varint(v)
	c.check(*v >= 0 && *v <= most)
}

// positive is a number above zero.
func (c *codec) positive(v *int64) {
	c.varint(v)
	c.check(*v > 0)
}

// bytes are as many as there are.
func (c *codec) bytes(b []byte) {
	if !c.reading {
		c.data = append(c.data, b...)
	} else if c.check(len(c.data) >= len(b)) {
		c.data = c.data[copy(b, c.data):]
	}
}

// enum is a number below n that takes a byte.
func (c *codec) enum(v, n int) int {
	b := [1]byte{byte(v)}
	c.bytes(b[:])
	if !c.check(int(b[0]) < n) {
		return 0
	}
	return int(b[0])
}

// flags are up to eight truths in one byte.
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

// count is how many elements follow, each of at least size bytes.
func (c *codec) count(n, size int) int {
	v := uint64(n)
	c.uvarint(&v)
	if c.reading && !c.check(v <= uint64(len(c.data)/size)) {
		return 0
	}
	return int(v)
}

// list is a slice whose elements follow, each of at least size bytes.
func list[T any](c *codec, s *[]T, size int) []T {
	n := c.count(len(*s), size)
	if c.reading {
		*s = make([]T, n)
	}
	return *s
}

// text is a string that is not expected to recur.
func (c *codec) text(s *string) {
	n := c.count(len(*s), 1)
	if !c.reading {
		c.data = append(c.data, *s...)
		return
	}
	*s, c.data = string(c.data[:n]), c.data[n:]
}

// name is a string that recurs.
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

// oneOf is one of few values, as its place among them. A value that is written is not changed: it
// may be shared.
func oneOf[T comparable](c *codec, v *T, of []T) {
	i := slices.Index(of, *v)
	if c.reading {
		*v = of[c.enum(0, len(of))]
	} else if c.check(i >= 0) {
		c.enum(i, len(of))
	}
}

// limit is a definition, which must be sound and have its defaults filled in.
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

// plainLimit copies what a limit says, without what normalizing has attached.
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

// sum is a+b, where b is not below zero and the sum must fit.
func (c *codec) sum(a, b int64) int64 {
	if !c.check(b >= 0 && a <= math.MaxInt64-b) {
		return 0
	}
	return a + b
}
