package weir

import (
	"encoding/binary"
	"math/bits"
)

// fingerprint condenses content into 64 bits that are the same in every process, so that a store
// may keep it beside a lease and another server may compare. It goes by words of eight bytes and
// folds a product of 128 bits after each, as wyhash does; nobody is kept from making two contents with
// one fingerprint, and whoever does only harms the own lease.
type fingerprint uint64

const (
	fingerprintSeed  fingerprint = 0x9e3779b97f4a7c15
	fingerprintPrime uint64      = 0xd6e8feb86659fd93
)

func (f fingerprint) word(x uint64) fingerprint {
	high, low := bits.Mul64(uint64(f)^x, fingerprintPrime)
	return fingerprint(high^low) + fingerprintSeed
}

func (f fingerprint) int(n int64) fingerprint { return f.word(uint64(n)) }

// string ends with the length (modulo 256; no name is longer), so that "ab","c" is not "a","bc".
func (f fingerprint) string(s string) fingerprint {
	n := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		f = f.word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	last := n << 56 // at most seven bytes are left
	for i := range len(s) {
		last |= uint64(s[i]) << (8 * i)
	}
	return f.word(last)
}

// id is a hash of a lease ID, to find it by.
func (f fingerprint) id(id LeaseID) fingerprint {
	return f.word(binary.LittleEndian.Uint64(id[:8])).word(binary.LittleEndian.Uint64(id[8:]))
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
