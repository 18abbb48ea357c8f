// Package admin administers one namespace of a table: limits, entities, the audit, usage and
// listings.
//
// An [Admin] makes a change in three steps. A plan function reads the items concerned and adds
// writes to a [Change], each under the condition that its item is as it was read. The writes go out
// in one transaction together with the audit event. If a condition fails, another writer has
// changed an item, and the change is planned again from a new read.
//
// After a change the Admin informs the bucket store of this process
// (bucketitem.Store.ApplyConfigChange), so that no reservation is judged by an item from before the
// change. Changes that concern more bucket items than a transaction can hold, such as a new parent
// or the deletion of an entity, are made group by group. Each such change can be repeated after an
// interruption and makes progress each time.
//
// Listings read the table's indexes, which lag behind the table by a moment. Only the lookup of the
// principal has a lock; all other state is on the table.
package admin

import (
	"context"
	"errors"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// Admin changes and lists the contents of one namespace.
type Admin struct {
	Client  *client.Client
	config  *config.Reader
	buckets *bucketitem.Store
	Options Options
	running *client.Tasks
	Caller  principalLookup // the owner of the store's credentials
}

// Options are the options of an Admin.
type Options struct {
	// Principal is the name under which the audit records changes; empty for the caller's ARN.
	Principal string
	// OnError is called with errors that occur outside of calls; nil to ignore them.
	OnError func(error)
}

// New returns the administration of the namespace of s.
func New(s *bucketitem.Store, o Options) *Admin {
	return &Admin{
		Client: s.Client, config: s.Config, buckets: s, Options: o,
		running: s.Running,
	}
}

// Bounds of a change of the configuration.
const (
	// MaxPlans is the largest number of times that a change is planned because another writer was
	// faster.
	MaxPlans = 8
	// maxSends is the largest number of times that one transaction is sent.
	maxSends = 6
)

// Change is a change of the configuration together with its audit events, in one transaction.
type Change struct {
	client.Transaction
	namespace string
	now       time.Time
	principal string
	// retention is the number of days for which an audit event is kept. A plan that adds events
	// sets it.
	retention int64
	events    int
	// claim is the condition of an apply of a limits file; nil for other changes.
	claim *client.Expression
}

// errMoved reports that an item has changed after it was read for a plan.
var errMoved = errors.New("the configuration was changed by another writer")

// ChangeConfig runs a plan and writes the change. If another writer was faster, it runs the plan
// again. A plan that adds no writes has nothing to change.
func (a *Admin) ChangeConfig(
	ctx context.Context, now time.Time, plan func(ctx context.Context, t *Change) error,
) error {
	principal, err := a.Principal(ctx)
	if err != nil {
		return err
	}
	for attempt := range MaxPlans {
		t := &Change{
			Transaction: client.Transaction{Table: a.Client.TableName},
			namespace:   a.config.Namespace, now: now, principal: principal,
		}
		if id := declare.ClaimOf(ctx); id != "" {
			if err := a.requireClaim(ctx, t, id); err != nil {
				return err
			}
		}
		if err := plan(ctx, t); err != nil {
			return err
		}
		if len(t.Items) == 0 {
			return nil
		}
		if t.claim != nil {
			t.Check(schema.ApplyMarkKey(a.config.Namespace), t.claim)
		}
		if err := a.send(ctx, now, t); !errors.Is(err, errMoved) {
			return err
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return err
		}
	}
	return &weir.Error{
		Code: weir.Unavailable, Reason: "other writers changed the same part of the configuration during every attempt", Err: errMoved,
	}
}

// send writes a change. Its token makes it safe to send the transaction again after a lost answer.
func (a *Admin) send(ctx context.Context, now time.Time, t *Change) error {
	token := weir.NewLeaseID(now).String()
	in := &ddb.TransactWriteItemsInput{TransactItems: t.Items, ClientRequestToken: &token}
	var err error
	for attempt := range maxSends {
		_, err = a.Client.API.TransactWriteItems(ctx, in)
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			return nil
		case client.WriteRefused:
			return errMoved
		case client.WriteConflicted, client.WriteThrottled:
			if waiting := client.BackOff(ctx, attempt); waiting != nil {
				return client.Classify(err)
			}
		default:
			return client.Classify(err) // the SDK has retried already
		}
	}
	return client.Classify(err)
}
