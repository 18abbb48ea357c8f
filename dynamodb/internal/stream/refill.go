package stream

import (
	"context"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// refill credits bucket items ahead of their clients, if the option is on. An error is logged and
// counted, and the usage of the batch counts all the same.
func (r *Reader) refill(ctx context.Context, records []*aggregator.Record) {
	if !r.o.Refill {
		return
	}
	refills := aggregator.Refills(records, r.o.Now())
	errs := make([]error, len(refills))
	_ = client.Parallel(len(refills), func(i int) error {
		errs[i] = r.refillItem(ctx, refills[i])
		return nil // the others are made all the same
	})
	r.logRefills(refills, errs)
}

// logRefills logs and counts the errors of refills.
func (r *Reader) logRefills(refills []*aggregator.Refill, errs []error) {
	logged := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		r.mu.Lock()
		r.done.RefillsFailed++
		r.mu.Unlock()
		if logged++; logged <= maxLogged {
			r.log.Warn("bucket not refilled", "item", refills[i].Item.ID().PK(), "error", err)
		}
	}
	if len(refills) > 0 {
		r.log.Info("refilled", "due", len(refills))
	}
}

// refillItem writes one refill. It does not try again if a client, or another aggregator, has
// moved the time of the refill first.
func (r *Reader) refillItem(ctx context.Context, refill *aggregator.Refill) error {
	n, err := r.namespace(ctx, refill.Item.Namespace)
	if err != nil || n.skipped != "" {
		return err
	}
	credits := make([]bucketitem.Credit, len(refill.Credits))
	for i, c := range refill.Credits {
		credits[i] = bucketitem.Credit(c)
	}
	_, err = r.tables.API.UpdateItem(ctx,
		bucketitem.RefillAhead(r.tables.TableName, refill.Item, credits, refill.AtMS))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch client.OutcomeOf(err).Kind {
	case client.WriteApplied:
		r.done.Refills++
	case client.WriteRefused:
		r.done.RefillsLost++
	default:
		return client.Classify(err)
	}
	return nil
}
