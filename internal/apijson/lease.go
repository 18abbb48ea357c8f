package apijson

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
)

// Lease is the answer to an admitted reservation.
type Lease struct {
	Allowed      bool          `json:"allowed"`
	LeaseID      weir.LeaseID  `json:"lease_id"`
	ReservedAtMS int64         `json:"reserved_at_unix_ms"`
	ExpiresMS    int64         `json:"expires_at_unix_ms,omitempty"`
	HoldsUntilMS int64         `json:"holds_until_unix_ms,omitempty"`
	Replay       bool          `json:"replay,omitempty"`
	Seq          int64         `json:"seq,omitempty"`
	Degraded     bool          `json:"degraded,omitempty"`
	Limits       []LimitStatus `json:"limits"`
}

// LeaseOf returns the answer to an admitted reservation.
func LeaseOf(l *weir.Lease) *Lease {
	return &Lease{
		Allowed: true, LeaseID: l.ID, ReservedAtMS: unixMS(l.ReservedAt),
		ExpiresMS: unixMS(l.Expires), HoldsUntilMS: unixMS(l.HoldsUntil),
		Replay: l.Replay, Seq: l.Seq, Degraded: l.Degraded, Limits: StatusesOf(l.Limits),
	}
}

// LeaseText encodes the answer without an intermediate [Lease].
type LeaseText struct{ Lease *weir.Lease }

// appendJSON appends the bytes that [encoding/json] writes for [LeaseOf].
func (t LeaseText) appendJSON(text []byte) []byte {
	l := t.Lease
	text = appendLeaseID(text, `{"allowed":true,"lease_id":`, l.ID)
	text = appendNumber(text, `,"reserved_at_unix_ms":`, unixMS(l.ReservedAt))
	text = appendNonzero(text, `,"expires_at_unix_ms":`, unixMS(l.Expires))
	text = appendNonzero(text, `,"holds_until_unix_ms":`, unixMS(l.HoldsUntil))
	text = appendTrue(text, `,"replay":`, l.Replay)
	text = appendNonzero(text, `,"seq":`, l.Seq)
	text = appendTrue(text, `,"degraded":`, l.Degraded)
	text = append(text, `,"limits":[`...)
	for i := range l.Limits {
		if i > 0 {
			text = append(text, ',')
		}
		status := limitStatusOf(&l.Limits[i])
		text = status.appendJSON(text)
	}
	return append(text, "]}"...)
}

// ReadLease reads the answer to a reservation with a lease ID.
func ReadLease(body []byte, id weir.LeaseID) (*weir.Lease, error) {
	b, err := Read[Lease](body)
	switch {
	case err != nil:
		return nil, err
	case !b.Allowed:
		return nil, errors.New("does not say that it was allowed")
	case b.LeaseID != id:
		return nil, fmt.Errorf("is about another lease: %s", b.LeaseID)
	case b.ReservedAtMS <= 0 || b.Limits == nil || anyNegativeWait(b.Limits):
		return nil, errors.New("is incomplete")
	}
	return &weir.Lease{
		ID: b.LeaseID, ReservedAt: instant(b.ReservedAtMS), Expires: instant(b.ExpiresMS),
		HoldsUntil: instant(b.HoldsUntilMS), Degraded: b.Degraded, Replay: b.Replay, Seq: b.Seq,
		Limits: statusesOf(b.Limits),
	}, nil
}

// Receipt is the answer to an update of a lease.
type Receipt struct {
	LeaseID       weir.LeaseID `json:"lease_id"`
	AtMS          int64        `json:"at_unix_ms"`
	ExpiresMS     int64        `json:"expires_at_unix_ms,omitempty"`
	HoldsUntilMS  int64        `json:"holds_until_unix_ms,omitempty"`
	Degraded      bool         `json:"degraded,omitempty"`
	RefundInDoubt bool         `json:"refund_in_doubt,omitempty"`
}

// ReceiptOf returns the answer to an update.
func ReceiptOf(r *weir.Receipt) *Receipt {
	return &Receipt{
		LeaseID: r.LeaseID, AtMS: unixMS(r.At), ExpiresMS: unixMS(r.Expires),
		HoldsUntilMS: unixMS(r.HoldsUntil), Degraded: r.Degraded, RefundInDoubt: r.RefundInDoubt,
	}
}

// ReceiptText encodes the answer without an intermediate [Receipt].
type ReceiptText struct{ Receipt *weir.Receipt }

// appendJSON appends the bytes that [encoding/json] writes for [ReceiptOf].
func (t ReceiptText) appendJSON(text []byte) []byte {
	r := t.Receipt
	text = appendLeaseID(text, `{"lease_id":`, r.LeaseID)
	text = appendNumber(text, `,"at_unix_ms":`, unixMS(r.At))
	text = appendNonzero(text, `,"expires_at_unix_ms":`, unixMS(r.Expires))
	text = appendNonzero(text, `,"holds_until_unix_ms":`, unixMS(r.HoldsUntil))
	text = appendTrue(text, `,"degraded":`, r.Degraded)
	text = appendTrue(text, `,"refund_in_doubt":`, r.RefundInDoubt)
	return append(text, '}')
}

// ReadReceipt reads the answer to an update of a lease.
func ReadReceipt(body []byte, id weir.LeaseID) (*weir.Receipt, error) {
	b, err := Read[Receipt](body)
	switch {
	case err != nil:
		return nil, err
	case b.LeaseID != id:
		return nil, fmt.Errorf("is about another lease: %s", b.LeaseID)
	case b.AtMS <= 0:
		return nil, errors.New("is incomplete")
	}
	return &weir.Receipt{
		LeaseID: id, At: instant(b.AtMS), Expires: instant(b.ExpiresMS),
		HoldsUntil: instant(b.HoldsUntilMS), Degraded: b.Degraded,
		RefundInDoubt: b.RefundInDoubt,
	}, nil
}

// unixMS returns Unix milliseconds, and 0 for the zero time.
func unixMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the inverse of unixMS. A missing member reads as 0.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
