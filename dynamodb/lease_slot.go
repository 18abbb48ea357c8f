package dynamodb

import (
	"math/rand/v2"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/schema"
)

// newVersion returns a version for a slot, which no other write has. Its last half is not 0.
func newVersion() uint64 {
	for {
		if v := rand.Uint64(); uint32(v) != 0 {
			return v
		}
	}
}

// reservedSlot returns the slot of a lease after an outcome that admitted the plan.
func reservedSlot(p *driver.Plan, out *driver.Outcome) *schema.Lease {
	record := p.Record(out)
	l := liveSlot(&record)
	for i, t := range p.Takes {
		l.Takes = append(l.Takes, slotTake(t, t.Parts, out.Taken[i].Pieces))
	}
	return l
}

// updatedSlot returns the slot of a lease after an update. pieces has the units of each holding on
// the table.
func updatedSlot(now time.Time, u *driver.Update, pieces [][]shardPiece) *schema.Lease {
	if u.Ends() {
		l := &schema.Lease{
			Version: newVersion(), State: schema.LeaseCompleted, EndedMS: now.UnixMilli(),
			EndFingerprint: u.Fingerprint,
		}
		if u.Verb == weir.VerbCancel {
			l.State = schema.LeaseCancelled
		}
		return l
	}
	l := liveSlot(u.Lease)
	switch u.Verb {
	case weir.VerbAdjust:
		l.Seq, l.SeqAtMS = u.Seq, now.UnixMilli()
	case weir.VerbExtend:
		l.ExpiresMS = u.Expires(now).UnixMilli()
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		l.Takes = append(l.Takes, slotTake(&c.Holding.Take, c.Parts, toSeam(pieces[i])))
	}
	return l
}

// liveSlot returns the slot of a live lease without its takes.
func liveSlot(r *driver.LeaseRecord) *schema.Lease {
	l := &schema.Lease{
		Version: newVersion(), State: schema.LeaseLive, Fingerprint: r.Fingerprint,
		AtMS: r.At.UnixMilli(), ExpiresMS: r.Expires.UnixMilli(), Charges: r.Charges, Keys: r.Keys,
	}
	if r.Seq != 0 {
		l.Seq, l.SeqAtMS = r.Seq, r.SeqAt.UnixMilli()
	}
	return l
}

func slotTake(t *driver.Take, parts []driver.Part, pieces []driver.Piece) schema.LeaseTake {
	of := schema.LeaseTake{Subject: t.Subject, Limit: t.Limit.Name}
	if t.Level == weir.LevelRequest {
		of.Brought = t.Limit
	}
	for _, p := range parts {
		of.Parts = append(of.Parts, schema.LeasePart(p))
	}
	for _, p := range pieces {
		piece := shardPieceOf(p)
		of.Pieces = append(of.Pieces, schema.LeasePiece{Shard: piece.shard, Milli: piece.milli})
	}
	return of
}

// leaseRecord returns the lease of a slot as the limiter knows it at now.
func leaseRecord(id weir.LeaseID, l *schema.Lease, now time.Time) *driver.LeaseRecord {
	r := &driver.LeaseRecord{
		ID: id, Version: l.Version, State: leaseState(l.State), Fingerprint: l.Fingerprint,
		At: time.UnixMilli(l.AtMS), Expires: time.UnixMilli(l.ExpiresMS), Charges: l.Charges,
		Keys: l.Keys, Seq: l.Seq, SeqAt: time.UnixMilli(l.SeqAtMS),
		EndedAt: time.UnixMilli(l.EndedMS), EndFingerprint: l.EndFingerprint,
	}
	if l.State == schema.LeaseLive && now.UnixMilli() >= l.ExpiresMS {
		r.State, r.EndedAt, r.Keys = driver.LeaseExpired, r.Expires, nil
		return r
	}
	for i := range l.Takes {
		r.Holdings = append(r.Holdings, slotHolding(&l.Takes[i]))
	}
	return r
}

// slotHolding returns the holding of a take in a slot. The slot has the definition of a limit only
// if the request brought it; that of a configured limit is looked up when it is needed.
func slotHolding(t *schema.LeaseTake) driver.Holding {
	h := driver.Holding{Take: driver.Take{
		Subject: t.Subject, Limit: &weir.Limit{Name: t.Limit, Kind: weir.Bucket},
	}}
	if t.Brought != nil {
		h.Limit, h.Level, h.Ceiling = t.Brought, weir.LevelRequest, t.Brought.Capacity
	}
	for _, p := range t.Parts {
		h.Parts = append(h.Parts, driver.Part(p))
	}
	for _, p := range t.Pieces {
		h.Pieces = append(h.Pieces, shardPiece{p.Milli, p.Shard}.toSeam())
	}
	return h
}

func leaseState(s schema.LeaseState) driver.LeaseState {
	switch s {
	case schema.LeaseCompleted:
		return driver.LeaseCompleted
	case schema.LeaseCancelled:
		return driver.LeaseCancelled
	case schema.LeaseVoided:
		return driver.LeaseVoided
	default:
		return driver.LeaseLive
	}
}
