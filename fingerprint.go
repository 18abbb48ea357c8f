package weir

import "slices"

// fingerprint condenses content into 64 bits that are the same in every process, so that a store
// may keep it beside a lease and another server may compare (FNV-1a).
type fingerprint uint64

const (
	fnvOffset fingerprint = 14695981039346656037
	fnvPrime  fingerprint = 1099511628211
)

func (f fingerprint) byte(b byte) fingerprint { return (f ^ fingerprint(b)) * fnvPrime }

func (f fingerprint) int(n int64) fingerprint {
	for range 8 {
		f = f.byte(byte(n))
		n >>= 8
	}
	return f
}

// string ends with a zero byte, which no identifier contains, so that "ab","c" is not "a","bc".
func (f fingerprint) string(s string) fingerprint {
	for i := range len(s) {
		f = f.byte(s[i])
	}
	return f.byte(0)
}

func (f fingerprint) costs(c Costs) fingerprint {
	f = f.int(int64(len(c)))
	if len(c) == 1 {
		for name, n := range c {
			return f.string(name).int(n)
		}
	}
	for _, name := range c.names() {
		f = f.string(name).int(c[name])
	}
	return f
}

// fingerprintRequest covers all that decides a reservation: charges in order, and brought limits.
func fingerprintRequest(charges []Charge, brought []Limit) uint64 {
	f := fnvOffset.int(int64(len(charges)))
	for i := range charges {
		f = f.string(charges[i].Entity).string(charges[i].Resource).costs(charges[i].Costs)
	}
	for i := range brought {
		l := &brought[i]
		f = f.string(l.Name).string(string(l.Kind)).int(l.Capacity).int(l.RefillAmount).
			int(int64(l.RefillPeriod)).int(int64(l.Window)).int(int64(l.Timeout)).
			string(l.Every).string(l.Zone)
		if l.Shadow {
			f = f.byte(1)
		}
	}
	return uint64(f)
}

// fingerprintTotals covers what a settlement named. However nothing is named, it is the same.
func fingerprintTotals(totals []Costs) uint64 {
	if !slices.ContainsFunc(totals, func(c Costs) bool { return len(c) > 0 }) {
		totals = nil
	}
	f := fnvOffset.int(int64(len(totals)))
	for _, c := range totals {
		f = f.costs(c)
	}
	return uint64(f)
}
