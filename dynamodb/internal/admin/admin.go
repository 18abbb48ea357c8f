// Package admin administers one namespace of a table: limits, entities, the audit, usage and lists.
//
// A change is planned from what was read and written as one transaction with its audit event; if
// what it was planned on has changed meanwhile, it is planned again. After a change the buckets are
// told, so that no reservation of this process goes by what an item had before.
package admin

import (
	"context"
	"errors"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
)

// Admin changes and lists what one namespace has: limits, entities, audit and usage.
type Admin struct {
	Client  *client.Client
	config  *config.Reader
	buckets *bucketitem.Store
	Options Options
	running *client.Tasks
	Caller  principalLookup // whose credentials the store uses
}

// Options say who administers.
type Options struct {
	// Principal is who changes the configuration; empty for the caller's ARN.
	Principal string
	// OnError is told of what goes wrong outside of calls; nil for nobody.
	OnError func(error)
}

// New returns the administration of a namespace.
func New(s *bucketitem.Store, o Options) *Admin {
	return &Admin{
		Client: s.Client, config: s.Config, buckets: s, Options: o,
		running: s.Running,
	}
}

// Bounds of a change of the configuration.
const (
	// MaxPlans is how often a change is planned anew because what it was planned on has changed.
	MaxPlans = 8
	// maxSends is how often one transaction is sent.
	maxSends = 6
)

// Change is a change of the configuration together with its audit events: it is written whole or
// not at all.
type Change struct {
	client.Transaction
	namespace string
	now       time.Time
	principal string
	// retention is how many days an audit event is kept; a plan that records something sets it.
	retention int64
	events    int
}

// errMoved reports that what a change was planned on has changed meanwhile.
var errMoved = errors.New("the configuration has changed meanwhile")

// ChangeConfig plans a change from what it reads, and writes it. If another writer was faster, it
// plans again. A plan without items is done already.
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
		if err := plan(ctx, t); err != nil {
			return err
		}
		if len(t.Items) == 0 {
			return nil
		}
		if err := a.send(ctx, now, t); !errors.Is(err, errMoved) {
			return err
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return err
		}
	}
	return &weir.Error{
		Code: weir.Unavailable, Reason: "others keep changing the same part of the configuration", Err: errMoved,
	}
}

// send writes a change. Its token makes it safe to send again after an answer was lost.
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
			return client.Classify(err) // the SDK has sent it as often as may help
		}
	}
	return client.Classify(err)
}
