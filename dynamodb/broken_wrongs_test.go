package dynamodb

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// wrongs returns the faults that a writer could have, each with the names of the cases that catch
// it.
func wrongs() []*wrong {
	return slices.Concat(unconditional(), miscounted(), misdirectedWrites(), wrongItems(), wrongWrites(), missedChanges())
}

// dropped returns a fault that removes a condition.
func dropped(name, attribute, caught string) *wrong {
	return &wrong{name: name, caught: []string{caught}, update: func(u *bucketUpdate) {
		u.requires = without(u.requires, u.of(attribute))
	}}
}

// unconditional returns writes that lack one of their conditions.
func unconditional() []*wrong {
	stores := func(field string) func(u *bucketUpdate) func(clause string) bool {
		return func(u *bucketUpdate) func(clause string) bool {
			return func(c string) bool { return u.of(field)(c) && strings.Contains(c, " = ") }
		}
	}
	return []*wrong{
		{name: "the refill is no lock", caught: []string{"write rule: two refills"},
			update: func(u *bucketUpdate) {
				if u.refills() {
					u.requires = without(u.requires, u.of(schema.AttrRF))
				}
			}},
		{name: "a refill does not look what was given back", caught: []string{"write rule: a refill beside"},
			update: func(u *bucketUpdate) {
				if u.refills() {
					u.unbounded(false, true)
				}
			}},
		{name: "a charge does not look what was given back", caught: []string{"write rule: a charge beside"},
			update: func(u *bucketUpdate) {
				if !u.refills() {
					u.unbounded(false, true)
				}
			}},
		{name: "a charge does not look what was taken", caught: []string{"write rule: two charges", "concurrent requests"},
			update: func(u *bucketUpdate) { u.unbounded(true, false) }},
		dropped("a cold charge does not look what there is", schema.FieldBalance, "write rule: a cold charge"),
		{name: "a definition that changed is not noticed", caught: []string{"write rule: a definition"},
			update: func(u *bucketUpdate) {
				for _, f := range []string{schema.FieldCapacity, schema.FieldRefill, schema.FieldPeriod} {
					u.requires = without(u.requires, stores(f)(u))
				}
			}},
		dropped("a count of shards is not noticed", schema.AttrShardCount, "write rule: a shard count"),
		dropped("a bucket that is switched off is used", schema.AttrDisabled, "write rule: a bucket"),
		dropped("a stamp is not noticed", schema.AttrVU, "write rule: an item that is stamped"),
		dropped("an expired item is used", schema.AttrTTL, "write rule: an item that has expired"),
		{name: "a refund needs nothing", caught: []string{"write rule: an item that was deleted"},
			update: func(u *bucketUpdate) {
				if u.refund() {
					u.requires = nil
				}
			}},
		{name: "an rf that was set back is not noticed", caught: []string{"write rule: a refill that was set back"},
			update: func(u *bucketUpdate) {
				if !u.refills() {
					u.requires = without(u.requires, u.of(schema.AttrRF))
				}
			}},
		{name: "a new item takes the place of another", caught: []string{"write rule: two processes create an item"},
			put: func(in *ddb.PutItemInput) {
				in.ConditionExpression, in.ExpressionAttributeNames = nil, nil
			}},
	}
}

