package livetest

import "math"

// maxTree holds a number for each of n places, and finds the largest of the first k. Both
// operations take O(log n) steps.
type maxTree struct {
	size    int
	largest []int64 // of a node's places, without the pending sums of its ancestors
	place   []int   // the place of the largest
	pending []int64 // added to all of a node's places
}

// newMaxTree returns a tree of n zeros.
func newMaxTree(n int) *maxTree {
	t := &maxTree{
		size: n, largest: make([]int64, 4*n+1), place: make([]int, 4*n+1),
		pending: make([]int64, 4*n+1),
	}
	if n > 0 {
		t.build(1, 0, n-1)
	}
	return t
}

func (t *maxTree) build(node, low, high int) {
	t.place[node] = low
	if low < high {
		middle := (low + high) / 2
		t.build(2*node, low, middle)
		t.build(2*node+1, middle+1, high)
	}
}

// add adds a number to the places from the index from to the index to, both included.
func (t *maxTree) add(from, to int, by int64) {
	if from <= to {
		t.addIn(treeNode{1, 0, t.size - 1}, from, to, by)
	}
}

// treeNode is a node of the tree and the range of its places.
type treeNode struct{ node, low, high int }

func (s treeNode) halves() (left, right treeNode) {
	middle := (s.low + s.high) / 2
	return treeNode{2 * s.node, s.low, middle}, treeNode{2*s.node + 1, middle + 1, s.high}
}

func (t *maxTree) addIn(s treeNode, from, to int, by int64) {
	if to < s.low || s.high < from {
		return
	}
	if from <= s.low && s.high <= to {
		t.largest[s.node] += by
		t.pending[s.node] += by
		return
	}
	left, right := s.halves()
	t.addIn(left, from, to, by)
	t.addIn(right, from, to, by)
	best := left.node
	if t.largest[right.node] > t.largest[left.node] {
		best = right.node
	}
	t.largest[s.node], t.place[s.node] = t.largest[best]+t.pending[s.node], t.place[best]
}

// prefixMax returns the largest number of the places up to and including to, and its place.
func (t *maxTree) prefixMax(to int) (value int64, place int) {
	return t.maxIn(treeNode{1, 0, t.size - 1}, to)
}

func (t *maxTree) maxIn(s treeNode, to int) (value int64, place int) {
	switch {
	case to < s.low:
		return math.MinInt64 / 2, s.low
	case s.high <= to:
		return t.largest[s.node], t.place[s.node]
	}
	left, right := s.halves()
	value, place = t.maxIn(left, to)
	if v, p := t.maxIn(right, to); v > value {
		value, place = v, p
	}
	return value + t.pending[s.node], place
}
