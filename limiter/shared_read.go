package limiter

import (
	"context"
	"sync"

	"github.com/weir-limiter/weir"
)

// sharedRead is one read of a subject's configuration, shared by all reservations that need it
// while it is in progress.
type sharedRead struct {
	subject    weir.Subject
	generation int64           // of the cache when the read began
	ctx        context.Context //nolint:containedctx // The read outlives the call that began it.
	done       chan struct{}   // closed when resolved and err are set
	resolved   *resolution
	err        error

	// parent is the read for the entity that the subject cascades to, if it has begun; guarded by
	// sharedReads.mu.
	parent *sharedRead
}

// sharedReads has the reads in progress. mu guards the map and the parent of each read. It may be
// held while a cache segment is locked, but is not locked while one is held.
type sharedReads struct {
	mu sync.Mutex
	of map[weir.Subject]*sharedRead
}

// sharesReads reports whether reads of the configuration are shared. If the configuration is in the
// process, a read costs less than sharing it.
func (l *Limiter) sharesReads() bool {
	return !l.traits.Local && l.declarer == nil && l.reader != nil
}

// resolveShared resolves a subject from the cache, by a read in progress, or by a read that it
// begins.
func (l *Limiter) resolveShared(ctx context.Context, s weir.Subject) (*resolution, error) {
	if r, err := l.resolveSubject(ctx, s, cached); r != nil || err != nil {
		return r, err
	}
	read, _ := l.beginRead(ctx, s, 0)
	return read.wait(ctx)
}

// beginRead returns the read of a subject that is in progress, or begins one; began reports which.
// A read that began before the cache was dropped is not shared, because it may not see the change
// for which the cache was dropped. The read ends with the store's timeout and not with the caller
// that began it, because other callers may wait for it. It then reads the configuration of up to
// the given number of ancestors.
func (l *Limiter) beginRead(ctx context.Context, s weir.Subject, ancestors int) (r *sharedRead, began bool) {
	l.reads.mu.Lock()
	defer l.reads.mu.Unlock()
	return l.beginReadLocked(ctx, s, ancestors)
}

// beginReadLocked is like beginRead, but l.reads.mu must be locked.
func (l *Limiter) beginReadLocked(
	ctx context.Context, s weir.Subject, ancestors int,
) (r *sharedRead, began bool) {
	generation := l.cache.generation.Load()
	if r := l.reads.of[s]; r != nil && r.generation == generation && r.ctx.Err() == nil {
		return r, false
	}
	r = &sharedRead{subject: s, generation: generation, done: make(chan struct{})}
	if known := l.cache.peek(l.cacheKey(s), l.leases.latestNow.Load()); known != nil {
		r.resolved = known // a read has ended after the caller looked in the cache
		close(r.done)
		return r, false
	}
	if l.reads.of == nil {
		l.reads.of = make(map[weir.Subject]*sharedRead)
	}
	l.reads.of[s] = r
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.options.StoreTimeout)
	r.ctx = ctx
	go func() {
		defer cancel()
		r.resolved, _, r.err = l.readSubject(ctx, s, generation, false)
		if r.err == nil && r.resolved.parent != "" && ancestors > 0 {
			l.beginParent(ctx, r, r.resolved.parent, ancestors-1)
		}
		l.reads.mu.Lock()
		if l.reads.of[s] == r {
			delete(l.reads.of, s)
		}
		l.reads.mu.Unlock()
		close(r.done)
	}()
	return r, true
}

// beginParent begins the read for the entity that r's subject cascades to, unless it has begun.
func (l *Limiter) beginParent(ctx context.Context, r *sharedRead, parent string, ancestors int) {
	l.reads.mu.Lock()
	defer l.reads.mu.Unlock()
	if r.parent == nil || r.parent.subject.Entity != parent {
		r.parent, _ = l.beginReadLocked(ctx, weir.Subject{Entity: parent, Resource: r.subject.Resource}, ancestors)
	}
}

// parentOf returns the read for the entity that r's subject cascades to, if it has begun.
func (l *Limiter) parentOf(r *sharedRead) *sharedRead {
	l.reads.mu.Lock()
	defer l.reads.mu.Unlock()
	if r.parent == nil || r.parent.subject.Entity != r.resolved.parent {
		return nil
	}
	return r.parent
}

// wait returns what was read, or an error if the read failed or ctx ended first. If both have
// happened, the result of the read wins.
func (r *sharedRead) wait(ctx context.Context) (*resolution, error) {
	select {
	case <-r.done:
		return r.resolved, r.err
	default:
	}
	select {
	case <-r.done:
		return r.resolved, r.err
	case <-ctx.Done():
		return nil, classify(context.Cause(ctx))
	}
}
