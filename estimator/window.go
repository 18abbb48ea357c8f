package estimator

// million is a share of everything.
const million = 1_000_000

// callHistory has the latest calls of one key, of one model, or of all together: the bin of each,
// in order, and the number of calls in each bin. It also keeps the bin that is the answer, and
// moves it a little with each call instead of searching for it.
type callHistory struct {
	counts []uint16 // by bin
	ring   []uint16 // bins of the latest calls; if the ring is full, next is the oldest
	next   int
	seen   int // calls in the ring

	at    int // the answer: the smallest bin with at most spare calls above it
	above int // calls in the bins above it
}

// newWindow returns an empty history in one allocation.
func newWindow(size int) callHistory {
	buffer := make([]uint16, bins+size)
	return callHistory{counts: buffer[:bins:bins], ring: buffer[bins:]}
}

// reset empties the history for another key.
func (w *callHistory) reset() {
	clear(w.counts)
	*w = callHistory{counts: w.counts, ring: w.ring}
}

// learn adds a call, and drops the oldest one if the ring is full.
func (w *callHistory) learn(tokens, share int64) {
	if w.seen == len(w.ring) {
		w.count(int(w.ring[w.next]), -1)
	} else {
		w.seen++
	}
	b := binOf(tokens)
	w.ring[w.next] = uint16(b)
	if w.next++; w.next == len(w.ring) {
		w.next = 0
	}
	w.count(b, +1)
	w.rebalance(share)
}

func (w *callHistory) count(bin, by int) {
	w.counts[bin] += uint16(by) // if by is -1, the sum wraps around and 1 is subtracted
	if bin > w.at {
		w.above += by
	}
}

// rebalance moves the answer to the smallest bin with at most spare calls above it. It walks all
// bins at most once; in steady traffic it moves by one bin or not at all.
func (w *callHistory) rebalance(share int64) {
	spare := max(0, w.spare(share))
	for w.above > spare {
		w.at++
		w.above -= int(w.counts[w.at])
	}
	for w.at > 0 && w.above+int(w.counts[w.at]) <= spare {
		w.above += int(w.counts[w.at])
		w.at--
	}
}

// spare returns how many of the calls may be above the answer: all but the first ⌈(n+1)·share⌉ in
// the order of size. It is negative if there are too few calls for such a rank.
func (w *callHistory) spare(share int64) int {
	n := int64(w.seen)
	rank := ((n+1)*share + million - 1) / million
	return int(n - rank)
}

// estimate returns the answer in tokens, and whether there are enough calls for one.
func (w *callHistory) estimate(share int64) (int64, bool) {
	if w.spare(share) < 0 {
		return 0, false
	}
	return upperOf(w.at), true
}
