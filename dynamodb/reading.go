package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// configRead is one read of a subject's configuration. Every caller that needs the configuration while
// the read is under way shares it.
type configRead struct {
	// changes is the number of this process's last change of the configuration when the read began.
	changes uint64
	done    chan struct{} // closed when resolved and err are set
	// resolved is what applies to the subject.
	resolved *weir.Resolved
	err      error
}

// startRead returns the read of the spot's configuration that is under way, or begins one; began says
// which. A read that began before this process's last change of the configuration is not joined.
// The read does not end with the caller that began it, because others may wait for it.
func (s *bucketStore) startRead(ctx context.Context, resolve weir.Resolver, p *subjectState) (r *configRead, began bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.reading; r != nil && !s.configChanges.since(p.subject, r.changes) {
		return r, false
	}
	r = &configRead{changes: s.configChanges.latest(), done: make(chan struct{})}
	p.reading = r
	p.retain()
	s.running.Run(func() {
		defer p.release()
		defer p.endConfigRead(r)
		defer close(r.done)
		ctx, cancel := s.backgroundContext(ctx)
		defer cancel()
		r.resolved, r.err = resolve(ctx, p.subject, weir.Usual)
	})
	return r, true
}

// endConfigRead removes a read that has ended, so that the next caller begins another one.
func (p *subjectState) endConfigRead(r *configRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading == r {
		p.reading = nil
	}
}

// wait returns what was read, or an error if the read failed or ctx ended first.
func (r *configRead) wait(ctx context.Context) (*weir.Resolved, error) {
	select {
	case <-r.done:
		return r.resolved, r.err
	case <-ctx.Done():
		return nil, client.AbandonedError(ctx)
	}
}

// resolution answers for one reservation which limits apply to a subject. It keeps what it has
// found, so that the whole reservation goes by one state of the configuration, and reads nothing
// twice even if the limiter has no cache. It belongs to the goroutine of the reservation.
type resolution struct {
	store *Store
	ask   weir.Resolver // the limiter's
	found []found
	// plan plans the reservation by the resolution.
	plan func(context.Context) (*weir.Plan, error)
}

// found is what applies to a subject.
type found struct {
	subject  weir.Subject
	resolved *weir.Resolved
	// changes is the number of this process's last change of the configuration when that was asked.
	changes uint64
}

// resolve is the [weir.Resolver] of the reservation.
func (x *resolution) resolve(
	ctx context.Context, of weir.Subject, mode weir.ResolveMode,
) (*weir.Resolved, error) {
	if mode != weir.Fresh {
		if f := x.of(of); f != nil {
			return f.resolved, nil
		}
	}
	changes := x.store.buckets.configChanges.latest()
	first := mode
	if mode == weir.Usual {
		first = weir.Cached
	}
	r, err := x.ask(ctx, of, first)
	if err == nil && r == nil && mode == weir.Usual {
		p := x.store.buckets.subject(of)
		defer p.release()
		reading, _ := x.store.buckets.startRead(ctx, x.ask, p)
		changes = reading.changes
		r, err = reading.wait(ctx)
	}
	if err != nil || r == nil {
		return nil, err
	}
	x.keep(found{of, r, changes})
	return r, nil
}

// keep replaces what was found for a subject.
func (x *resolution) keep(f found) {
	if was := x.of(f.subject); was != nil {
		*was = f
		return
	}
	x.found = append(x.found, f)
}

// of returns what was found for a subject, or nil.
func (x *resolution) of(s weir.Subject) *found {
	for i := range x.found {
		if x.found[i].subject == s {
			return &x.found[i]
		}
	}
	return nil
}
