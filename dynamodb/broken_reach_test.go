package dynamodb

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/internal/schema"
)

// missedChanges returns stores that miss changes of the configuration, or pay too much to see them.
func missedChanges() []*wrong {
	const o2 = "O2: default changes reach "
	return []*wrong{
		{name: "a process without a configuration goes by the item alone",
			caught: []string{
				o2 + "one-shot processes, lowered", o2 + "a process that restarts",
				o2 + "an idle process, cached",
				o2 + "an idle process, not cached", o2 + "every process, all", o2 + "every process, one",
				o2 + "every process, another", o2 + "several callers",
			},
			store: func(s *Store) driver.Store { return itemAsConfig{s} }},
		{name: "the configuration is read each time", caught: []string{"reads: none"},
			store: func(s *Store) driver.Store { return readsEachTime{s} }},
		{name: "a denial leaves the item as it was", caught: []string{o2 + "one-shot processes, raised"},
			update: swallowedDefinitions},
		{name: "a parent that is not declared is an error", caught: []string{"undeclared: a parent"},
			store: func(s *Store) driver.Store { return requiresParents{s} }},
	}
}

// itemAsConfig returns the bucket item's limits as the configuration.
type itemAsConfig struct{ *Store }

// ReadConfig returns the limits of the bucket item.
func (o itemAsConfig) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	if consistent || of.Entity == "" || of.Resource == "" {
		return o.Store.ReadConfig(ctx, of, consistent)
	}
	version := o.buckets.ConfigChanges.Latest()
	id := schema.BucketID{Namespace: o.config.Namespace, Entity: of.Entity, Resource: of.Resource}
	item, err := o.client.GetItem(ctx, id.Key(), true)
	if err != nil || item == nil {
		return o.Store.ReadConfig(ctx, of, consistent)
	}
	b, err := schema.ParseBucket(item)
	if err != nil {
		return nil, err
	}
	level := weir.LevelLimits{Level: weir.LevelResource}
	for i := range b.Limits {
		level.Limits = append(level.Limits, bucketitem.LimitOf(&b.Limits[i]))
	}
	return &weir.Config{
		Levels: []weir.LevelLimits{level}, Parent: b.Parent, Cascade: b.Cascade, Known: true, Version: version,
	}, nil
}

// readsEachTime makes the limiter read the configuration again for every reservation.
type readsEachTime struct{ *Store }

// Reserve reports every first plan of a reservation as stale.
func (o readsEachTime) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if !p.Again {
		return &driver.StaleError{}
	}
	return o.Store.Reserve(ctx, now, p, out)
}

// requiresParents rejects parents that are not declared.
type requiresParents struct{ *Store }

// Traits returns the store's traits without UndeclaredParents.
func (o requiresParents) Traits() driver.Traits {
	t := o.Store.Traits()
	t.UndeclaredParents = false
	return t
}

// swallowedDefinitions drops the definitions from an update that charges nothing.
func swallowedDefinitions(u *bucketUpdate) {
	writes := schema.BucketAttribute(schema.WritesLimit, schema.FieldConsumed)
	charges := slices.ContainsFunc(u.adds, func(c string) bool {
		return u.of(schema.FieldConsumed)(c) && u.attribute(c) != writes
	})
	if !u.redefines() || charges {
		return
	}
	defines := []string{schema.FieldCapacity, schema.FieldRefill, schema.FieldPeriod}
	u.sets = without(u.sets, func(c string) bool {
		_, field, ok := schema.ParseBucketAttribute(u.attribute(c))
		return ok && slices.Contains(defines, field)
	})
}
