package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// changeKind says what has changed in the configuration.
type changeKind int

const (
	// limitsChanged: the limits of a place; all below it may have others now.
	limitsChanged changeKind = iota
	// policyChanged: the system's on_unavailable.
	policyChanged
	// entityChanged: an entity was declared, or has another parent or cascade. Its buckets on the
	// table have been told.
	entityChanged
	// entityDeleted: an entity is gone, with its limits and its buckets on the table.
	entityDeleted
)

// configChange is a change of the configuration that this process has made.
type configChange struct {
	kind changeKind
	// at is the place, or the entity alone.
	at weir.Subject
	// entity is the META after the change; nil where it did not change.
	entity *schema.Entity
	now    time.Time
}

// afterConfigChange brings what the process knows, and the buckets of the place, up to date: from
// now on the process reads the configuration of whom it concerns before it goes by an item. The
// buckets of an entity's own limits are written at once, for those on the table who go by the items
// alone; all others when they are next used, or when somebody's cache has aged.
func (s *Store) afterConfigChange(ctx context.Context, c configChange) error {
	at := c.at
	if c.kind == entityChanged || c.kind == entityDeleted {
		at.Resource = ""
	}
	if c.kind != policyChanged {
		s.configChanges.note(at)
		s.subjects.forEach(func(p *subjectState) { p.invalidate(&c) })
	}
	if c.kind == limitsChanged && at.Entity != "" && at.Resource != weir.DefaultResource {
		return s.syncBuckets(ctx, c.now.UnixMilli(), at)
	}
	return nil
}

// invalidate forgets what a change may have made wrong.
func (p *subjectState) invalidate(c *configChange) {
	p.forgetDenials()
	if c.at.Entity != p.subject.Entity || c.kind == limitsChanged {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parent, p.parentKnown = "", false
	for _, l := range p.queues {
		if c.kind == entityDeleted {
			l.enqueue(nil, &itemUpdate{now: c.now.UnixMilli(), itemDeleted: true})
		}
	}
}
