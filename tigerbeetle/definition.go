//go:build cgo

package tigerbeetle

import (
	"encoding/binary"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

func rateOf(l *weir.Limit) kernel.Rate { return l.Definition().Rate() }

// anchor is until when a bucket has been filled, and by which definition it fills from then on.
type anchor struct {
	// b is in Unix milliseconds; k counts the anchors of one millisecond, up to 63.
	b int64
	k uint8
	// version is that of the definitions which it was made under, less the bits above 24.
	version uint32
	rate    kernel.Rate
}

// The widths of what an anchor carries: capacity and refill amount fill user_data_128 but for 20 bits,
// which have the lowest of the period. The next 20 are above b in user_data_64, and the last two between
// version and k in user_data_32.
const (
	timeBits   = 44
	amountBits = 54
	pieceBits  = 20
	countBits  = 6

	amountMask = 1<<amountBits - 1
	pieceMask  = 1<<pieceBits - 1
	countMask  = 1<<countBits - 1
	// versionMask is what an anchor keeps of a version.
	versionMask = 1<<24 - 1
)

// write puts the anchor on the transfer that makes it.
func (a *anchor) write(t *tb.Transfer) {
	capacity, amount := uint64(a.rate.CapacityMilli/1000), uint64(a.rate.RefillMilli/1000)
	period := uint64(a.rate.PeriodMS)
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], capacity|amount<<amountBits)
	binary.LittleEndian.PutUint64(b[8:], amount>>(64-amountBits)|period&pieceMask<<(2*amountBits-64))
	t.UserData128 = tb.BytesToUint128(b)
	t.UserData64 = uint64(a.b) | period>>pieceBits&pieceMask<<timeBits
	t.UserData32 = a.version&versionMask<<8 | uint32(period>>(2*pieceBits))<<countBits | uint32(a.k)
}

// readAnchor is the anchor that a transfer made.
func readAnchor(t *tb.Transfer) anchor {
	lo, hi := t.UserData128.Uint64()
	return anchor{
		b: int64(t.UserData64 & (1<<timeBits - 1)), k: uint8(t.UserData32 & countMask),
		version: t.UserData32 >> 8,
		rate: kernel.Rate{
			CapacityMilli: int64(lo&amountMask) * 1000,
			RefillMilli:   int64((lo>>amountBits|hi<<(64-amountBits))&amountMask) * 1000,
			PeriodMS: int64(hi>>(2*amountBits-64)&pieceMask | t.UserData64>>timeBits<<pieceBits |
				uint64(t.UserData32>>countBits&3)<<(2*pieceBits)),
		},
	}
}
