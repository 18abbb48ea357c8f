//go:build cgo

package tigerbeetle

import (
	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// role is the purpose of an event of a chain.
type role uint8

const (
	roleFund role = iota
	roleHeader
	roleRefill
	roleCheck
	roleTake
	// roleResolve ends a pending transfer that this chain or an earlier one made.
	roleResolve
	roleRecord
	roleBack
)

// event is the purpose of one transfer of a call, and the index of the holding that it is for.
type event struct {
	role    role
	holding int
	// mark is the mark of the piece that the event ends.
	mark int64
}

// chain is one create_transfers call: events that are not linked first, then the linked chain of a
// lease.
type chain struct {
	n      *namespace
	lease  weir.LeaseID
	number tb.Uint128
	// step numbers the attempts and updates of the lease, index the events of a step.
	step  int64
	ids   stepBytes
	index int

	transfers []tb.Transfer
	events    []event
	// linked is the index of the first linked event.
	linked int
}

// headerData is the part of a header that depends on the call.
type headerData struct {
	code        uint16
	fingerprint uint64
	amount      uint64
	extra       uint32
}

// newChain returns an empty chain for a lease; room is the number of events to allocate memory for.
func (s *Store) newChain(lease weir.LeaseID, step int64, room int) *chain {
	c, ok := s.chains.Get().(*chain)
	if !ok {
		c = &chain{transfers: make([]tb.Transfer, 0, room), events: make([]event, 0, room)}
	}
	*c = chain{
		n: &s.namespace, lease: lease, number: leaseNumber(lease), step: step, ids: stepID(lease, step),
		transfers: c.transfers[:0], events: c.events[:0],
	}
	return c
}

// recycle keeps the memory of a chain for reuse. It may be called only after the call has returned
// results: the client may still read the events of a call that failed.
func (s *Store) recycle(c *chain) { s.chains.Put(c) }

// addUnlinked adds an event that succeeds or fails alone. It must be called before any linked event
// is added.
func (c *chain) addUnlinked(t *tb.Transfer, holding int) {
	t.Ledger = c.n.ledger
	c.transfers = append(c.transfers, *t)
	c.events = append(c.events, event{roleFund, holding, 0})
	c.linked = len(c.transfers)
}

// header returns the first linked event.
func (c *chain) header() *tb.Transfer { return &c.transfers[c.linked] }

// addHeader adds the first linked event, a pending transfer that is the lease's token until the next
// update ends it.
func (c *chain) addHeader(id tb.Uint128, h headerData) {
	c.addWithID(&tb.Transfer{
		ID: id, DebitAccountID: c.n.vault, CreditAccountID: c.n.register, Code: h.code, Flags: flagPending,
		Amount: tb.ToUint128(h.amount), UserData128: c.number, UserData64: h.fingerprint, UserData32: h.extra,
	}, roleHeader, 0)
}

// add adds an event of the lease and gives it the next ID of the step.
func (c *chain) add(t *tb.Transfer, r role, holding int) {
	c.index++
	t.ID = c.ids.event(c.index)
	t.UserData128 = c.number
	c.addWithID(t, r, holding)
}

// addWithID adds a linked event that already has an ID.
func (c *chain) addWithID(t *tb.Transfer, r role, holding int) {
	t.Ledger = c.n.ledger
	t.Flags |= flagLinked
	c.transfers = append(c.transfers, *t)
	c.events = append(c.events, event{r, holding, 0})
}

// mark returns the mark of a piece made by the event added last.
func (c *chain) mark() int64 { return c.step<<markBits | int64(c.index) }

// markBits is the number of bits of a mark that hold the index of the event; the step is above
// them.
const markBits = 12

// markedID returns the ID of the transfer that a mark stands for.
func markedID(lease weir.LeaseID, mark int64) tb.Uint128 {
	return transferID(lease, mark>>markBits, int(mark&(1<<markBits-1)))
}

// keys adds events that record the keys of a lease's charges.
func (c *chain) keys(keys []uint64) {
	for charge, key := range keys {
		c.add(&tb.Transfer{
			DebitAccountID: c.n.vault, CreditAccountID: c.n.register, Code: codeKey,
			UserData64: key, UserData32: uint32(charge),
		}, roleRecord, 0)
	}
}

// addVoidOrPost adds an event that voids a pending transfer, or posts amount of it.
func (c *chain) addVoidOrPost(pending tb.Uint128, flag uint16, amount, total uint64, holding int) {
	t := tb.Transfer{PendingID: pending, Flags: flag, Amount: tb.ToUint128(amount), UserData64: total}
	c.add(&t, roleResolve, holding)
}

// chainResult is the result of a chain: created, or the status of the event that made it fail.
type chainResult struct {
	created bool
	status  tb.CreateTransferStatus
	event   event
	// at is when the header was created, in Unix milliseconds.
	at int64
}

// result returns the result of the chain. It skips events that failed only because another one did,
// so the status belongs to the event at fault.
func (c *chain) result(results []tb.CreateTransferResult) chainResult {
	v := chainResult{created: true}
	for i := c.linked; i < len(results) && i < len(c.events); i++ {
		switch s := results[i].Status; s {
		case tb.TransferCreated:
			if c.events[i].role == roleHeader {
				v.at = timestampMS(results[i].Timestamp)
			}
		case tb.TransferLinkedEventFailed:
			v.created = false
		default:
			return chainResult{status: s, event: c.events[i]}
		}
	}
	return v
}

// exists reports whether a transfer with the ID exists, with the same content or another.
func exists(s tb.CreateTransferStatus) bool {
	return s == tb.TransferExists || s >= tb.TransferExistsWithDifferentFlags && s <= tb.TransferExistsWithDifferentCode ||
		s == tb.TransferExistsWithDifferentLedger
}
