package dynamodb

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

// administration changes and lists what one namespace has: limits, entities, audit and usage.
type administration struct {
	client  *client.Client
	config  *config.Reader
	buckets *bucketitem.Store
	options adminOptions
	running *client.Tasks
	caller  principalLookup // whose credentials the store uses
}

// adminOptions say who administers.
type adminOptions struct {
	// principal is who changes the configuration; empty for the caller's ARN.
	principal string
	// onError is told of what goes wrong outside of calls; nil for nobody.
	onError func(error)
}

func newAdministration(s *bucketitem.Store, o adminOptions) *administration {
	return &administration{
		client: s.Client, config: s.Config, buckets: s, options: o,
		running: s.Running,
	}
}

// Bounds of a change of the configuration.
const (
	// maxPlans is how often a change is planned anew because what it was planned on has changed.
	maxPlans = 8
	// maxSends is how often one transaction is sent.
	maxSends = 6
)

// configTransaction is a change of the configuration with its audit: whole or nothing.
type configTransaction struct {
	client.Transaction
	namespace string
	now       time.Time
	principal string
	// retention is how many days an audit event is kept; a plan that records something sets it.
	retention int64
	events    int
}

// errMoved says that what a transaction was planned on has changed meanwhile.
var errMoved = errors.New("the configuration has changed meanwhile")

// changeConfig plans a change from what it reads and writes it. Where others were faster it is
// planned anew. A plan without items is done already.
func (a *administration) changeConfig(
	ctx context.Context, now time.Time, plan func(ctx context.Context, t *configTransaction) error,
) error {
	principal, err := a.principal(ctx)
	if err != nil {
		return err
	}
	for attempt := range maxPlans {
		t := &configTransaction{Transaction: client.Transaction{Table: a.client.TableName}, namespace: a.config.Namespace, now: now, principal: principal}
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

// send writes a transaction. Its token makes it safe to send again where an answer was lost.
func (a *administration) send(ctx context.Context, now time.Time, t *configTransaction) error {
	token := weir.NewLeaseID(now).String()
	in := &ddb.TransactWriteItemsInput{TransactItems: t.Items, ClientRequestToken: &token}
	var err error
	for attempt := range maxSends {
		_, err = a.client.API.TransactWriteItems(ctx, in)
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
