//go:build cgo

package tigerbeetle

import (
	"cmp"
	"context"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// Recovered reports whether the namespace existed before this store opened it. If it did, the
// cluster may know leases of earlier processes and other servers. It never forgets a lease early.
func (s *Store) Recovered() (early time.Time, ok bool) { return time.Time{}, !s.fresh }

// RecoverLease returns what the cluster knows of a lease, or nil if the lease is unknown. The
// cluster forgets no lease.
func (s *Store) RecoverLease(
	ctx context.Context, _ time.Time, id weir.LeaseID,
) (*driver.LeaseRecord, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.exit()
	h, err := s.readHistory(ctx, id)
	if err != nil || h == nil {
		return nil, err
	}
	r := &h.record
	now := s.clock.nowMS()
	if r.State == driver.LeaseLive && r.Expires.UnixMilli() <= now {
		r.State, r.EndedAt, r.Holdings = driver.LeaseExpired, r.Expires, nil
	}
	if r.State == driver.LeaseLive { // another server reserved it, or this one before a restart
		s.noteForeign()
	}
	if answer, ok := s.replayLimits.LoadAndDelete(id); ok {
		r.Limits = answer.([]weir.LimitStatus)
	}
	return r, nil
}

// readHistory reads a lease from the cluster, live or ended. It returns nil if the lease was never
// reserved.
func (s *Store) readHistory(ctx context.Context, id weir.LeaseID) (*leaseHistory, error) {
	h := &leaseHistory{header: transferID(id, 0, 0), end: transferID(id, stepEnd, 0)}
	if err := s.readTransfers(ctx, id, h); err != nil {
		return nil, err
	}
	if !h.exists {
		return nil, nil // The lease is unknown.
	}
	h.record.ID = id
	if h.record.State != driver.LeaseLive {
		return h, nil
	}
	return h, s.holdings(ctx, h)
}

// readTransfers adds all transfers of a lease to its history. A lease that was adjusted often has
// more than one answer holds.
func (s *Store) readTransfers(ctx context.Context, id weir.LeaseID, h *leaseHistory) error {
	most := uint32(s.ledger.MaxEvents())
	filter := tb.QueryFilter{UserData128: leaseNumber(id), Ledger: s.namespace.ledger, Limit: most}
	for {
		found, err := s.ledger.QueryTransfers(ctx, filter)
		if err != nil {
			return client.Unavailable(err)
		}
		for i := range found {
			h.addTransfer(&found[i])
		}
		if len(found) < int(most) {
			return nil
		}
		filter.TimestampMin = found[len(found)-1].Timestamp + 1
	}
}

// leaseHistory is a lease as read from its transfers, in the order of the ledger.
type leaseHistory struct {
	header, end tb.Uint128
	exists      bool
	record      driver.LeaseRecord
	// step is the step of the chain being read, and index that of the chain's last event so far.
	step, index int64
	// extended is the highest step of an extend, or of a far adjust that took the place of one.
	extended int64
	holdings []holdingHistory
}

// holdingHistory is one holding as read from the transfers.
type holdingHistory struct {
	account tb.Uint128
	taken   int64  // in the account's own units
	total   uint64 // in units, plus one; 0 if no update has recorded it
	parts   []driver.Part
	pieces  []driver.Piece
	ids     []tb.Uint128 // the transfers of the pieces
	length  uint32
	mark    int64
	checked bool // set if the reservation checked the limit, so that it is not a shadow limit
	// payer is the payerHash of the entity; 0 if an earlier release of weir reserved the lease, which
	// wrote the fingerprint of the request in its place.
	payer uint64
	// voided is the piece that was ended last, voidedAt the mark of the event that ended it.
	voided   driver.Piece
	voidedAt int64
}

// addTransfer applies the next transfer.
func (h *leaseHistory) addTransfer(t *tb.Transfer) {
	switch {
	case t.ID == h.header && t.Code == codeVoid:
		return // the lease was never reserved
	case t.ID == h.header:
		h.exists = true
		h.record.State = driver.LeaseLive
		h.record.At = time.UnixMilli(timestampMS(t.Timestamp))
		h.record.Fingerprint = t.UserData64
		h.record.Charges = int(t.UserData32 & (1<<chargeBits - 1))
		h.record.Expires = time.UnixMilli(int64(lowUint64(t.Amount)))
		h.step, h.index = int64(t.UserData32>>chargeBits), 0
		return
	case t.ID == h.end:
		h.record.State = driver.LeaseCancelled
		if t.Flags&flagPost != 0 {
			h.record.State = driver.LeaseCompleted
		}
		h.record.EndedAt = time.UnixMilli(timestampMS(t.Timestamp))
		h.record.EndFingerprint = t.UserData64
		return
	case t.Code == codeAdjusted && t.Flags&flagPending != 0:
		h.record.Seq = int64(lowUint64(t.Amount))
		h.record.SeqAt = time.UnixMilli(timestampMS(t.Timestamp))
		h.setToken(t)
		return
	case t.Code == codeExtended && t.Flags&flagPending != 0:
		h.record.Expires = time.UnixMilli(int64(lowUint64(t.Amount)))
		h.setToken(t)
		return
	}
	h.index++
	if t.Code == codeKey {
		h.record.Keys = append(h.record.Keys, t.UserData64) // they are recorded in order
	}
	if t.Code < codeCheck {
		return // a key, or the end of a token: it belongs to no holding
	}
	h.addHolding(t, h.step<<markBits|h.index)
}

// addHolding applies what a transfer did to a holding.
func (h *leaseHistory) addHolding(t *tb.Transfer, mark int64) {
	i, charge := unpackPart(t.UserData32)
	for len(h.holdings) <= i {
		h.holdings = append(h.holdings, holdingHistory{})
	}
	x := &h.holdings[i]
	pending, resolves := t.Flags&flagPending != 0, t.Flags&(flagPost|flagVoid) != 0
	if !resolves && (t.Code == codeCheck || t.Code == codeTake) && t.UserData64 != h.record.Fingerprint {
		x.payer = t.UserData64
	}
	switch t.Code {
	case codeCheck:
		x.first(t.DebitAccountID, charge)
		x.checked = true
		if t.Flags&flagPost != 0 {
			x.taken += int64(lowUint64(t.Amount))
		}
		x.mark = mark
		if pending && t.Timeout > 0 { // a window of which nothing was taken
			x.addPiece(t, mark, h.record.At.UnixMilli()+timeoutMS(t))
		}
		return
	case codeRefund, codeGrown:
		x.total = t.UserData64
		return
	}
	x.first(t.DebitAccountID, charge)
	switch {
	case resolves:
		if at := slices.Index(x.ids, t.PendingID); at >= 0 {
			x.voided, x.voidedAt = x.pieces[at], mark
			x.pieces[at].Units = 0
		}
		x.total = t.UserData64
	case pending && t.Code == codeTake:
		x.taken += int64(lowUint64(t.Amount))
		x.addPiece(t, mark, h.record.At.UnixMilli()+timeoutMS(t))
	case pending:
		x.total = t.UserData64
		x.addPiece(t, mark, x.untilOf(t, mark, h.step))
	case t.Code == codeTake:
		x.taken += int64(lowUint64(t.Amount))
		x.mark = mark
	default:
		x.addPart(charge, int64(t.UserData64)-1)
	}
}

// timeoutMS returns the timeout of a pending transfer in milliseconds.
func timeoutMS(t *tb.Transfer) int64 { return int64(t.Timeout) * 1000 }

// addPiece adds a piece for a pending transfer. The first piece has the full length of the limit's
// window or timeout.
func (x *holdingHistory) addPiece(t *tb.Transfer, mark, until int64) {
	units := int64(lowUint64(t.Amount))
	if t.Code == codeCheck {
		units = 0
	}
	x.ids = append(x.ids, t.ID)
	x.pieces = append(x.pieces, driver.Piece{Units: units, Mark: mark, Until: until})
	x.length = cmp.Or(x.length, t.Timeout)
}

// untilOf returns the end of units that an update took again. The cluster returns them up to a
// second later, because it counts timeouts in whole seconds, and over several updates these seconds
// must not add up. So units that are the rest of a voided piece end when that piece would have, and
// other units end with the holding's first piece. Units that an extend renewed, or that were added
// after the first piece ended, end by their own timeout.
func (x *holdingHistory) untilOf(t *tb.Transfer, mark, step int64) int64 {
	at := timestampMS(t.Timestamp)
	switch extended := step&1 == stepExtend&1; {
	case extended:
	case x.voidedAt == mark-1:
		return x.voided.Until
	case len(x.pieces) > 0 && at < x.pieces[0].Until:
		return x.pieces[0].Until
	}
	return at + timeoutMS(t)
}

func (x *holdingHistory) first(account tb.Uint128, charge int) {
	if x.account == (tb.Uint128{}) {
		x.account = account
		x.parts = []driver.Part{{Charge: charge}}
	}
}

// addPart applies a record of what a charge stands for.
func (x *holdingHistory) addPart(charge int, units int64) {
	at := slices.IndexFunc(x.parts, func(p driver.Part) bool { return p.Charge == charge })
	if at < 0 {
		at = len(x.parts)
		x.parts = append(x.parts, driver.Part{Charge: charge})
	}
	x.parts[at].Units, x.total = units, 0
	if len(x.parts) == 1 { // an adjust that moved no units has no other record
		x.total = uint64(units) + 1
	}
}

// holdings adds the holdings of a live lease to its record.
func (s *Store) holdings(ctx context.Context, h *leaseHistory) error {
	ids := make([]tb.Uint128, len(h.holdings))
	for i := range h.holdings {
		ids[i] = h.holdings[i].account
	}
	accounts, err := s.accounts(ctx, ids)
	if err != nil {
		return err
	}
	for i := range h.holdings {
		a := accounts[ids[i]]
		if a == nil {
			return unexpected("lookup_accounts", "no account of a lease's holding")
		}
		hold := s.holding(&h.holdings[i], a)
		h.record.Expires = leaseEnd(h.record.Expires, hold.Limit.Kind, hold.Pieces)
		if i == 0 {
			hold.Pieces = slices.Insert(hold.Pieces, 0, tokenPiece(h.token(), h.record.Seq, h.extended))
		}
		h.record.Holdings = append(h.record.Holdings, hold)
	}
	return nil
}

// setToken begins the chain of an update, whose header is the lease's new token.
func (h *leaseHistory) setToken(t *tb.Transfer) {
	h.step, h.index = int64(t.UserData64), 0
	h.extended = extendedBy(h.extended, h.token())
}

// token returns the step of the lease's token.
func (h *leaseHistory) token() int64 {
	if h.step < stepAdjust {
		return 0
	}
	return h.step & stepMask
}

// holding returns a holding of a recovered lease. It has this server's definition of the limit if
// the server has one.
func (s *Store) holding(x *holdingHistory, a *tb.Account) driver.Holding {
	kind := kindOf(a.Code)
	limit, subject := s.names(a, kind, x)
	units := x.taken
	if kind == weir.Bucket {
		units /= 1000
	}
	if x.total > 0 {
		units = int64(x.total - 1)
	}
	if len(x.parts) == 1 {
		x.parts[0].Units = units
	}
	hold := driver.Holding{Take: driver.Take{
		Subject: subject, Limit: limit, Ceiling: limit.Capacity, Parts: x.parts,
	}}
	switch kind {
	case weir.Bucket:
		hold.Pieces = []driver.Piece{{Units: units, Mark: x.mark}}
	case weir.Budget:
		end := int64(a.UserData32) * 1000
		hold.Pieces = []driver.Piece{{Units: units, Until: end, Mark: x.mark}, accountPiece(a.ID)}
	default:
		for k, p := range x.pieces {
			if p.Units > 0 || k == 0 && kind == weir.Window {
				hold.Pieces = append(hold.Pieces, p)
			}
		}
	}
	return hold
}

// names returns the limit and the subject that an account belongs to. If this server has used the
// limit, both are known. Otherwise the definitions may have the limit's name, and the rest is made
// up from the transfers.
func (s *Store) names(a *tb.Account, kind weir.Kind, x *holdingHistory) (*weir.Limit, weir.Subject) {
	if state := s.states.byAccountName(accountName{a.UserData128, a.UserData64, kind}); state != nil {
		if l := state.last.Load(); l != nil {
			return l, state.key.Subject
		}
	}
	length := time.Duration(max(x.length, 1)) * time.Second
	l := &weir.Limit{Name: s.limitName(a.UserData64), Kind: kind, Capacity: 1, Shadow: !x.checked}
	switch kind {
	case weir.Bucket:
		l.RefillAmount, l.RefillPeriod = 1, time.Minute
	case weir.Window:
		l.Window = length
	case weir.Concurrency:
		l.Timeout = length
	case weir.Budget:
		l.Every, l.Zone = "month", "UTC"
	}
	if normal, err := l.Normalize(); err == nil {
		l = &normal
	}
	return l, unnamedSubject(a.ID, a, x.payer)
}
