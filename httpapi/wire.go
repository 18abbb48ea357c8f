package httpapi

import (
	"encoding/json"

	"github.com/weir-limiter/weir"
)

// The types below are the bodies of the wire, as the handler writes and the client reads them, and
// the other way round. Instants and durations are whole milliseconds, as in the library.

// reserveBody asks for a reservation. Exactly one of the three forms is given: entity, resource and
// costs; charges; or requirements, the flat keys of ADR 30.
type reserveBody struct {
	LeaseID      string               `json:"lease_id,omitempty"`
	Entity       string               `json:"entity,omitempty"`
	Resource     string               `json:"resource,omitempty"`
	Costs        weir.Costs           `json:"costs,omitempty"`
	Charges      []chargeBody         `json:"charges,omitempty"`
	Requirements []requirementBody    `json:"requirements,omitempty"`
	Keyed        bool                 `json:"keyed,omitempty"`
	Limits       map[string]limitBody `json:"limits,omitempty"`
}

type chargeBody struct {
	Entity   string     `json:"entity"`
	Resource string     `json:"resource"`
	Costs    weir.Costs `json:"costs,omitempty"`
}

// requirementBody asks a flat key for an amount: key K is entity K, resource "key", limit "units".
type requirementBody struct {
	Key    string `json:"key"`
	Amount int64  `json:"amount"`
}

// actualBody says what was used of a flat key.
type actualBody struct {
	Key          string `json:"key"`
	ActualAmount int64  `json:"actual_amount"`
}

// limitBody is a limit in the words of a limits file; durations are whole seconds.
type limitBody struct {
	Kind         weir.Kind `json:"kind,omitempty"`
	Capacity     int64     `json:"capacity"`
	RefillAmount int64     `json:"refill_amount,omitempty"`
	// RefillPeriod has a fraction where a bucket's period is no whole number of seconds, which a
	// limits file cannot say.
	RefillPeriod json.Number `json:"refill_period,omitempty"`
	Window       int64       `json:"window,omitempty"`
	Timeout      int64       `json:"timeout,omitempty"`
	Every        string      `json:"every,omitempty"`
	Zone         string      `json:"zone,omitempty"`
	Enforce      *bool       `json:"enforce,omitempty"`
}

// leaseBody answers a reservation that was admitted.
type leaseBody struct {
	Allowed      bool         `json:"allowed"`
	LeaseID      weir.LeaseID `json:"lease_id"`
	ReservedAtMS int64        `json:"reserved_at_unix_ms"`
	ExpiresMS    int64        `json:"expires_at_unix_ms,omitempty"`
	HoldsUntilMS int64        `json:"holds_until_unix_ms,omitempty"`
	Replay       bool         `json:"replay,omitempty"`
	Seq          int64        `json:"seq,omitempty"`
	Degraded     bool         `json:"degraded,omitempty"`
	Limits       []statusBody `json:"limits"`
}

// statusBody is a [weir.LimitStatus].
type statusBody struct {
	Entity       string     `json:"entity"`
	Resource     string     `json:"resource"`
	Limit        string     `json:"limit"`
	Kind         weir.Kind  `json:"kind"`
	Level        weir.Level `json:"level"`
	Capacity     int64      `json:"capacity"`
	Available    int64      `json:"available"`
	Requested    int64      `json:"requested"`
	Exceeded     bool       `json:"exceeded"`
	Shadow       bool       `json:"shadow,omitempty"`
	Superseded   bool       `json:"superseded,omitempty"`
	RetryAfterMS int64      `json:"retry_after_ms,omitempty"`
	AtLeast      bool       `json:"retry_after_at_least,omitempty"`
}

// adjustBody and settleBody carry totals and actuals in one of three forms, see totalsBody.
type adjustBody struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Seq     int64        `json:"seq"`
	Totals  totalsBody   `json:"totals"`
}

type completeBody struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Actuals totalsBody   `json:"actuals,omitempty"`
}

