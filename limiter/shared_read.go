package limiter

import (
	"context"
	"sync"

	"github.com/weir-limiter/weir"
)

// sharedRead is one read of a subject's configuration, for every reservation that needs it while it
// is in progress.
type sharedRead struct {
	subject    weir.Subject
	generation int64           // of the cache when it began
	ctx        context.Context // ends when the store has no more time
	done       chan struct{}   // closed when resolved and err are set
	resolved   *resolution
	err        error

	// parent is the read of the entity that is charged too, if that has begun; guarded by
	// sharedReads.mu.
	parent *sharedRead
}

// sharedReads are the reads in progress.
type sharedReads struct {
	mu sync.Mutex
	of map[weir.Subject]*sharedRead
}

// sharesReads reports whether the configuration is read for several callers at once: where it must
// be waited for.
func (l *Limiter) sharesReads() bool {
	return !l.traits.Local && l.declarer == nil && l.reader != nil
}

// resolveShared resolves a subject for a reservation: from the cache, by a read in progress, or by
// one that it begins.
func (l *Limiter) resolveShared(ctx context.Context, s weir.Subject) (*resolution, error) {
	if r, err := l.resolveSubject(ctx, s, cached); r != nil || err != nil {
		return r, err
	}
	read, _ := l.beginRead(ctx, s, 0)
	return read.wait(ctx)
}

// beginRead returns the read of a subject that is in progress, or begins one; began says which. A
// read that began before the cache was dropped is not joined. The read does not end with the caller
// that began it, because others may wait for it, but with the store's timeout. It goes on with so
// many ancestors.
func (l *Limiter) beginRead(ctx context.Context, s weir.Subject, ancestors int) (r *sharedRead, began bool) {
	l.reads.mu.Lock()
	defer l.reads.mu.Unlock()
	return l.beginReadLocked(ctx, s, ancestors)
}

func (l *Limiter) beginReadLocked(
	ctx context.Context, s weir.Subject, ancestors int,
) (r *sharedRead, began bool) {
	generation := l.cache.generation.Load()
	if r := l.reads.of[s]; r != nil && r.generation == generation && r.ctx.Err() == nil {
		return r, false
	}
	r = &sharedRead{subject: s, generation: generation, done: make(chan struct{})}
	if known := l.cache.peek(l.cacheKey(s), l.leases.latestNow.Load()); known != nil {
		r.resolved = known // by a read that has ended meanwhile
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

// beginParent begins the read of the entity that is charged too, unless that has begun.
func (l *Limiter) beginParent(ctx context.Context, r *sharedRead, parent string, ancestors int) {
	l.reads.mu.Lock()
	defer l.reads.mu.Unlock()
	if r.parent == nil || r.parent.subject.Entity != parent {
		r.parent, _ = l.beginReadLocked(ctx, weir.Subject{Entity: parent, Resource: r.subject.Resource}, ancestors)
	}
}

// parentOf returns the read of the entity that is charged too, if it has begun.
func (l *Limiter) parentOf(r *sharedRead) *sharedRead {
	l.reads.mu.Lock()
	defer l.reads.mu.Unlock()
	if r.parent == nil || r.parent.subject.Entity != r.resolved.parent {
		return nil
	}
	return r.parent
}

// wait returns what was read, or an error if the read failed or ctx ended first.
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
