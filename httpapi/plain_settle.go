package httpapi

import "github.com/weir-limiter/weir"

// scanSettle reads the body of a verb on a lease in plain form: one object of amounts, if any. It
// returns false for any other, and r is as it was; [readSettle] reads the same of what this one
// reads.
func scanSettle(text []byte, r *settleRequest) bool {
	s := plainScan{text: text}
	var id []byte
	var seq int64
	var hasSeq bool
	var totals plainCosts
	adjusts := r.adjusts()
	if !s.document(func(name []byte) bool {
		switch {
		case string(name) == "lease_id":
			return s.strOnce(&id)
		case adjusts && string(name) == "seq":
			return s.integerOnce(&seq, &hasSeq)
		case r.field != "" && string(name) == r.field:
			return totals.read(&s)
		}
		return false
	}) {
		return false
	}
	if adjusts && (!hasSeq || !totals.given) {
		return false
	}
	var lease weir.LeaseID
	if !scanLeaseID(id, &lease) { // also where there is none
		return false
	}
	r.id, r.seq = lease, seq
	if totals.given {
		r.totals = []weir.Costs{totals.costs(newKeptText(totals.length()))}
	}
	return true
}
