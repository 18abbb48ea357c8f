package bucketitem

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
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

// backgroundContext bounds what the store does by itself, whether or not the caller waits for it.
func (s *namespaceState) backgroundContext(
	ctx context.Context,
) (context.Context, context.CancelFunc) {
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

// configChanges remembers which places of the configuration this process has changed, so that it
// does not judge by what an item had before. Each change has a number.
type configChanges struct {
	mu     sync.Mutex
	number uint64
	places map[weir.Subject]uint64
	all    uint64 // the last change that concerned everybody
}

// maxPlaces is how many changed places are remembered one by one.
const maxPlaces = 10_000

// note counts a change of a place: of the system where both parts are empty, of a resource, of an
// entity on a resource, or of an entity everywhere.
func (c *configChanges) note(at weir.Subject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	if at.Resource == weir.DefaultResource {
		at.Resource = ""
	}
	if at == (weir.Subject{}) || len(c.places) >= maxPlaces {
		c.all, c.places = c.number, nil
		return
	}
	if c.places == nil {
		c.places = make(map[weir.Subject]uint64)
	}
	c.places[at] = c.number
}

// Latest is the number of the last change.
func (c *configChanges) Latest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.number
}

// since reports whether anything that concerns a subject has changed since a number.
func (c *configChanges) since(of weir.Subject, number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number <= number {
		return false
	}
	return c.all > number || c.places[of] > number ||
		c.places[weir.Subject{Entity: of.Entity}] > number ||
		c.places[weir.Subject{Resource: of.Resource}] > number
}
