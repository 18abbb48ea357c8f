package bucketitem

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// ConfigRead is one read of a subject's configuration. Every caller that needs the configuration
// while it is in progress shares it.
type ConfigRead struct {
	// Changes is the number of this process's last change of the configuration when the read began.
	Changes uint64
	done    chan struct{} // closed when resolved and err are set
	// resolved is what applies to the subject.
	resolved *weir.Resolved
	err      error
}

// StartRead returns the read of the configuration that is in progress, or begins one; began says
// which. A read that began before this process's last change of the configuration is not joined.
// The read does not end with the caller that began it, because others may wait for it.
func (p *subjectState) StartRead(ctx context.Context, resolve weir.Resolver) (r *ConfigRead, began bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.reading; r != nil && !p.ns.ConfigChanges.since(p.Subject, r.Changes) {
		return r, false
	}
	r = &ConfigRead{Changes: p.ns.ConfigChanges.Latest(), done: make(chan struct{})}
	p.reading = r
	p.retain()
	p.ns.Running.Run(func() {
		defer p.Release()
		defer p.endConfigRead(r)
		defer close(r.done)
		ctx, cancel := p.ns.BackgroundContext(ctx)
		defer cancel()
		r.resolved, r.err = resolve(ctx, p.Subject, weir.Usual)
	})
	return r, true
}

// endConfigRead removes a read that has ended, so that the next caller begins another one.
func (p *subjectState) endConfigRead(r *ConfigRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading == r {
		p.reading = nil
	}
}

// Wait returns what was read, or an error if the read failed or ctx ended first.
func (r *ConfigRead) Wait(ctx context.Context) (*weir.Resolved, error) {
	select {
	case <-r.done:
		return r.resolved, r.err
	case <-ctx.Done():
		return nil, client.AbandonedError(ctx)
	}
}
