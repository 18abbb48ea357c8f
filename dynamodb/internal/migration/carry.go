package migration

import (
	"context"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/internal/schema"
)

// carryLimits carries over what weir needs before it can use the table.
func (m *Migration) carryLimits(ctx context.Context) error {
	if m.version.Migration != schema.MigratingLimits {
		return nil
	}
	_, err := m.carry(ctx, func(k oldtable.Kind) bool {
		switch k {
		case oldtable.Entity, oldtable.Limit, oldtable.Config, oldtable.Registry:
			return true
		}
		return false
	})
	if err != nil {
		return err
	}
	err = m.advance(ctx, schema.MigratingLimits, func(v *schema.Version) {
		v.Migration = schema.MigratingBuckets
	})
	if err == nil {
		m.report.Step = StepBuckets
	}
	return err
}

// maxPasses bounds the scans of the whole table. Each but the last finds what was written since
// the one before, and nothing should be.
const maxPasses = 8

// carryRest carries over all other items, until a scan finds none.
func (m *Migration) carryRest(ctx context.Context) error {
	if m.version.Migration == "" { // another run has ended it
		return nil
	}
	for range maxPasses {
		found, err := m.carry(ctx, func(k oldtable.Kind) bool { return k != oldtable.Unknown })
		if err != nil || found == 0 {
			return err
		}
	}
	return client.Fault(weir.Conflict, "store.table", m.TableName,
		"gets items of the older layout all the time: stop the processes and the function of the "+
			"older release, and run the migration again")
}

// carry scans the table once and carries over the items of some kinds. It returns the number of
// those that it has found.
func (m *Migration) carry(
	ctx context.Context, wanted func(oldtable.Kind) bool,
) (found int64, err error) {
	var seen places
	for page, err := range m.scan(ctx, false) {
		if err != nil {
			return found, err
		}
		var todo []work
		for _, item := range page {
			key, err := schema.KeyOf(item)
			if err != nil {
				return found, client.Unreadable(err)
			}
			k := m.parseKey(key)
			if k.Kind != oldtable.Present && wanted(k.Kind) && seen.first(key, k) {
				todo = append(todo, work{k, key, item})
			}
		}
		found += int64(len(todo))
		err = client.Parallel(len(todo), func(i int) error { return m.carryOne(ctx, &todo[i]) })
		for i := range todo {
			if err == nil {
				m.report.Counts.add(todo[i].of.Kind)
			}
		}
		if err != nil {
			return found, err
		}
		m.progress()
	}
	return found, nil
}

// work is an old item to carry over.
type work struct {
	of   oldtable.Key
	key  schema.Key
	item schema.Item
}

// carryOne carries over one old item, or what it is a part of.
func (m *Migration) carryOne(ctx context.Context, w *work) error {
	home := m.version.MigrationHome
	t := &client.Transaction{Table: m.TableName}
	switch w.of.Kind {
	case oldtable.Bucket:
		return m.carryBucket(ctx, w)
	case oldtable.Limit, oldtable.Config:
		return m.carryPlace(ctx, w)
	case oldtable.Registry, oldtable.Usage:
		update := oldtable.UsageUpdate
		if w.of.Kind == oldtable.Registry {
			update = oldtable.RegistryUpdate
		}
		key, e, err := update(home, w.item)
		if err != nil {
			return err
		}
		t.Update(key, e)
		oldtable.RemoveItem(t, w.key)
		_, err = m.write(ctx, t) // if it is refused, the old item is gone
		return err
	}
	made, err := oldtable.Carry(w.of.Kind, home, w.item)
	if err != nil {
		return err
	}
	return m.replace(ctx, made, w.key)
}

// replace puts an item in the place of an old one. If the item exists, it counts, and the old
// one is deleted.
func (m *Migration) replace(ctx context.Context, made schema.Item, old schema.Key) error {
	t := &client.Transaction{Table: m.TableName}
	e := &client.Expression{}
	e.RequireAbsent(schema.AttrPK)
	t.Put(made, e)
	oldtable.RemoveItem(t, old)
	kind, err := m.write(ctx, t)
	if err != nil || kind == client.WriteApplied {
		return err
	}
	return m.BatchDelete(ctx, []schema.Key{old})
}

// carryPlace carries over all limits of a place.
func (m *Migration) carryPlace(ctx context.Context, w *work) error {
	home := m.version.MigrationHome
	all, err := m.GetItem(ctx, w.of.ConfigKey(), true)
	if err != nil {
		return err
	}
	pk, prefix := w.of.LimitsOf()
	each, err := m.QueryAll(ctx, client.Partition(pk, prefix, true))
	if err != nil {
		return err
	}
	p, err := oldtable.ParsePlace(home, w.of, all, each)
	if err != nil || p.Items() == 0 {
		return err
	}
	if p.Items() > maxPlaceItems {
		return client.Fault(weir.Unsupported, "limits", w.key.PK,
			"has more limits on one place than a transaction can carry over: remove some with the "+
				"release that made the table")
	}
	t := &client.Transaction{Table: m.TableName}
	e := &client.Expression{}
	e.RequireAbsent(schema.AttrPK)
	t.Put(p.Config.Item(), e)
	if w.of.Entity != "" && !p.Counted {
		if count := oldtable.CountUpdate(home, w.of.Resource); count != nil {
			t.Update(schema.EntityConfigResourcesKey(home), count)
		}
	}
	p.Remove(t)
	kind, err := m.write(ctx, t)
	if err != nil || kind == client.WriteApplied {
		return err
	}
	if has, err := m.GetItem(ctx, p.Config.Key(), true); err != nil || has == nil {
		return err // an old item has changed: the next scan finds it
	}
	left := &client.Transaction{Table: m.TableName}
	p.Remove(left)
	_, err = m.write(ctx, left)
	return err
}

// maxPlaceItems is the number of items of a place that a transaction can replace: 100 items,
// less the new one and a registry.
const maxPlaceItems = 98

// carryBucket carries over a bucket.
func (m *Migration) carryBucket(ctx context.Context, w *work) error {
	ns := w.of.Namespace
	if ns == "" {
		ns = m.version.MigrationHome
	}
	of := weir.Subject{Entity: w.of.Entity, Resource: w.of.Resource}
	_, err := m.stores.of(m, ns).MoveOld(ctx, of, m.version.MigrationSince, m.Now().UnixMilli())
	return err
}

// stores are the bucket stores of the namespaces. mu guards them.
type stores struct {
	mu          sync.Mutex
	byNamespace map[string]*bucketitem.Store
	running     *client.Tasks
}

// of returns the bucket store of a namespace.
func (s *stores) of(m *Migration, ns string) *bucketitem.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byNamespace == nil {
		s.byNamespace, s.running = make(map[string]*bucketitem.Store), client.NewTasks()
	}
	b := s.byNamespace[ns]
	if b == nil {
		b = bucketitem.New(&config.Reader{Client: m.Client, Namespace: ns}, s.running,
			bucketitem.Options{WriteTimeout: writeTimeout})
		b.Old = oldtable.NewSource(m.Client, m.version, ns)
		s.byNamespace[ns] = b
	}
	return b
}

// close waits for the writes in the background.
func (s *stores) close() {
	if s.running != nil {
		s.running.Close()
	}
}
