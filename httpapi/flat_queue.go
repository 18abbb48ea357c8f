package httpapi

// flatQueue orders leases by when they end, for container/heap.
type flatQueue []*flatLease

func (q flatQueue) Len() int           { return len(q) }
func (q flatQueue) Less(i, j int) bool { return q[i].end < q[j].end }

func (q flatQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push and Pop are for container/heap.
func (q *flatQueue) Push(x any) {
	lease := x.(*flatLease)
	lease.place = len(*q)
	*q = append(*q, lease)
}

// Pop takes the last one away.
func (q *flatQueue) Pop() any {
	last := len(*q) - 1
	lease := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return lease
}
