//go:build cgo

package tigerbeetle

import (
	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// role is what an event of a chain is for.
type role uint8

const (
	roleFund role = iota
	roleHeader
	roleRefill
	roleCheck
	roleTake
	// roleResolve ends a pending transfer of the same chain or of one before.
	roleResolve
	roleRecord
	roleBack
)

// event is what one transfer of a call is for, and on which holding.
type event struct {
	role    role
	holding int
	// mark is that of the piece which ends.
	mark int64
}

// chain is one call: events that stand for themselves first, then a linked chain of a lease.
type chain struct {
	n      *namespace
	lease  weir.LeaseID
	number tb.Uint128
	// step numbers what is done to the lease, index the events of a step.
	step  int64
	ids   stepBytes
	index int

	transfers []tb.Transfer
	events    []event
	// linked is where the chain begins.
	linked int
}

// headerData is what a header says of its call.
type headerData struct {
	code        uint16
	fingerprint uint64
	amount      uint64
	extra       uint32
}

// newChain begins a call for a lease; size is the capacity for its events.
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

// recycle reuses the memory of a chain whose call has returned its results, because the client no
// longer reads it. After a call that failed the client still may.
func (s *Store) recycle(c *chain) { s.chains.Put(c) }

// addUnlinked adds an event that stands for itself. No event of the chain may have been added.
func (c *chain) addUnlinked(t *tb.Transfer, holding int) {
	t.Ledger = c.n.ledger
	c.transfers = append(c.transfers, *t)
	c.events = append(c.events, event{roleFund, holding, 0})
	c.linked = len(c.transfers)
}

// header is the first event of a chain, and the lease's token from then on: a pending transfer,
// which the next update ends.
func (c *chain) header(id tb.Uint128, h headerData) {
	c.addWithID(&tb.Transfer{
		ID: id, DebitAccountID: c.n.vault, CreditAccountID: c.n.register, Code: h.code, Flags: flagPending,
		Amount: tb.ToUint128(h.amount), UserData128: c.number, UserData64: h.fingerprint, UserData32: h.extra,
	}, roleHeader, 0)
}

// add adds an event of the lease, and gives it its ID.
func (c *chain) add(t *tb.Transfer, r role, holding int) {
	c.index++
	t.ID = c.ids.event(c.index)
	t.UserData128 = c.number
	c.addWithID(t, r, holding)
}

// addWithID adds an event that has an ID.
func (c *chain) addWithID(t *tb.Transfer, r role, holding int) {
	t.Ledger = c.n.ledger
	t.Flags |= flagLinked
	c.transfers = append(c.transfers, *t)
	c.events = append(c.events, event{r, holding, 0})
}

// mark is what marks a piece that the transfer added last has made.
func (c *chain) mark() int64 { return c.step<<markBits | int64(c.index) }

// markBits is how many bits of a mark are the index.
const markBits = 12

// markedID is the ID of the transfer that a mark stands for.
func markedID(lease weir.LeaseID, mark int64) tb.Uint128 {
	return transferID(lease, mark>>markBits, int(mark&(1<<markBits-1)))
}

// keys records the keys of a lease's charges.
func (c *chain) keys(keys []uint64) {
	for charge, key := range keys {
		c.add(&tb.Transfer{
			DebitAccountID: c.n.vault, CreditAccountID: c.n.register, Code: codeKey,
			UserData64: key, UserData32: uint32(charge),
		}, roleRecord, 0)
	}
}

// addVoidOrPost voids a pending transfer, or posts a part of it.
func (c *chain) addVoidOrPost(pending tb.Uint128, flag uint16, amount, total uint64, holding int) {
	t := tb.Transfer{PendingID: pending, Flags: flag, Amount: tb.ToUint128(amount), UserData64: total}
	c.add(&t, roleResolve, holding)
}

// chainResult is the first answer of a chain that says why it failed.
type chainResult struct {
	created bool
	status  tb.CreateTransferStatus
	event   event
	// at is when it was created, in Unix milliseconds.
	at int64
}

// result reads the answers to a call.
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

// exists reports whether an ID was used before, for the same or for something else.
func exists(s tb.CreateTransferStatus) bool {
	return s == tb.TransferExists || s >= tb.TransferExistsWithDifferentFlags && s <= tb.TransferExistsWithDifferentCode ||
		s == tb.TransferExistsWithDifferentLedger
}
