package weir

// Charge is the costs of one request on one (entity, resource).
type Charge struct {
	Entity   string
	Resource string
	Costs    Costs
}

// Request is what a call may use. Give Entity, Resource and Costs, or several Charges, not both.
type Request struct {
	// LeaseID is the caller's own ID for the attempt. Default: the limiter makes one.
	LeaseID LeaseID
	// Entity, Resource and Costs are the only charge of a request that has one.
	Entity   string
	Resource string
	Costs    Costs
	// Charges are the charges of a request that has several: at most 16, with 32 costs together.
	Charges []Charge
	// Keyed is true if settlements tell the charges apart by their keys and never by their
	// position, because whoever settles does not know the order. The key of a charge is its entity
	// and resource, and no two charges may have the same. Totals are then one set, in which
	// [Subject.FullName] says which charge a limit is meant of; a limit that one charge alone has
	// needs no more than its name. Default: false.
	Keyed bool
	// Limits are brought by the request. Where limits are stored they may only lower: the request
	// is admitted if the stored limits admit it and the use after it stays within these
	// capacities. Where nothing is stored they are the limits. Default: none.
	Limits []Limit
}

// Costs is how many units are asked of each limit, by the limit's name. In a settlement it is what
// the lease stands for, or what was really used; there the name may be a full one, see
// [Request.Keyed].
type Costs map[string]int64

// Subject is an (entity, resource).
type Subject struct {
	Entity   string
	Resource string
}

// NameSeparator separates the parts of a full name, see [Subject.FullName]. No entity, resource or
// limit has it in its name.
const NameSeparator = '#'

// FullName returns the full name of a limit of the charge on s, as the totals of a lease whose
// request was [Request.Keyed] have it: entity, resource and limit, with a '#' between them.
func (s Subject) FullName(limit string) string {
	return s.Entity + string(NameSeparator) + s.Resource + string(NameSeparator) + limit
}
