package oldtable

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Source finds the old bucket items of one namespace while its table is being migrated. A nil
// Source finds none, and makes no calls. All methods may be called concurrently.
type Source struct {
	*client.Client
	// Namespace is the ID of the namespace.
	Namespace string
	// Plain says that the old keys have no namespaces.
	Plain bool

	over atomic.Bool // the version record was seen to say that the migration has ended
}

// NewSource returns the source for a namespace of a table with the given version record; nil if
// the namespace has no old items.
func NewSource(c *client.Client, v *schema.Version, ns string) *Source {
	if v.Migration != schema.MigratingBuckets || v.MigrationHome != "" && v.MigrationHome != ns {
		return nil
	}
	return &Source{Client: c, Namespace: ns, Plain: v.MigrationHome != ""}
}

// Over reports whether there is nothing to find any more, so that no call is made.
func (s *Source) Over() bool { return s == nil || s.over.Load() }

// Find returns the old items of a bucket; nil if there are none. It reads consistently. If it
// finds nothing, it reads the version record too: after the end of the migration it finds
// nothing without a call.
func (s *Source) Find(ctx context.Context, of weir.Subject) (*Buckets, error) {
	if s.Over() {
		return nil, nil
	}
	ns := s.Namespace
	if s.Plain {
		ns = ""
	}
	sk := bucketSK + of.Resource
	read, err := s.QueryAll(ctx, client.Partition(entityPK(ns, of.Entity), sk, true))
	if err != nil {
		return nil, err
	}
	var items []schema.Item
	for _, item := range read { // the resource may be the beginning of another one's name
		if has := client.TextOf(item, schema.AttrSK); has == sk || strings.HasPrefix(has, sk+"#") {
			items = append(items, item)
		}
	}
	if len(items) > 0 {
		return ParseBuckets(s.Namespace, of.Entity, of.Resource, items)
	}
	_, err = s.Ended(ctx)
	return nil, err
}

// Ended reports whether the migration has ended. It reads the version record, unless it was seen to
// say so before.
func (s *Source) Ended(ctx context.Context) (bool, error) {
	if s.Over() {
		return true, nil
	}
	v, err := client.Get(ctx, s.Client, schema.VersionKey(), true, schema.ParseVersion)
	if err == nil && v != nil && v.Migration == "" {
		s.over.Store(true)
	}
	return s.Over(), err
}
