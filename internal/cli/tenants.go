package cli

import (
	"math/bits"
	"math/rand/v2"
	"strconv"

	"github.com/weir-limiter/weir"
)

// maxTenants bounds over how many entities a trace can be spread.
const maxTenants = 1_000_000

// The streams of random numbers that a seed begins: the second word of PCG's state.
const (
	tenantStream = 1
	leaseStream  = 2
)

// spreadCalls says which tenant makes each of n calls, counting tenants from 0. A seed gives the
// same answer for ever: call after call takes the next 64 bits x from PCG with the state (seed, 1),
// and belongs to tenant ⌊x · tenants / 2⁶⁴⌋.
func spreadCalls(n, tenants int, seed uint64) []int32 {
	random := rand.NewPCG(seed, tenantStream)
	out := make([]int32, n)
	for i := range out {
		tenant, _ := bits.Mul64(random.Uint64(), uint64(tenants))
		out[i] = int32(tenant)
	}
	return out
}

// tenantName is the entity that a tenant is.
func tenantName(tenant int) string { return "tenant-" + strconv.Itoa(tenant+1) }

// leaseIDs makes lease IDs that a seed determines.
type leaseIDs struct {
	random *rand.PCG
}

func newLeaseIDs(seed uint64) *leaseIDs {
	return &leaseIDs{rand.NewPCG(seed, leaseStream)}
}

// next makes a ULID: 48 bits of the time, then the 80 highest of the next 128 random bits.
func (l *leaseIDs) next(atMS int64) weir.LeaseID {
	var id weir.LeaseID
	for i := range 6 {
		id[i] = byte(atMS >> (40 - 8*i))
	}
	hi, lo := l.random.Uint64(), l.random.Uint64()
	for i := range 8 {
		id[6+i] = byte(hi >> (56 - 8*i))
	}
	id[14], id[15] = byte(lo>>56), byte(lo>>48)
	return id
}
