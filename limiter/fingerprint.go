package limiter

import (
	"encoding/binary"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/hash"
)

// fingerprint is a hash that is the same in every process, so that a store can keep it with a lease
// and another server can compare it. It is not cryptographic: a caller can construct two requests
// with one fingerprint, but it can only confuse its own leases that way.
type fingerprint hash.Hash

const fingerprintSeed = fingerprint(hash.Seed)

func (f fingerprint) addInt(n int64) fingerprint { return fingerprint(hash.Hash(f).Word(uint64(n))) }

func (f fingerprint) addString(s string) fingerprint { return fingerprint(hash.Hash(f).String(s)) }

// addLeaseID adds a lease ID, for hash tables.
func (f fingerprint) addLeaseID(id weir.LeaseID) fingerprint {
	h := hash.Hash(f).Word(binary.LittleEndian.Uint64(id[:8]))
	return fingerprint(h.Word(binary.LittleEndian.Uint64(id[8:])))
}

func (f fingerprint) addCosts(list costList) fingerprint {
	f = f.addInt(int64(len(list)))
	for i := range list {
		f = f.addString(list[i].name).addInt(list[i].units)
	}
	return f
}

// fingerprintRequest covers everything that decides a reservation: the charges in order and the
// brought limits.
func fingerprintRequest(charges []weir.Charge, costs []costList, brought []weir.Limit) uint64 {
	f := fingerprintSeed.addInt(int64(len(charges)))
	for i := range charges {
		f = f.addString(charges[i].Entity).addString(charges[i].Resource).addCosts(costs[i])
	}
	for i := range brought {
		l := &brought[i]
		f = f.addString(l.Name).addString(string(l.Kind)).addInt(l.Capacity).addInt(l.RefillAmount).
			addInt(int64(l.RefillPeriod)).addInt(int64(l.Window)).addInt(int64(l.Timeout)).
			addString(l.Every).addString(l.Zone)
		if l.Shadow {
			f = f.addInt(1)
		}
	}
	return uint64(f)
}

// fingerprintTotals covers the totals of an update. No lists and lists without names have the same
// fingerprint, because they mean the same.
func fingerprintTotals(totals []costList) uint64 {
	named := false
	for _, list := range totals {
		named = named || len(list) > 0
	}
	if !named {
		return uint64(fingerprintSeed.addInt(0))
	}
	f := fingerprintSeed.addInt(int64(len(totals)))
	for _, list := range totals {
		f = f.addCosts(list)
	}
	return uint64(f)
}
