package stream

import "context"

// takeOver waits until another aggregator of the table writes no more.
func (r *Reader) takeOver(ctx context.Context) error { return ctx.Err() }
