package dynamodb

import (
	"context"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

// probeEvery is the least time between two probes of the table.
const probeEvery = 10 * time.Second

// probe is the table's latest answer to the question whether it can be used. mu guards it, and is
// not locked while the table is asked: other callers wait for answered.
type probe struct {
	mu sync.Mutex
	at time.Time // the time of the question
	// answered is closed when err is the answer; nil before the first probe.
	answered chan struct{}
	err      error
}

// Ready returns nil if the table answers and still has the namespace. Otherwise it returns the
// reason why reservations fail: [weir.Unavailable] if the table does not answer or is gone,
// [weir.NotFound] if the namespace was deleted. It reads one item at most once in ten seconds;
// calls in between get the same answer. A read ends after [Options.WriteTimeout].
func (s *Store) Ready(ctx context.Context) error {
	if err := s.running.Enter(); err != nil {
		return err
	}
	defer s.running.End()
	//nolint:contextcheck // The read outlives its caller, because other callers wait for it too.
	return s.probe.latest(ctx, s.client.Now(), func(done func(error)) {
		s.buckets.Counts.Probes.Add(1)
		s.running.Run(func() { done(s.checkNamespace()) })
	})
}

// passed notes that the table has just answered.
func (p *probe) passed(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.err, p.answered = now, nil, make(chan struct{})
	close(p.answered)
}

// latest returns the latest answer. If that is too old, it first calls begin, which asks the table
// again. begin does not block; it calls done once.
func (p *probe) latest(ctx context.Context, now time.Time, begin func(done func(error))) error {
	p.mu.Lock()
	age := now.Sub(p.at)
	if p.answered == nil || p.done() && (age >= probeEvery || age < 0) {
		answered := make(chan struct{})
		p.at, p.answered = now, answered
		begin(func(err error) {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			close(answered)
		})
	}
	answered := p.answered
	p.mu.Unlock()
	select {
	case <-answered:
	case <-ctx.Done():
		return client.AbandonedError(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// done reports whether the last probe was answered.
func (p *probe) done() bool {
	select {
	case <-p.answered:
		return true
	default:
		return false
	}
}

// checkNamespace reads the registry's item for the namespace. It has a context of its own, because
// several callers wait for it.
func (s *Store) checkNamespace() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.WriteTimeout)
	defer cancel()
	item, err := s.client.GetItem(ctx, schema.NamespaceKey(s.options.Namespace), true)
	if err != nil {
		return client.Classify(err)
	}
	return s.checkNamespaceItem(item)
}

// checkNamespaceItem checks the registry's item for the name of the open namespace, and remembers
// the result. It returns an error if the namespace was deleted, or if the name now leads to another
// one.
func (s *Store) checkNamespaceItem(item schema.Item) error {
	err := s.namespaceFault(item)
	s.buckets.Gone.Store(err != nil)
	return err
}

// namespaceFault is like checkNamespaceItem, but does not remember the result. Its error is not
// [weir.Unavailable], so that no policy admits requests because of it.
func (s *Store) namespaceFault(item schema.Item) error {
	name, recovery := s.options.Namespace, "weir namespace recover "+s.config.Namespace
	n, err := tables.ReadNamespace(item)
	if err != nil {
		return err
	}
	switch {
	case n == nil || tables.IsVacated(n):
		return client.Fault(weir.NotFound, "store.namespace", name,
			"was deleted from table "+s.client.TableName+": "+recovery+" brings it back")
	case n.ID != s.config.Namespace:
		return client.Fault(weir.NotFound, "store.namespace", name, "was deleted from table "+s.client.TableName+
			" and registered again as "+n.ID+": open the store again to use that one")
	}
	return nil
}
