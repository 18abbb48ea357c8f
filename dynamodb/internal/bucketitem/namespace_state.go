package bucketitem

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
)

// namespaceState is what the process knows of a namespace, and how it reaches its items.
type namespaceState struct {
	Client  *client.Client
	Config  *config.Reader
	Options Options
	Running *client.Tasks
	Counts  Counts

	ConfigChanges configChanges
	Gone          atomic.Bool   // the namespace was deleted, as far as is known
	Calls         atomic.Uint64 // numbers reservations
}

// Options say how bucket items are written.
type Options struct {
	// NoSpeculation reads each item before it is written.
	NoSpeculation bool
	// WriteTimeout is how long a write may take until its outcome counts as unknown.
	WriteTimeout time.Duration
	// OnError is told of what goes wrong outside of calls; nil for nobody.
	OnError func(error)
}

// reportError tells of what went wrong outside of calls.
func (s *namespaceState) reportError(err error) {
	if s.Options.OnError != nil {
		s.Options.OnError(err)
	}
}

// BackgroundContext bounds what the store does by itself, whether or not the caller waits for it.
func (s *namespaceState) BackgroundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.Options.WriteTimeout)
}

// Counts are what a store has counted since it was opened.
type Counts struct {
	Contended      atomic.Int64
	AmbiguousCalls atomic.Int64
	AmbiguousMilli atomic.Int64
	Doublings      atomic.Int64
	Probes         atomic.Int64
}

// Ambiguous counts milli-units that may or may not have been charged, or refunded.
func (c *Counts) Ambiguous(milli int64) {
	c.AmbiguousCalls.Add(1)
	c.AmbiguousMilli.Add(milli)
}

// countAmbiguous counts the amounts of an update that may or may not have been applied.
func (s *namespaceState) countAmbiguous(u *Update) {
	for _, d := range u.Deltas {
		s.Counts.Ambiguous(max(d.Milli, -d.Milli))
	}
}
