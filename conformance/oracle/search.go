package oracle

import "math/big"

func (l *limit) fits(at, n int64) bool {
	return l.meter.available(at).Cmp(big.NewInt(n)) >= 0
}

// firstFit searches for how many milliseconds after now n units first fit if nobody else comes: 0
// if they fit now or never will.
func (l *limit) firstFit(now, n int64) int64 {
	const tooFar = 1 << 61
	if n > l.capacity || l.fits(now, n) {
		return 0
	}
	short, enough := int64(0), int64(1)
	for !l.fits(now+enough, n) {
		if enough == tooFar {
			return 0
		}
		short, enough = enough, enough*2
	}
	for enough-short > 1 {
		middle := short + (enough-short)/2
		if l.fits(now+middle, n) {
			enough = middle
		} else {
			short = middle
		}
	}
	return enough
}
