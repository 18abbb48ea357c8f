package bucketitem

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
)

// namespaceState is the state that all subjects of a namespace share: the client, the options, the
// counts and the changes of the configuration.
type namespaceState struct {
	Client  *client.Client
	Config  *config.Reader
	Options Options
	Running *client.Tasks
	Counts  Counts
	// Old finds the items of an older layout; nil if the table has none.
	Old *oldtable.Source

	ConfigChanges configChanges
	Gone          atomic.Bool   // the last read of the registry found the namespace deleted
	Calls         atomic.Uint64 // the number of the latest reservation
}

// Options say how bucket items are written.
type Options struct {
	// NoSpeculation reads each item before it is written.
	NoSpeculation bool
	// WriteTimeout is the time after which the outcome of an unanswered write counts as unknown.
	WriteTimeout time.Duration
	// OnError is called with errors that occur outside of calls; nil to ignore them.
	OnError func(error)
}

// reportError passes an error that occurred outside of a call to OnError.
func (s *namespaceState) reportError(err error) {
	if s.Options.OnError != nil {
		s.Options.OnError(err)
	}
}

// backgroundContext returns a context for background work: it does not end with the caller's
// context, and lasts for WriteTimeout.
func (s *namespaceState) backgroundContext(
	ctx context.Context,
) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.Options.WriteTimeout)
}

// pause waits before work in the background is repeated, longer after each attempt.
func (s *namespaceState) pause(attempts int) { s.sleep(firstRequeuePause << (attempts - 1)) }

// sleep waits for a time. On a store that is closing it returns at once.
func (s *namespaceState) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.Running.Ending:
	}
}

// Counts are the counts of a store since it was opened.
type Counts struct {
	Contended      atomic.Int64
	AmbiguousCalls atomic.Int64
	AmbiguousMilli atomic.Int64
	// AmbiguousMovedMilli is the part of AmbiguousMilli that was to move between shards, and that the
	// count of consumed units does not show.
	AmbiguousMovedMilli atomic.Int64
	// AmbiguousRecordMilli is the part of AmbiguousMilli whose writes were answered, but which belongs
	// to a lease whose record may or may not have been written.
	AmbiguousRecordMilli atomic.Int64
	Doublings            atomic.Int64
	Probes               atomic.Int64
}

// Ambiguous counts milli-units that may or may not have been charged or refunded.
func (c *Counts) Ambiguous(milli int64) {
	c.AmbiguousCalls.Add(1)
	c.AmbiguousMilli.Add(milli)
}

// AmbiguousRecord is like Ambiguous, for units of a lease whose record may or may not have been
// written.
func (c *Counts) AmbiguousRecord(milli int64) {
	c.Ambiguous(milli)
	c.AmbiguousRecordMilli.Add(milli)
}

// ambiguous is like Ambiguous. moved says that the units were to move between shards.
func (c *Counts) ambiguous(milli int64, moved bool) {
	c.Ambiguous(milli)
	if moved {
		c.AmbiguousMovedMilli.Add(milli)
	}
}

// countAmbiguous counts the amounts of an update that may or may not have been applied.
func (s *namespaceState) countAmbiguous(u *Update) {
	for _, d := range u.Deltas {
		s.Counts.ambiguous(max(d.Milli, -d.Milli), d.betweenShards)
	}
}

// configChanges remembers the places of the configuration that this process has changed, so that
// the process does not judge by an item from before the change. Each change has a number. mu guards
// all of it.
type configChanges struct {
	mu     sync.Mutex
	number uint64
	places map[weir.Subject]uint64
	all    uint64 // the last change that concerned every subject
}

// maxPlaces is the largest number of changed places that are remembered one by one.
const maxPlaces = 10_000

// note numbers and remembers a change of a place: the system if both parts are empty, a resource,
// an entity on a resource, or an entity everywhere. With too many places it remembers one change
// that concerns every subject.
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

// Latest returns the number of the last change.
func (c *configChanges) Latest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.number
}

// since reports whether a change that concerns a subject has a higher number than the given one.
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
