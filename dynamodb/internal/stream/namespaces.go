package stream

import (
	"context"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

// namespace is what a batch needs to know about a namespace.
type namespace struct {
	// name is empty if it is not known.
	name string
	// skipped is the reason why its records are not counted; empty if they are.
	skipped string
	// days is the time for which its usage is kept.
	days int64
	read time.Time
}

const skippedDeleted = "namespace that was deleted"

// namespaceFresh is the time for which what was read of a namespace is used.
const namespaceFresh = time.Minute

// namespace returns what is known about a namespace.
func (r *Reader) namespace(ctx context.Context, id string) (namespace, error) {
	now := r.o.Now()
	r.mu.Lock()
	n, known := r.namespaces[id]
	r.mu.Unlock()
	if known && now.Sub(n.read) < namespaceFresh {
		return n, nil
	}
	keys := []schema.Key{schema.NamespaceIDKey(id), schema.SystemConfigKey(id)}
	items, err := r.tables.BatchGet(ctx, keys, true)
	if err != nil {
		return namespace{}, err
	}
	n = namespace{days: r.o.RetentionDays, read: now}
	found, err := tables.ReadNamespace(items[0])
	switch {
	case err != nil:
		n.skipped = "namespace that cannot be read"
	case found == nil:
		n.skipped = "namespace that is not registered"
	case found.Status == schema.StatusDeleted:
		n.skipped = skippedDeleted
	case tables.IsVacated(found):
		n.skipped = "namespace that is being purged"
	}
	if err == nil && found != nil {
		n.name = found.Name
	}
	days, err := schema.Int64(items[1][schema.AttrUsageRetention]) // an error for a missing one too
	if err == nil && days > 0 && days <= maxRetentionDays {
		n.days = days
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.namespaces[id] = n
	return n, nil
}

// maxRetentionDays bounds the retention that a configuration may ask for: a hundred years.
const maxRetentionDays = 36500

// register stores that a resource has usage, before its first usage is written. The resources are
// what the totals of a day are written for.
func (r *Reader) register(ctx context.Context, of schema.CountedResource) error {
	r.mu.Lock()
	known := r.state.resources[of]
	r.mu.Unlock()
	if known {
		return nil
	}
	e := &client.Expression{}
	e.RequireAbsent(schema.AttrPK)
	if err := put(ctx, r.tables.Client, of.Key().Item(), e); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.resources[of] = true
	return nil
}
