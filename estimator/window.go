package estimator

// million is the whole of a share.
const million = 1_000_000

// callHistory holds the latest calls of one key, of one model, or of all together: which bucket
// each fell into, in order, and how many are in each bucket. It also keeps the bucket that answers
// the next question, and moves it a little with each call instead of searching for it.
type callHistory struct {
	counts []uint16 // by bucket
	ring   []uint16 // the latest calls' buckets; next is the oldest once the ring is full
	next   int
	seen   int // calls in the ring

	at    int // the smallest bucket with no more calls above it than the rank allows
	above int // calls in the buckets above it
}

// newWindow makes an empty window in one allocation.
func newWindow(size int) callHistory {
	buffer := make([]uint16, buckets+size)
	return callHistory{counts: buffer[:buckets:buckets], ring: buffer[buckets:]}
}

// reset empties the window for another owner.
func (w *callHistory) reset() {
	clear(w.counts)
	*w = callHistory{counts: w.counts, ring: w.ring}
}

// learn takes in one call and lets the oldest go when the window is full.
func (w *callHistory) learn(tokens, share int64) {
	if w.seen == len(w.ring) {
		w.count(int(w.ring[w.next]), -1)
	} else {
		w.seen++
	}
	b := bucketOf(tokens)
	w.ring[w.next] = uint16(b)
	if w.next++; w.next == len(w.ring) {
		w.next = 0
	}
	w.count(b, +1)
	w.rebalance(share)
}

func (w *callHistory) count(bucket, by int) {
	w.counts[bucket] += uint16(by) // wraps for -1, as it must
	if bucket > w.at {
		w.above += by
	}
}

// rebalance moves the answer to the smallest bucket that leaves as many calls above it as may be.
// It makes at most one round of the buckets; in steady traffic it moves by one or not at all.
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

// spare returns how many of the calls seen may lie above the answer: all but the first
// ⌈(n+1)·share⌉ in the order of size. It is negative while there are too few for such a rank.
func (w *callHistory) spare(share int64) int {
	n := int64(w.seen)
	rank := ((n+1)*share + million - 1) / million
	return int(n - rank)
}

// estimate returns the number of tokens that at most the spare calls went over, and whether enough
// calls were seen to say.
func (w *callHistory) estimate(share int64) (int64, bool) {
	if w.spare(share) < 0 {
		return 0, false
	}
	return upperOf(w.at), true
}
