package bucketitem

import (
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// itemExpression builds the expressions of one write of a bucket item.
type itemExpression struct{ client.Expression }

// WriteMilli is what each write takes from the limit that counts writes. It is never divided, and
// counts the write, not what goes with it.
const WriteMilli = 1000

// requireUnrestricted requires that nothing about the item forbids judging by the stored balances.
func (e *itemExpression) requireUnrestricted(now int64) {
	e.RequireAbsent(schema.AttrDisabled)
	e.RequireAbsentOr(schema.AttrVU, ">", now)
	e.RequireAbsentOr(schema.AttrTTL, ">", seconds(now))
}

// chargeWrite charges the write itself.
func (e *itemExpression) chargeWrite(required bool) {
	balance := schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance)
	e.AddNumber(balance, -WriteMilli)
	e.AddNumber(schema.BucketAttribute(schema.WritesLimit, schema.FieldConsumed), WriteMilli)
	if required {
		e.Require(balance, ">=", WriteMilli)
	}
}

// requireDefinition requires a limit to be stored as it was seen.
func (e *itemExpression) requireDefinition(l *schema.BucketLimit) {
	e.Require(schema.BucketAttribute(l.Name, schema.FieldCapacity), "=", l.Capacity)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldRefill), "=", l.Refill)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldPeriod), "=", l.PeriodMS)
}

// addLimit writes a limit that the item does not have, or has only in part; guarded requires that
// this is still so.
func (e *itemExpression) addLimit(c *LimitImage, balance, consumed int64, guarded bool) {
	for _, f := range []struct {
		field string
		n     int64
	}{
		{schema.FieldBalance, balance}, {schema.FieldCapacity, c.Capacity}, {schema.FieldRefill, c.Refill},
		{schema.FieldPeriod, c.PeriodMS}, {schema.FieldConsumed, consumed},
	} {
		e.SetNumber(schema.BucketAttribute(c.Name, f.field), f.n)
	}
	if !guarded {
		return
	}
	absent := "attribute_not_exists("
	e.Conditions = append(e.Conditions, "("+
		absent+e.Name(schema.BucketAttribute(c.Name, schema.FieldCapacity))+") OR "+
		absent+e.Name(schema.BucketAttribute(c.Name, schema.FieldBalance))+"))")
}

// seconds returns the second that a millisecond falls in.
func seconds(ms int64) int64 {
	return schema.TTL(ms, 0)
}

// difference returns a − b, and whether it fits.
func difference(a, b int64) (int64, bool) {
	d := a - b
	return d, (d < a) == (b > 0)
}
