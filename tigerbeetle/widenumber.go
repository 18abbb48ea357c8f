//go:build cgo

package tigerbeetle

import (
	"encoding/binary"
	"math/bits"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// wideNumber is an unsigned number of 128 bits.
type wideNumber struct{ hi, lo uint64 }

func number128(n tb.Uint128) wideNumber {
	lo, hi := n.Uint64()
	return wideNumber{hi, lo}
}

// id is the number as TigerBeetle has it.
func (n wideNumber) id() tb.Uint128 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], n.lo)
	binary.LittleEndian.PutUint64(b[8:], n.hi)
	return tb.BytesToUint128(b)
}

func (n wideNumber) plus(o wideNumber) wideNumber {
	lo, carry := bits.Add64(n.lo, o.lo, 0)
	hi, _ := bits.Add64(n.hi, o.hi, carry)
	return wideNumber{hi, lo}
}

// overflows is true where a sum has more than 128 bits.
func (n wideNumber) overflows(o wideNumber) bool {
	_, carry := bits.Add64(n.lo, o.lo, 0)
	_, carry = bits.Add64(n.hi, o.hi, carry)
	return carry > 0
}

// minus is the difference, or 0 where it would be below.
func (n wideNumber) minus(o wideNumber) wideNumber {
	if o.greaterThan(n) {
		return wideNumber{}
	}
	lo, borrow := bits.Sub64(n.lo, o.lo, 0)
	hi, _ := bits.Sub64(n.hi, o.hi, borrow)
	return wideNumber{hi, lo}
}

func (n wideNumber) greaterThan(o wideNumber) bool { return n.hi > o.hi || n.hi == o.hi && n.lo > o.lo }

func (n wideNumber) min128(o wideNumber) wideNumber {
	if o.greaterThan(n) {
		return n
	}
	return o
}
