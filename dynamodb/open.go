package dynamodb

import (
	"cmp"
	"context"
	"time"

	"github.com/weir-limiter/weir/internal/schema"
)

const (
	// openTimeout bounds the reads with which a table is opened, where the caller has no bound.
	openTimeout = 15 * time.Second
	// writeTimeout is the default of [Options.WriteTimeout].
	writeTimeout = 2 * time.Second
)

// Open opens one namespace of a table. It only reads: a table that is missing or not ready, has
// other keys or items that this weir cannot read, or does not know the namespace is a [*weir.Error]
// that says what to do about it. The context bounds the opening alone.
func Open(ctx context.Context, table string, o *Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	c, err := connect(ctx, table, o)
	if err != nil {
		return nil, err
	}
	s := &Store{tableClient: c}
	if o != nil {
		s.options = *o
	}
	s.options.Namespace = cmp.Or(s.options.Namespace, schema.DefaultNamespace)
	s.options.WriteTimeout = cmp.Or(s.options.WriteTimeout, writeTimeout)
	s.options.Now = c.now
	if err := checkNamespace("store.namespace", s.options.Namespace); err != nil {
		return nil, err
	}
	if err := c.checkTable(ctx); err != nil {
		return nil, err
	}
	v, err := c.readVersion(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(table, v); err != nil {
		return nil, err
	}
	n, err := c.resolveNamespace(ctx, s.options.Namespace)
	if err != nil {
		return nil, err
	}
	s.namespace = n.ID
	s.start()
	s.probe.passed(c.now())
	return s, nil
}
