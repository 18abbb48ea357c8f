package dynamodb

import "time"

// What nobody waits for and the table did not take is tried again, after pauses that double.
const (
	firstLater = 100 * time.Millisecond
	maxLater   = 8
)

// later puts a compensation in the line again. After the last attempt what was to be given back
// stays charged, and is counted as unknown.
func (l *line) later(r *ride, err error) {
	s := l.store
	if r.tries++; r.tries > maxLater || s.closed.Load() && r.tries > 1 {
		for _, ch := range r.changes {
			s.counts.ambiguous(max(ch.milli, -ch.milli))
		}
		s.report(err)
		return
	}
	l.spot.hold()
	s.running.run(func() {
		defer l.spot.release()
		if !s.closed.Load() {
			pause := time.NewTimer(firstLater << (r.tries - 1))
			defer pause.Stop()
			select {
			case <-pause.C:
			case <-s.ending:
			}
		}
		l.submit(nil, r)
	})
}
