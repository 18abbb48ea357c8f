package oracle

import (
	"cmp"
	"math/big"
	"slices"
)

// occupancy is a window or a concurrency limit: units that are occupied until some instant.
type occupancy struct {
	capacity int64
	length   int64    // ms, of the window or the hold
	pieces   []*piece // those that are not over, by their ends
	total    big.Int  // of those pieces
}

// piece is units that are occupied until just before end.
type piece struct{ amount, end int64 }

func (o *occupancy) available(at int64) *big.Int {
	left := new(big.Int).Sub(big.NewInt(o.capacity), &o.total)
	return left.Add(left, over(o.pieces, at))
}

// over adds the pieces that are over at a time, given by their ends. It adds in two halves, since
// the sum of many int64 need not be one.
func over(pieces []*piece, at int64) *big.Int {
	var high, low int64
	for _, one := range pieces {
		if one.end > at {
			break
		}
		high += one.amount >> 32
		low += one.amount & (1<<32 - 1)
	}
	sum := new(big.Int).Lsh(big.NewInt(high), 32)
	return sum.Add(sum, big.NewInt(low))
}

// change adds a piece, or takes back what was added last; what stays keeps its end. A concurrency
// limit grows only with the reservation, since naming more slots than are held is an error.
func (o *occupancy) change(at int64, p *part, total int64) {
	o.total.Sub(&o.total, over(o.pieces, at))
	o.pieces = slices.DeleteFunc(o.pieces, func(one *piece) bool { return one.end <= at })
	if more := total - p.total; more > 0 {
		end := p.reservedAt + o.length
		if at >= end {
			end = at + o.length
		}
		added := &piece{more, end}
		p.pieces = append(p.pieces, added)
		o.pieces = append(o.pieces, added)
		o.sort()
		o.total.Add(&o.total, big.NewInt(more))
	}
	fewer := p.total - total
	for _, one := range slices.Backward(p.pieces) {
		cut := max(min(fewer, one.amount), 0)
		one.amount -= cut
		fewer -= cut
		if one.end > at {
			o.total.Sub(&o.total, big.NewInt(cut))
		}
	}
	p.total = total
}

func (o *occupancy) sort() {
	slices.SortStableFunc(o.pieces, func(a, b *piece) int { return cmp.Compare(a.end, b.end) })
}

// renew moves the end of the slots that are still held.
func (o *occupancy) renew(at int64, p *part) {
	for _, one := range p.pieces {
		if one.end > at {
			one.end = at + o.length
		}
	}
	o.sort()
}
