package weir

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"
)

// call is the working memory of one call. Where the store is in the process it is used again by
// another call afterwards; a store that is elsewhere may still be busy with what it was given when a
// call is given up.
type call struct {
	one     [1]Charge
	charges []Charge
	costs   costBook

	reservation Reservation
	planner     planner

	settling   settling
	settlement Settlement
	parts      []Part
	totals     [][]Part
	limits     []*Limit

	outcome Outcome

	random *rand.ChaCha8 // for lease IDs
}

// newLeaseID is [NewLeaseID] from a source that nobody else waits for.
func (c *call) newLeaseID(now time.Time) LeaseID {
	return makeLeaseID(now.UnixMilli(), c.random.Uint64(), uint32(c.random.Uint64()))
}

// callPool hands out working memory.
type callPool struct {
	pool  sync.Pool
	reuse bool
}

func (p *callPool) get() *call {
	if c, ok := p.pool.Get().(*call); ok {
		return c
	}
	var seed [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(seed[8*i:], rand.Uint64())
	}
	return &call{random: rand.NewChaCha8(seed)}
}

// put takes working memory back. What it points to stays alive until the next call overwrites it; there
// is one for each processor, and little in it.
func (p *callPool) put(c *call) {
	if p.reuse {
		c.costs.reset()
		p.pool.Put(c)
	}
}
