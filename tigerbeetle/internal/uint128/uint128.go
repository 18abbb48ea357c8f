//go:build cgo

package uint128

import (
	"encoding/binary"
	"math/bits"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// Number is an unsigned number of 128 bits.
type Number struct{ Hi, Lo uint64 }

// Of converts a number of TigerBeetle.
func Of(n tb.Uint128) Number {
	lo, hi := n.Uint64()
	return Number{hi, lo}
}

// Uint128 converts the number to TigerBeetle's type.
func (n Number) Uint128() tb.Uint128 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], n.Lo)
	binary.LittleEndian.PutUint64(b[8:], n.Hi)
	return tb.BytesToUint128(b)
}

// Plus returns the low 128 bits of the sum.
func (n Number) Plus(o Number) Number {
	lo, carry := bits.Add64(n.Lo, o.Lo, 0)
	hi, _ := bits.Add64(n.Hi, o.Hi, carry)
	return Number{hi, lo}
}

// Overflows reports whether the sum does not fit 128 bits.
func (n Number) Overflows(o Number) bool {
	_, carry := bits.Add64(n.Lo, o.Lo, 0)
	_, carry = bits.Add64(n.Hi, o.Hi, carry)
	return carry > 0
}

// Minus returns the difference, or 0 if it would be negative.
func (n Number) Minus(o Number) Number {
	if o.GreaterThan(n) {
		return Number{}
	}
	lo, borrow := bits.Sub64(n.Lo, o.Lo, 0)
	hi, _ := bits.Sub64(n.Hi, o.Hi, borrow)
	return Number{hi, lo}
}

// GreaterThan reports whether n is greater than o.
func (n Number) GreaterThan(o Number) bool { return n.Hi > o.Hi || n.Hi == o.Hi && n.Lo > o.Lo }

// Min returns the lesser of the two numbers.
func (n Number) Min(o Number) Number {
	if o.GreaterThan(n) {
		return n
	}
	return o
}
