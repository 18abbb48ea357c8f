package livetest

import (
	"cmp"
	"slices"
)

// Clipped returns the most that a correct bucket can have lost at its capacity in the run, in
// milli-units: the gain while it was full, and refunds for which it had no room. [History.Ideal]
// counts the whole gain, so a bucket of which too little was asked falls short of it by this
// number.
//
// The balance is overestimated: each charge counts as late as it can have taken effect, and each
// refund as early.
func (h *History) Clipped() int64 {
	changes := slices.Clone(h.less) // before a charge at the same instant
	for _, charges := range [][]effect{h.takes, h.more} {
		for _, e := range charges {
			changes = append(changes, effect{before: e.after, milli: -e.milli})
		}
	}
	changes = append(changes, effect{before: h.end()})
	slices.SortStableFunc(changes, func(a, b effect) int { return cmp.Compare(a.before, b.before) })
	balance, gained, clipped := h.capacityAt(h.world.StartUS), int64(0), int64(0)
	for _, e := range changes {
		total := h.regained(ceilMS(e.before))
		for _, more := range []int64{total - gained, e.milli} {
			balance += more
			above := max(0, balance-h.capacityAt(e.before))
			balance, clipped = balance-above, clipped+above
		}
		gained = total
	}
	return clipped
}
