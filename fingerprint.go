package weir

import (
	"encoding/binary"

	"github.com/weir-limiter/weir/internal/hash"
)

// fingerprint is a hash of content that is the same in every process, so that a store may keep it
// beside a lease and another server may compare. Nobody is kept from making two contents with one
// fingerprint, but whoever does only harms their own lease.
type fingerprint hash.Hash

const fingerprintSeed = fingerprint(hash.Seed)

func (f fingerprint) int(n int64) fingerprint { return fingerprint(hash.Hash(f).Word(uint64(n))) }

func (f fingerprint) string(s string) fingerprint { return fingerprint(hash.Hash(f).String(s)) }

// id is a hash of a lease ID, to find it by.
func (f fingerprint) id(id LeaseID) fingerprint {
	h := hash.Hash(f).Word(binary.LittleEndian.Uint64(id[:8]))
	return fingerprint(h.Word(binary.LittleEndian.Uint64(id[8:])))
}

func (f fingerprint) costs(list costList) fingerprint {
	f = f.int(int64(len(list)))
	for i := range list {
		f = f.string(list[i].name).int(list[i].units)
	}
	return f
}

// fingerprintRequest covers all that decides a reservation: charges in order, and brought limits.
func fingerprintRequest(charges []Charge, costs []costList, brought []Limit) uint64 {
	f := fingerprintSeed.int(int64(len(charges)))
	for i := range charges {
		f = f.string(charges[i].Entity).string(charges[i].Resource).costs(costs[i])
	}
	for i := range brought {
		l := &brought[i]
		f = f.string(l.Name).string(string(l.Kind)).int(l.Capacity).int(l.RefillAmount).
			int(int64(l.RefillPeriod)).int(int64(l.Window)).int(int64(l.Timeout)).
			string(l.Every).string(l.Zone)
		if l.Shadow {
			f = f.int(1)
		}
	}
	return uint64(f)
}

// fingerprintTotals covers what a settlement named. However nothing is named, it is the same.
func fingerprintTotals(totals []costList) uint64 {
	named := false
	for _, list := range totals {
		named = named || len(list) > 0
	}
	if !named {
		return uint64(fingerprintSeed.int(0))
	}
	f := fingerprintSeed.int(int64(len(totals)))
	for _, list := range totals {
		f = f.costs(list)
	}
	return uint64(f)
}