// miscounted returns writes with wrong numbers.
func miscounted() []*wrong {
	writes := schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance)
	return []*wrong{
		{name: "a credit of a thousandth is dropped", caught: []string{"S1"}, update: func(u *bucketUpdate) {
			u.adds = without(u.adds, func(c string) bool {
				return u.refills() && u.of(schema.FieldBalance)(c) && u.value(c) == 1
			})
		}},
		{name: "a refill credits only the limits that are asked", caught: []string{"S2"}, update: func(u *bucketUpdate) {
			if !u.refills() {
				return
			}
			charged := func(c string) bool {
				limit, _, _ := schema.ParseBucketAttribute(u.attribute(c))
				return slices.ContainsFunc(u.adds, u.of(schema.BucketAttribute(limit, schema.FieldConsumed)))
			}
			u.adds = without(u.adds, func(c string) bool { return u.of(schema.FieldBalance)(c) && !charged(c) })
		}},
		{name: "rf moves backwards", caught: []string{"C1: clock skew, two"}, update: func(u *bucketUpdate) {
			for _, c := range u.sets {
				if u.attribute(c) == schema.AttrRF {
					u.change(c, u.value(c)-5000)
				}
			}
		}},
		{name: "writes are never credited", caught: []string{"W1: writes are credited,"}, update: func(u *bucketUpdate) {
			for _, c := range u.adds {
				if u.attribute(c) == writes {
					u.change(c, -bucketitem.WriteMilli)
				}
			}
		}},
		{name: "credited writes are divided by the shards", caught: []string{"W1: writes are credited fully"},
			update: func(u *bucketUpdate) {
				for _, c := range u.adds {
					if u.attribute(c) == writes && u.refills() {
						u.change(c, (u.value(c)+bucketitem.WriteMilli)/8-bucketitem.WriteMilli)
					}
				}
			}},
		{name: "refunds are not trimmed", caught: []string{"R1: balance above capacity after a refund", "R1: balance above capacity after a refund to"},
			update: untrimmed},
		{name: "a lowered capacity does not trim", caught: []string{"L2: changed limits, a lowered one at the resource"},
			update: func(u *bucketUpdate) {
				lowers := slices.ContainsFunc(u.sets, u.of(schema.FieldCapacity))
				u.adds = without(u.adds, func(c string) bool {
					return lowers && u.of(schema.FieldBalance)(c) && u.value(c) < -50_000
				})
			}},
		{name: "a limit that is added is empty", caught: []string{"L1: changed limits, one more at the resource"},
			update: func(u *bucketUpdate) {
				for _, c := range u.sets {
					if u.of(schema.FieldBalance)(c) {
						u.change(c, 0)
					}
				}
			}},
		{name: "what is consumed is not counted", caught: []string{"concurrent requests", "W4"},
			update: func(u *bucketUpdate) { u.adds = without(u.adds, u.of(schema.FieldConsumed)) }},
	}
}

// untrimmed makes an update refund the full amount, whatever the balance.
func untrimmed(u *bucketUpdate) {
	for _, c := range u.adds {
		limit, field, _ := schema.ParseBucketAttribute(u.attribute(c))
		n := u.value(c)
		if field != schema.FieldConsumed || n >= 0 || limit == schema.WritesLimit {
			continue
		}
		balance := schema.BucketAttribute(limit, schema.FieldBalance)
		u.requires = without(u.requires, u.of(balance))
		i := slices.IndexFunc(u.adds, u.of(balance))
		if i < 0 {
			u.adds = append(u.adds, balanceClause(u, balance, -n))
			return
		}
		u.change(u.adds[i], max(u.value(u.adds[i]), -n))
	}
}

// balanceClause returns an ADD term for an attribute that the update does not name yet.
func balanceClause(u *bucketUpdate, attribute string, n int64) string {
	u.in.ExpressionAttributeNames["#n990"] = attribute
	u.in.ExpressionAttributeValues[":v990"] = schema.Number(n)
	return "#n990 :v990"
}

// refund reports whether an update refunds units and takes none.
func (u *bucketUpdate) refund() bool {
	gives := false
	for _, c := range u.adds {
		if u.of(schema.FieldConsumed)(c) {
			if u.value(c) > 0 {
				return false
			}
			gives = true
		}
	}
	return gives
}

// dropsUpdates returns a fault that drops the selected updates and reports them as applied.
func dropsUpdates(which func(u *bucketUpdate) bool) func(*bucketUpdate) {
	return func(u *bucketUpdate) {
		if which(u) {
			u.adds = without(u.adds, func(c string) bool { return !strings.Contains(u.attribute(c), schema.WritesLimit) })
		}
	}
}

// misdirectedWrites returns writes that go to another item, are sent twice, or are not sent.
func misdirectedWrites() []*wrong {
	return []*wrong{
		{name: "a refund goes to the first shard", caught: []string{"W2", "W3"}, update: func(u *bucketUpdate) {
			if u.refund() && u.id.Shard > 0 {
				id := u.id
				id.Shard = 0
				u.in.Key = id.Key().Item()
				u.requires = nil
			}
		}},
		{name: "a lease from a second shard is not settled", caught: []string{"W3"},
			update: dropsUpdates(func(u *bucketUpdate) bool { return u.id.Shard > 0 && u.kind() != "cold" })},
		{name: "a parent is not charged", caught: []string{"W4", "concurrent requests that together pass a limit, a parent's"},
			update: dropsUpdates(func(u *bucketUpdate) bool { return u.id.Entity == "parent" || u.id.Entity == testEntity })},
		{name: "the units of a denied reservation are not refunded", caught: []string{"X1", "denied by one limit", "over-reservation",
			"O2: default changes reach every process, all limits removed"},
			update: dropsUpdates((*bucketUpdate).refund)},
		{name: "a write without an answer is made again", caught: []string{"an unanswered charge", "double refunds, of which"},
			send: func(_ context.Context, _ *bucketUpdate, send func() error) error {
				err := send()
				if err != nil && client.OutcomeOf(err).Kind == client.WriteUnknown {
					_ = send()
					_ = send()
				}
				return err
			}},
	}
}

