package oracle

import "math/big"

// budget is a limit per calendar period.
type budget struct {
	calendar *calendar
	capacity int64
	used     map[int64]*big.Int // by the epoch minute at which the period starts
}

func (b *budget) usedIn(start int64) *big.Int {
	if b.used[start] == nil {
		b.used[start] = new(big.Int)
	}
	return b.used[start]
}

func (b *budget) available(at int64) *big.Int {
	used := b.usedIn(b.calendar.period(at).start)
	return new(big.Int).Sub(big.NewInt(b.capacity), used)
}

// change charges the period in which the lease was reserved, whenever it comes.
func (b *budget) change(_ int64, p *part, total int64) {
	used := b.usedIn(b.calendar.period(p.reservedAt).start)
	used.Sub(used, big.NewInt(p.total))
	used.Add(used, big.NewInt(total))
	p.total = total
}
