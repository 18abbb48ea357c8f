package dynamodb

import "sync"

// tasks counts what goes on in the background. Unlike a [sync.WaitGroup] it may begin something
// while somebody waits.
type tasks struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when nothing goes on any more; nil while nobody waits
}

// begin counts one more.
func (t *tasks) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

// join counts one more where something goes on already.
func (t *tasks) join() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		return false
	}
	t.n++
	return true
}

// end counts one less.
func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// run does something in a goroutine of its own.
func (t *tasks) run(f func()) {
	t.begin()
	go func() {
		defer t.end()
		f()
	}()
}

// wait waits until nothing goes on.
func (t *tasks) wait() {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()
	<-none
}
