package weir

// leaseList is a list of entries in the order in which they are due, linked through them:
// [container/list] would allocate an element for each reservation and each extend.
type leaseList struct {
	head, tail *leaseEntry
	len        int
}

func (l *leaseList) push(e *leaseEntry) {
	e.list, e.prev, e.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.len++
}

func (l *leaseList) remove(e *leaseEntry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.list, e.prev, e.next = nil, nil, nil
	l.len--
}
