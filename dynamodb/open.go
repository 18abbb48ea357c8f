package dynamodb

import (
	"cmp"
	"context"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
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
	var own Options
	if o != nil {
		own = *o
	}
	own.Namespace = cmp.Or(own.Namespace, schema.DefaultNamespace)
	own.WriteTimeout = cmp.Or(own.WriteTimeout, writeTimeout)
	own.Now = c.Now
	if err := tables.CheckNamespace("store.namespace", own.Namespace); err != nil {
		return nil, err
	}
	t := &tables.Table{Client: c}
	if err := t.CheckTable(ctx); err != nil {
		return nil, err
	}
	v, err := t.ReadVersion(ctx)
	if err != nil {
		return nil, err
	}
	if err := tables.CheckVersion(table, v); err != nil {
		return nil, err
	}
	n, err := t.ResolveNamespace(ctx, own.Namespace)
	if err != nil {
		return nil, err
	}
	s := newStore(c, n.ID, own)
	s.probe.passed(c.Now())
	return s, nil
}

// connect returns a client for a table. It sends nothing yet.
func connect(ctx context.Context, table string, o *Options) (*client.Client, error) {
	if o == nil {
		o = &Options{}
	}
	return client.New(ctx, table, &client.Options{
		Region: o.Region, Endpoint: o.Endpoint, Config: o.Config, HTTP: o.HTTP, Tune: o.Client,
		ReadOnly: o.ReadOnly, Now: o.Now,
	})
}
