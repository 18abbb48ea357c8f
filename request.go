package weir

// Charge is the costs of one request on one subject: an entity on a resource.
type Charge struct {
	Entity   string
	Resource string
	Costs    Costs
}

// Request describes what a call may use, for [Service.Reserve]. A request has either Entity,
// Resource and Costs, or Charges.
type Request struct {
	// LeaseID is the caller's ID for the reservation, with which the call can be repeated. Default:
	// the limiter makes one.
	LeaseID LeaseID
	// Entity, Resource and Costs are the charge of a request with a single one.
	Entity   string
	Resource string
	Costs    Costs
	// Charges are the charges of a request with several: at most 16, with at most 32 costs in
	// total.
	Charges []Charge
	// Keyed makes the charges of the lease distinguishable by their keys instead of their order,
	// for a caller that settles the lease without knowing the order. The key of a charge is its
	// entity and resource, and no two charges may have the same. Totals are then a single Costs, in
	// which [Subject.FullName] names a limit of one charge. The limit's name alone is enough if
	// only one charge has it. Default: false.
	Keyed bool
	// Limits are brought by the request. For a subject with configured limits they can only lower
	// the ceiling: the request is admitted if the configured limits admit it and the use after it
	// stays within these capacities. For a subject without configured limits they are the limits.
	// Default: none.
	Limits []Limit
}

// Costs are the units asked of each limit, by the limit's name. In an update they are the units
// that the lease stands for, or those that were used; the name may then be a full name, see
// [Request.Keyed].
type Costs map[string]int64

// Subject is an entity on a resource.
type Subject struct {
	Entity   string
	Resource string
}

// NameSeparator separates the parts of a full name, see [Subject.FullName]. The names of entities,
// resources and limits do not contain it.
const NameSeparator = '#'

// FullName returns the full name of a limit of the charge on s: the entity, the resource and the
// limit, separated by '#'. The totals of a lease whose request was [Request.Keyed] use it.
func (s Subject) FullName(limit string) string {
	return s.Entity + string(NameSeparator) + s.Resource + string(NameSeparator) + limit
}
