package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// The bodies below are what --output json prints. Their fields are those of the wire, which a test
// holds them against, so that a script may read either.
type (
	leaseBody struct {
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
	denialBody struct {
		Allowed      bool         `json:"allowed"`
		LeaseID      weir.LeaseID `json:"lease_id"`
		RetryAfterMS int64        `json:"retry_after_ms"`
		AtLeast      bool         `json:"retry_after_at_least,omitempty"`
		Contended    bool         `json:"contended,omitempty"`
		Limits       []statusBody `json:"limits"`
	}
	statusBody struct {
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
		RetryAfterMS int64      `json:"retry_after_ms,omitempty"`
		AtLeast      bool       `json:"retry_after_at_least,omitempty"`
	}
	limitsStatusBody struct {
		Limits []statusBody `json:"limits"`
	}
	receiptBody struct {
		LeaseID      weir.LeaseID `json:"lease_id"`
		AtMS         int64        `json:"at_unix_ms"`
		ExpiresMS    int64        `json:"expires_at_unix_ms,omitempty"`
		HoldsUntilMS int64        `json:"holds_until_unix_ms,omitempty"`
		Degraded     bool         `json:"degraded,omitempty"`
	}
	explanationBody struct {
		Entity   string           `json:"entity"`
		Resource string           `json:"resource"`
		Level    weir.Level       `json:"level,omitempty"`
		Limits   limitBodies      `json:"limits"`
		Hidden   []levelBody      `json:"hidden,omitempty"`
		Parent   *explanationBody `json:"parent,omitempty"`
	}
	levelBody struct {
		Level  weir.Level  `json:"level"`
		Limits limitBodies `json:"limits"`
	}
	limitBodies map[string]limitBody
	limitBody   struct {
		Kind         weir.Kind   `json:"kind"`
		Capacity     int64       `json:"capacity"`
		RefillAmount int64       `json:"refill_amount,omitempty"`
		RefillPeriod json.Number `json:"refill_period,omitempty"` // seconds, perhaps with a fraction
		Window       int64       `json:"window,omitempty"`
		Timeout      int64       `json:"timeout,omitempty"`
		Every        string      `json:"every,omitempty"`
		Zone         string      `json:"zone,omitempty"`
		Enforce      *bool       `json:"enforce,omitempty"`
	}
	limitSetBody struct {
		Limits limitBodies `json:"limits"`
		Note   string      `json:"note,omitempty"`
	}
	systemBody struct {
		OnUnavailable weir.Policy `json:"on_unavailable"`
		Limits        limitBodies `json:"limits"`
	}
	policyBody struct {
		OnUnavailable weir.Policy `json:"on_unavailable"`
		Note          string      `json:"note,omitempty"`
	}
	entityBody struct {
		Entity  string                 `json:"entity"`
		Parent  string                 `json:"parent,omitempty"`
		Cascade bool                   `json:"cascade,omitempty"`
		Limits  map[string]limitBodies `json:"limits,omitempty"`
		Note    string                 `json:"note,omitempty"`
	}
	entitiesBody struct {
		Entities []string `json:"entities"`
		Next     string   `json:"next,omitempty"`
	}
)

func newLeaseBody(l *weir.Lease) *leaseBody {
	return &leaseBody{
		Allowed: true, LeaseID: l.ID, ReservedAtMS: unixMS(l.ReservedAt),
		ExpiresMS: unixMS(l.Expires), HoldsUntilMS: unixMS(l.HoldsUntil),
		Replay: l.Replay, Seq: l.Seq, Degraded: l.Degraded, Limits: newStatusBodies(l.Limits),
	}
}

func newDenialBody(e *weir.DeniedError) *denialBody {
	return &denialBody{
		LeaseID: e.LeaseID, RetryAfterMS: e.RetryAfter.Milliseconds(), AtLeast: e.AtLeast,
		Contended: e.Contended, Limits: newStatusBodies(e.Limits),
	}
}

func newReceiptBody(r *weir.Receipt) *receiptBody {
	return &receiptBody{
		LeaseID: r.LeaseID, AtMS: unixMS(r.At), ExpiresMS: unixMS(r.Expires),
		HoldsUntilMS: unixMS(r.HoldsUntil), Degraded: r.Degraded,
	}
}

func newStatusBodies(all []weir.LimitStatus) []statusBody {
	out := make([]statusBody, len(all))
	for i := range all {
		s := &all[i]
		out[i] = statusBody{
			Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Kind: s.Kind, Level: s.Level,
			Capacity: s.Capacity, Available: s.Available, Requested: s.Requested, Exceeded: s.Exceeded,
			Shadow: s.Shadow, RetryAfterMS: s.RetryAfter.Milliseconds(), AtLeast: s.AtLeast,
		}
	}
	return out
}

func newExplanationBody(e *weir.Explanation) *explanationBody {
	if e == nil {
		return nil
	}
	out := &explanationBody{
		Entity: e.Entity, Resource: e.Resource, Level: e.Level, Limits: newLimitBodies(e.Limits),
		Parent: newExplanationBody(e.Parent),
	}
	for _, h := range e.Hidden {
		out.Hidden = append(out.Hidden, levelBody{h.Level, newLimitBodies(h.Limits)})
	}
	return out
}

// newLimitBodies is never nil: no limits are an empty object.
func newLimitBodies(limits []weir.Limit) limitBodies {
	out := make(limitBodies, len(limits))
	for _, l := range limits {
		b := limitBody{
			Kind: l.Kind, Capacity: l.Capacity, RefillAmount: l.RefillAmount,
			Window: int64(l.Window / time.Second), Timeout: int64(l.Timeout / time.Second),
			Every: l.Every, Zone: l.Zone,
		}
		if ms := l.RefillPeriod.Milliseconds(); ms > 0 {
			digits := fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
			b.RefillPeriod = json.Number(strings.TrimRight(strings.TrimRight(digits, "0"), "."))
		}
		if l.Shadow {
			b.Enforce = new(false)
		}
		out[l.Name] = b
	}
	return out
}

func newEntityBody(name string, e *weir.EntityDefinition, note string) *entityBody {
	out := &entityBody{Entity: name, Parent: e.Parent, Cascade: e.Cascade, Note: note}
	if len(e.Limits) > 0 {
		out.Limits = make(map[string]limitBodies, len(e.Limits))
	}
	for resource, limits := range e.Limits {
		out.Limits[resource] = newLimitBodies(limits)
	}
	return out
}

// unixMS is 0 for no time.
func unixMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
