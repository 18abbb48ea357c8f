package kernel

import "math"

// Bucket counts a bucket limit. See the package documentation.
type Bucket struct {
	// Rate is the capacity and the refill.
	Rate Rate
	// BalanceMilli is the balance at SeenMS, in milli-units.
	BalanceMilli int64
	// SeenMS is the latest instant that the bucket has seen.
	SeenMS int64
}

// NewBucket returns a bucket that is full.
func NewBucket(now int64, d Definition) *Bucket {
	r := d.Rate()
	return &Bucket{Rate: r, BalanceMilli: r.CapacityMilli, SeenMS: now}
}

// at returns the balance at now. A forgotten bucket is full.
func (b *Bucket) at(now int64) int64 {
	if b.Idle(now, ForgetMS) {
		return b.Rate.CapacityMilli
	}
	return b.Rate.Refill(b.BalanceMilli, b.SeenMS, now)
}

// touch moves the bucket to now.
func (b *Bucket) touch(now int64) {
	if now > b.SeenMS {
		b.BalanceMilli, b.SeenMS = b.at(now), now
	}
}

// Redefine implements [Counter]. The bucket is first refilled up to now under the old definition,
// and then trimmed if the capacity is lower. A forgotten bucket stays forgotten, and is full under
// any definition: SeenMS becomes the instant at which it was full, so that [Bucket.Idle] still
// holds.
func (b *Bucket) Redefine(now int64, d Definition) {
	if b.Idle(now, ForgetMS) {
		b.SeenMS = b.Rate.FullAt(b.BalanceMilli, b.SeenMS)
		b.BalanceMilli = math.MaxInt64
	} else {
		b.touch(now)
	}
	b.Rate = d.Rate()
	b.BalanceMilli = min(b.BalanceMilli, b.Rate.CapacityMilli)
}

// Available implements [Counter].
func (b *Bucket) Available(now int64) int64 {
	if b.Idle(now, ForgetMS) {
		return Units(b.Rate.CapacityMilli)
	}
	b.touch(now)
	return Units(b.BalanceMilli)
}

// AvailableAt implements [Counter].
func (b *Bucket) AvailableAt(now int64, d Definition) int64 {
	then := *b
	then.Redefine(now, d)
	return then.Available(now)
}

// FitsAt implements [Counter].
func (b *Bucket) FitsAt(now, n int64) int64 {
	now = max(now, b.SeenMS)
	return b.Rate.ReachedAt(b.at(now), n*milliPerUnit, now)
}

// CanCount implements [Counter]. The debt must fit 64 bits.
func (b *Bucket) CanCount(now int64, c Change) bool {
	milli, ok := Milli(c.To - c.From)
	return ok && b.at(max(now, b.SeenMS)) >= math.MinInt64+milli
}

// Take implements [Counter].
func (b *Bucket) Take(now, n int64) (Piece, bool) {
	b.touch(now)
	b.BalanceMilli -= n * milliPerUnit
	return Piece{}, false
}

// Apply implements [Counter]. It takes more, into debt if necessary, or gives back up to the
// capacity.
func (b *Bucket) Apply(now int64, c Change) []Piece {
	b.touch(now)
	if c.To >= c.From {
		b.BalanceMilli -= (c.To - c.From) * milliPerUnit
	} else if milli, ok := Milli(c.From - c.To); ok {
		b.BalanceMilli = b.Rate.Refund(b.BalanceMilli, milli)
	} else {
		b.BalanceMilli = b.Rate.CapacityMilli // enough to fill it from the deepest debt
	}
	return nil
}

// InUse implements [Counter].
func (b *Bucket) InUse(now int64) bool {
	return b.Rate.Refill(b.BalanceMilli, b.SeenMS, now) < b.Rate.CapacityMilli
}

// Idle implements [Counter]. A bucket has something in use until it is full.
func (b *Bucket) Idle(now, forMS int64) bool {
	return now-b.SeenMS >= forMS && now-forMS >= b.Rate.FullAt(b.BalanceMilli, b.SeenMS)
}

// Clone implements [Counter].
func (b *Bucket) Clone() Counter {
	out := *b
	return &out
}
