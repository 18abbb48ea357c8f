package httpapi

import "github.com/weir-limiter/weir"

// ActivityReport is the body of GET /v1/activity: the counts of a server. Counts stop at the
// largest int64 instead of overflowing. Slices are never nil.
type ActivityReport struct {
	// SinceMS is the time at which counting began, and NowMS the time of the report, in Unix
	// milliseconds.
	SinceMS int64 `json:"since_unix_ms"`
	NowMS   int64 `json:"now_unix_ms"`
	// Admitted and Denied count reservations. A replay counts only in Replayed.
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	Replayed int64 `json:"replayed"`
	// Degraded counts the admitted reservations that are degraded leases, because the store did not
	// answer.
	Degraded int64 `json:"degraded"`
	// Errors count the failed calls of every verb, in the order of the codes. Errors without a code
	// are "other".
	Errors []ActivityErrors `json:"errors"`
	// Limits are in the order of names and kinds. Their Denied are the denials by limit.
	Limits []ActivityLimit `json:"limits"`
	// Askers count the denials by the entity that asked: by each entity that a charge of the
	// reservation names. Owners count them by the entity whose limit denied, such as a parent. The
	// most denials come first.
	Askers []ActivityDenied `json:"denied_askers"`
	Owners []ActivityDenied `json:"denied_owners"`
	// Seconds has the counts of the last two minutes.
	Seconds ActivitySeconds `json:"seconds"`
	// Denials has the last denials, newest first.
	Denials []ActivityDenial `json:"denials"`
	// Entities has the entities that asked or were judged last, newest first.
	Entities []ActivityEntity `json:"entities"`
}

// ActivityErrors counts the failures of one code.
type ActivityErrors struct {
	Code  weir.Code `json:"code"`
	Count int64     `json:"count"`
}

// ActivityLimit counts what the limits of one name and kind decided. Each limit counts, so a
// request that is charged to an entity and its parent counts twice.
type ActivityLimit struct {
	// Limit and Kind are empty in the entry that sums all limits beyond a bound on their number.
	Limit string    `json:"limit"`
	Kind  weir.Kind `json:"kind"`
	// Admitted counts the reservations that were charged to the limit.
	Admitted int64 `json:"admitted"`
	// Denied counts the reservations that the limit denied.
	Denied int64 `json:"denied"`
	// Shadow counts the reservations that exceeded the limit while it was a shadow limit.
	Shadow int64 `json:"shadow_exceeded"`
	// Reserved sums the units that were reserved. Updates do not change it.
	Reserved int64 `json:"units_reserved"`
}

// ActivityDenied counts the denials of one entity.
type ActivityDenied struct {
	// Entity is empty in the entry that sums all entities beyond a bound on their number. It has
	// also what other entities were denied before they were among those with the most denials.
	Entity string `json:"entity"`
	Denied int64  `json:"denied"`
}

// ActivitySeconds counts reservations by second, oldest first. The last second is incomplete.
type ActivitySeconds struct {
	// From is the first second, in Unix seconds.
	From     int64   `json:"from_unix_s"`
	Admitted []int64 `json:"admitted"`
	Denied   []int64 `json:"denied"`
}

// ActivityDenial is one reservation that was denied.
type ActivityDenial struct {
	// ID is higher than that of every earlier denial since the server started. There are gaps.
	ID int64 `json:"id"`
	// AtMS is the time of the request, in Unix milliseconds.
	AtMS int64 `json:"at_unix_ms"`
	// Entity and Resource are those of the first charge.
	Entity   string `json:"entity"`
	Resource string `json:"resource"`
	// Charges are who asked, and for what: all charges in the request's order.
	Charges []ActivitySubject `json:"charges"`
	// RetryAfterMS is the retry-after of the denial, or a lower bound of it if AtLeast is true.
	RetryAfterMS int64 `json:"retry_after_ms"`
	AtLeast      bool  `json:"retry_after_at_least,omitempty"`
	// Contended reports whether the reservation was denied because other writers won every round.
	Contended bool `json:"contended,omitempty"`
	// Exceeded are the first eight limits that denied, and More counts the others.
	Exceeded []ActivityExceeded `json:"exceeded"`
	More     int                `json:"more,omitempty"`
}

// ActivitySubject is one charge of a denied reservation, without its costs.
type ActivitySubject struct {
	Entity   string `json:"entity"`
	Resource string `json:"resource"`
}

// ActivityExceeded is a limit that denied. Its amounts are units.
type ActivityExceeded struct {
	// Entity and Resource say whose limit it is, which may be that of a parent of who asked.
	Entity    string    `json:"entity"`
	Resource  string    `json:"resource"`
	Limit     string    `json:"limit"`
	Kind      weir.Kind `json:"kind"`
	Capacity  int64     `json:"capacity"`
	Available int64     `json:"available"`
	Requested int64     `json:"requested"`
}

// ActivityEntity is an entity that has asked or was judged, admitted or not.
type ActivityEntity struct {
	Entity string `json:"entity"`
	// LastMS is the time of the last request, in Unix milliseconds.
	LastMS int64 `json:"last_unix_ms"`
	// Asked counts the reservations that named the entity in a charge, admitted or denied, while it
	// was among the entities that are kept.
	Asked int64 `json:"asked"`
}
