package dynamodb

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
)

// namespaceState is what the process knows of a namespace, and how it reaches its items.
type namespaceState struct {
	client  *client.Client
	config  *config.Reader
	options bucketOptions
	running *client.Tasks
	counts  storeCounts

	configChanges configChanges
	gone          atomic.Bool   // the namespace was deleted, as far as is known
	calls         atomic.Uint64 // numbers reservations
}

// bucketOptions say how bucket items are written.
type bucketOptions struct {
	// noSpeculation reads each item before it is written.
	noSpeculation bool
	// writeTimeout is how long a write may take until its outcome counts as unknown.
	writeTimeout time.Duration
	// onError is told of what goes wrong outside of calls; nil for nobody.
	onError func(error)
}

// reportError tells of what went wrong outside of calls.
func (s *namespaceState) reportError(err error) {
	if s.options.onError != nil {
		s.options.onError(err)
	}
}

// backgroundContext bounds what the store does by itself, whether or not the caller waits for it.
func (s *namespaceState) backgroundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.options.writeTimeout)
}

// storeCounts are what a store has counted since it was opened.
type storeCounts struct {
	contended      atomic.Int64
	ambiguousCalls atomic.Int64
	ambiguousMilli atomic.Int64
	doublings      atomic.Int64
	probes         atomic.Int64
}

// ambiguous counts milli-units of which nobody knows whether they were charged, or given back.
func (c *storeCounts) ambiguous(milli int64) {
	c.ambiguousCalls.Add(1)
	c.ambiguousMilli.Add(milli)
}

// countAmbiguous counts the amounts of an update of which nobody knows whether it was applied.
func (s *namespaceState) countAmbiguous(u *itemUpdate) {
	for _, d := range u.deltas {
		s.counts.ambiguous(max(d.milli, -d.milli))
	}
}
