package dynamodb

import "time"

// What nobody waits for and the table did not take is tried again, after pauses that double.
const (
	firstLater = 100 * time.Millisecond
	maxLater   = 8
)

// requeue puts a compensation in the line again. After the last attempt what was to be given back
// stays charged, and is counted as unknown.
func (l *itemQueue) requeue(r *itemUpdate, err error) {
	s := l.store
	if r.attempts++; r.attempts > maxLater || s.running.Closed.Load() && r.attempts > 1 {
		for _, ch := range r.deltas {
			s.counts.ambiguous(max(ch.milli, -ch.milli))
		}
		s.reportError(err)
		return
	}
	l.state.retain()
	s.running.Run(func() {
		defer l.state.release()
		if !s.running.Closed.Load() {
			pause := time.NewTimer(firstLater << (r.attempts - 1))
			defer pause.Stop()
			select {
			case <-pause.C:
			case <-s.running.Ending:
			}
		}
		l.enqueue(nil, r)
	})
}
