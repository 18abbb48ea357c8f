package bucketitem

import (
	"sync"

	"github.com/weir-limiter/weir"
)

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
