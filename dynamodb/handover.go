package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir/dynamodb/internal/tables"
)

// Unjudged reads the whole table, and returns what the Python library wrote and weir does not judge
// by, because it refuses requests that meet such an item: the partition key, the sort key and the
// attribute, with spaces between them, by item; at most the first 1,000. That an item is disabled is
// not among them, since weir goes by it.
func (t *Table) Unjudged(ctx context.Context) ([]string, error) {
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	return c.Unjudged(ctx)
}

// TakeOver makes weir count the table's usage instead of the Python library's function, whose
// trigger must be off. It waits until that function has written nothing for two minutes, counts what
// came after its last write, and takes its version out of the version record, so that the library
// does not bring its code up to date any more. It may be called again after it was interrupted, or
// was done. The options are those of [Table.Aggregate].
func (t *Table) TakeOver(ctx context.Context, o *AggregateOptions) error {
	once := onceBy(o)
	once.TakeOver = true
	if _, err := t.Aggregate(ctx, once); err != nil {
		return err
	}
	return t.administer(ctx, func(ctx context.Context, c *tables.Table) error {
		return c.SetFunction(ctx, "")
	})
}

// HandBack counts what is in the stream, and then leaves the counting to the Python library's
// function of a version such as "0.17.0". No aggregator of weir may run on the table any more. It
// may be called again after it was interrupted, or was done.
func (t *Table) HandBack(ctx context.Context, version string, o *AggregateOptions) error {
	info, err := t.Describe(ctx)
	if err != nil {
		return err
	}
	if info.LambdaVersion == "" { // otherwise it was done
		if _, err := t.Aggregate(ctx, onceBy(o)); err != nil {
			return err
		}
	}
	return t.administer(ctx, func(ctx context.Context, c *tables.Table) error {
		if err := c.SetFunction(ctx, version); err != nil {
			return err
		}
		return c.EndCounting(ctx)
	})
}

// onceBy returns a copy of options, which may be nil, that ends when all is counted.
func onceBy(o *AggregateOptions) *AggregateOptions {
	once := AggregateOptions{}
	if o != nil {
		once = *o
	}
	once.Once = true
	return &once
}

// administer makes calls in the time for administration.
func (t *Table) administer(
	ctx context.Context, do func(ctx context.Context, c *tables.Table) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return err
	}
	return do(ctx, c)
}