// leaseRefBody names the lease to cancel or extend.
type leaseRefBody struct {
	LeaseID weir.LeaseID `json:"lease_id"`
}

// totalsBody is one object of amounts by limit name, for all charges; or an array with one for each
// charge in order; or an array of flat keys.
type totalsBody = json.RawMessage

// receiptBody is a [weir.Receipt].
type receiptBody struct {
	LeaseID      weir.LeaseID `json:"lease_id"`
	AtMS         int64        `json:"at_unix_ms"`
	ExpiresMS    int64        `json:"expires_at_unix_ms,omitempty"`
	HoldsUntilMS int64        `json:"holds_until_unix_ms,omitempty"`
	Degraded     bool         `json:"degraded,omitempty"`
	// RefundInDoubt is that of [weir.Receipt].
	RefundInDoubt bool `json:"refund_in_doubt,omitempty"`
}

// limitsStatusBody answers GET /v1/status and GET /v1/resources/{resource}/capacity.
type limitsStatusBody struct {
	Limits []statusBody `json:"limits"`
}

// explanationBody is a [weir.Explanation].
type explanationBody struct {
	Entity   string               `json:"entity"`
	Resource string               `json:"resource"`
	Level    weir.Level           `json:"level,omitempty"`
	Limits   map[string]limitBody `json:"limits"`
	Hidden   []levelBody          `json:"hidden,omitempty"`
	Parent   *explanationBody     `json:"parent,omitempty"`
}

type levelBody struct {
	Level  weir.Level           `json:"level"`
	Limits map[string]limitBody `json:"limits"`
}

// problemBody is every answer but a success: RFC 9457, with the members of a [weir.Error] or of a
// [weir.DeniedError]. A denial has allowed false; no other problem has the member.
type problemBody struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	Code   weir.Code     `json:"code,omitempty"`
	Field  string        `json:"field,omitempty"`
	Value  string        `json:"value,omitempty"`
	Reason string        `json:"reason,omitempty"`
	Errors []mistakeBody `json:"errors,omitempty"` // where there are several

	Allowed      *bool        `json:"allowed,omitempty"`
	LeaseID      string       `json:"lease_id,omitempty"`
	RetryAfterMS *int64       `json:"retry_after_ms,omitempty"`
	AtLeast      bool         `json:"retry_after_at_least,omitempty"`
	Contended    bool         `json:"contended,omitempty"`
	Limits       []statusBody `json:"limits,omitempty"`
	// The RateLimit header fields' draft names this member.
	ViolatedPolicies []string `json:"violated-policies,omitempty"` //nolint:tagliatelle // Registered.
}

// mistakeBody is one of several mistakes.
type mistakeBody struct {
	Code   weir.Code `json:"code"`
	Field  string    `json:"field,omitempty"`
	Value  string    `json:"value,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// systemBody is what GET /v1/admin/system answers.
type systemBody struct {
	OnUnavailable weir.Policy          `json:"on_unavailable"`
	Limits        map[string]limitBody `json:"limits"`
}

// limitSetBody is the limits of one place: what is put, and what is answered.
type limitSetBody struct {
	Limits map[string]limitBody `json:"limits"`
	Note   string               `json:"note,omitempty"`
}

// entityBody is an entity: parent and cascade are put, limits only answered, by resource.
type entityBody struct {
	Entity  string                          `json:"entity,omitempty"`
	Parent  string                          `json:"parent,omitempty"`
	Cascade bool                            `json:"cascade,omitempty"`
	Limits  map[string]map[string]limitBody `json:"limits,omitempty"`
	Note    string                          `json:"note,omitempty"`
}

// entitiesBody answers the lists of entities. Next is where the next page begins, empty at the end.
type entitiesBody struct {
	Entities []string `json:"entities"`
	Next     string   `json:"next,omitempty"`
}

// policyBody is put to /v1/admin/system/on_unavailable.
type policyBody struct {
	OnUnavailable weir.Policy `json:"on_unavailable"`
	Note          string      `json:"note,omitempty"`
}
