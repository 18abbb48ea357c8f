package httpapi

import "github.com/weir-limiter/weir"

// scanReserve reads the body of a reserve in plain form: a single charge, and no limits brought. It
// returns nil for any other; [readReserve] returns the same for what this one reads.
func scanReserve(text []byte) *reserveRequest {
	s := plainScan{text: text}
	var id, entity, resource []byte
	var costs plainCosts
	if !s.document(func(name []byte) bool {
		switch string(name) {
		case "lease_id":
			return s.strOnce(&id)
		case "entity":
			return s.strOnce(&entity)
		case "resource":
			return s.strOnce(&resource)
		case "costs":
			return costs.read(&s)
		}
		return false
	}) {
		return nil
	}
	r := &reserveRequest{}
	if id != nil && !scanLeaseID(id, &r.LeaseID) {
		return nil
	}
	kept := newKeptText(len(entity) + len(resource) + costs.length())
	r.Entity, r.Resource = kept.keep(entity), kept.keep(resource)
	r.Costs = costs.costs(kept)
	return r
}

// scanLeaseID reads an ID that is one, and not zero.
func scanLeaseID(text []byte, id *weir.LeaseID) bool {
	parsed, err := weir.ParseLeaseID(string(text))
	*id = parsed
	return err == nil && !parsed.IsZero()
}