// wrongItems returns items and stores with other faults.
func wrongItems() []*wrong {
	return []*wrong{
		{name: "a removed limit stays", caught: []string{"removed limits", "N1"},
			update: func(u *bucketUpdate) {
				u.removes = without(u.removes, func(c string) bool { return strings.HasPrefix(u.attribute(c), "b_") })
			}},
		{name: "a debt may expire", caught: []string{"write rule: a debt"},
			update: func(u *bucketUpdate) { u.sets = without(u.sets, u.of(schema.AttrTTL)) }},
		{name: "names stand in expressions", caught: []string{"N1"}, update: inlined},
		{name: "what a new shard has is not taken from another", caught: []string{"images on a bucket"},
			update: func(u *bucketUpdate) {
				u.adds = without(u.adds, func(c string) bool { return u.together && u.of(schema.FieldBalance)(c) })
			}},
		{name: "what moves into a new shard need not be there any more", caught: []string{"new shard: has half of what a known charge left"},
			update: func(u *bucketUpdate) {
				if u.together {
					u.unbounded(true, false)
				}
			}},
		{name: "a new shard is in no index of the entity", caught: []string{"E1"}, put: func(in *ddb.PutItemInput) {
			delete(in.Item, schema.AttrGSI3PK)
		}},
		{name: "a new item is in no index of the namespace", caught: []string{"P1"}, put: func(in *ddb.PutItemInput) {
			delete(in.Item, schema.AttrGSI4PK)
			delete(in.Item, schema.AttrGSI4SK)
		}},
		{name: "brought limits are not looked at", caught: []string{"O1"},
			store: func(s *Store) driver.Store { return withoutBrought{s} }},
		{name: "a fast clock is not reported", caught: []string{"C1: clock skew, ten"},
			store: func(s *Store) driver.Store { return withoutClock{s} }},
		{name: "a refund in doubt is not reported", caught: []string{
			"a refund without an answer is in doubt, the answer", "a refund without an answer is in doubt, the request"},
			store: func(s *Store) driver.Store { return fixedDoubt{s, false} }},
		{name: "every refund is in doubt", caught: []string{"a refund with an answer is not in doubt"},
			store: func(s *Store) driver.Store { return fixedDoubt{s, true} }},
		{name: "the process counts when the table is gone", caught: []string{"H1: errors around on_unavailable, block"},
			store: func(s *Store) driver.Store { return admitsUnavailable{s} }},
	}
}

// plainName matches the names that DynamoDB's grammar accepts without an alias.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// inlined writes the names of limits into the expressions instead of aliases.
func inlined(u *bucketUpdate) {
	for alias, name := range u.in.ExpressionAttributeNames {
		if plainName.MatchString(name) {
			continue
		}
		for _, clauses := range [][]string{u.sets, u.adds, u.removes, u.requires} {
			for i := range clauses {
				clauses[i] = regexp.MustCompile(alias+`\b`).ReplaceAllString(clauses[i], name)
			}
		}
	}
}

// withoutBrought ignores the limits that a request brings.
type withoutBrought struct{ *Store }

// Reserve takes up to the capacities.
func (d withoutBrought) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	c := p.Clone()
	for _, t := range c.Takes {
		t.Ceiling = t.Limit.Capacity
	}
	return d.Store.Reserve(ctx, now, c, out)
}

// withoutClock does not know the table's clock.
type withoutClock struct{ *Store }

// ClockOffset returns 0.
func (withoutClock) ClockOffset() time.Duration { return 0 }

// fixedDoubt gives the same answer for every settlement to the question whether a refund is in
// doubt.
type fixedDoubt struct {
	*Store
	doubt bool
}

// Update updates, and sets RefundInDoubt.
func (c fixedDoubt) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	err := c.Store.Update(ctx, now, u, out)
	if err == nil {
		out.RefundInDoubt = c.doubt
	}
	return err
}

// admitsUnavailable admits reservations if the table does not answer.
type admitsUnavailable struct{ *Store }

// Reserve reserves, and admits if the table does not answer.
func (l admitsUnavailable) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	err := l.Store.Reserve(ctx, now, p, out)
	if isUnavailable(err) {
		return nil
	}
	return err
}

// ReserveUnplanned reserves, or returns without a reservation if the table does not answer.
func (l admitsUnavailable) ReserveUnplanned(
	ctx context.Context, now time.Time, u *driver.Unplanned,
) (*driver.Plan, *driver.Outcome, error) {
	p, out, err := l.Store.ReserveUnplanned(ctx, now, u)
	if isUnavailable(err) {
		return nil, nil, nil
	}
	return p, out, err
}
