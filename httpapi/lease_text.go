package httpapi

import "github.com/weir-limiter/weir"

// leaseText is a [leaseBody] that writes itself.
type leaseText struct{ lease *weir.Lease }

func (t leaseText) appendJSON(text []byte) []byte {
	l := t.lease
	text = appendLeaseID(text, `{"allowed":true,"lease_id":`, l.ID)
	text = appendNumber(text, `,"reserved_at_unix_ms":`, unixMS(l.ReservedAt))
	text = appendNonzero(text, `,"expires_at_unix_ms":`, unixMS(l.Expires))
	text = appendNonzero(text, `,"holds_until_unix_ms":`, unixMS(l.HoldsUntil))
	text = appendTrue(text, `,"replay":`, l.Replay)
	text = appendNonzero(text, `,"seq":`, l.Seq)
	text = appendTrue(text, `,"degraded":`, l.Degraded)
	text = append(text, `,"limits":[`...)
	for i := range l.Limits {
		text = append(text, between(i, "")...)
		status := statusBodyOf(&l.Limits[i])
		text = status.appendJSON(text)
	}
	return append(text, "]}"...)
}

// receiptText is a [receiptBody] that writes itself.
type receiptText struct{ receipt *weir.Receipt }

func (t receiptText) appendJSON(text []byte) []byte {
	r := t.receipt
	text = appendLeaseID(text, `{"lease_id":`, r.LeaseID)
	text = appendNumber(text, `,"at_unix_ms":`, unixMS(r.At))
	text = appendNonzero(text, `,"expires_at_unix_ms":`, unixMS(r.Expires))
	text = appendNonzero(text, `,"holds_until_unix_ms":`, unixMS(r.HoldsUntil))
	text = appendTrue(text, `,"degraded":`, r.Degraded)
	text = appendTrue(text, `,"refund_in_doubt":`, r.RefundInDoubt)
	return append(text, '}')
}

// appendLeaseID appends an ID, which needs no escapes.
func appendLeaseID(text []byte, member string, id weir.LeaseID) []byte {
	text = append(append(text, member...), '"')
	text, _ = id.AppendText(text) // it never fails
	return append(text, '"')
}
