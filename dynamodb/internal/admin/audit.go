package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// ReadAudit yields the changes at a place, newest first, including those made by the Python
// library. If q.After is not the ID of an event, the error has code [weir.Invalid].
func (a *Admin) ReadAudit(
	ctx context.Context, q *weir.AuditQuery, consistent bool,
) iter.Seq2[weir.AuditEvent, error] {
	owner := auditOwner(q.At)
	in := client.Partition(schema.AuditPK(a.config.Namespace, owner), schema.SKAuditPrefix, consistent)
	in.ScanIndexForward = new(false)
	if q.After != "" {
		id, err := weir.ParseLeaseID(q.After) // events have ULIDs too
		if err != nil {
			return failing[weir.AuditEvent](client.Fault(weir.Invalid, "after", q.After,
				"must be the ID of an event: a ULID, of 26 characters"))
		}
		in.ExclusiveStartKey = schema.AuditKey(a.config.Namespace, owner, id.String()).Item()
	}
	return func(yield func(weir.AuditEvent, error) bool) {
		// The loop is not counted as a task, because Close would wait for a caller that stops in the
		// middle of the loop.
		if err := a.running.Refusal(); err != nil {
			yield(weir.AuditEvent{}, err)
			return
		}
		for e, err := range client.Query(ctx, a.Client, in, readEvent) {
			switch {
			case err != nil:
			case q.At.Entity != "" && q.At.Resource != "" && e.Resource != q.At.Resource,
				!q.To.IsZero() && !e.At.Before(q.To):
				continue
			case e.At.Before(q.From.Truncate(time.Second)):
				return // all that follow are older
			case e.At.Before(q.From):
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// failing returns a sequence that yields one error.
func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// readEvent parses an audit event.
func readEvent(item schema.Item) (weir.AuditEvent, error) {
	e, err := schema.ParseAuditEvent(item)
	if err != nil {
		return weir.AuditEvent{}, err
	}
	at, err := schema.ParseTimestamp(e.Timestamp)
	if err != nil {
		return weir.AuditEvent{}, err
	}
	return weir.AuditEvent{
		ID: e.ID, At: at, Action: e.Action, Entity: e.Entity, Principal: e.Principal, Resource: e.Resource,
		Details: e.Details,
	}, nil
}

// secondsPerDay converts the retention of events.
const secondsPerDay = 24 * 60 * 60

// addAuditEvent adds an event to the audit.
func (t *Change) addAuditEvent(action, owner, resource string, details map[string]any) error {
	// Each event of a transaction has a millisecond of its own, so that they stay in order.
	id, err := schema.NewULID(t.now.UnixMilli()+int64(t.events), rand.Reader)
	if err != nil {
		return err
	}
	t.events++
	e := schema.AuditEvent{
		Namespace: t.namespace, Entity: owner, ID: id, Timestamp: schema.Timestamp(t.now), Action: action,
		Principal: t.principal, Resource: resource, Details: details,
		TTL: t.now.Unix() + t.retention*secondsPerDay,
	}
	item, err := e.Item()
	if err != nil {
		return err
	}
	t.Put(item, nil)
	return nil
}

// setRetention reads the retention of events from the system's configuration item, which may be
// nil.
func (t *Change) setRetention(system schema.Item) error {
	c, err := client.Parse(system, schema.ParseConfig)
	t.retention = c.AuditDays()
	return err
}

// auditOwner returns the owner under which the audit of a place is stored.
func auditOwner(at weir.Subject) string {
	switch {
	case at.Entity != "":
		return at.Entity
	case at.Resource != "":
		return schema.AuditResource(at.Resource)
	}
	return schema.AuditSystem
}

const (
	// principalPatience bounds the wait of a change for the ARN of its credentials. callerAsks is
	// the number of such waits that may time out before the store gives up.
	principalPatience = 500 * time.Millisecond
	callerAsks        = 3
)

// principalLookup remembers the ARN of the store's credentials. mu guards it, and is held while AWS
// is asked, so that calls that come meanwhile wait for that answer. Only changes of the
// configuration need the ARN.
type principalLookup struct {
	mu       sync.Mutex
	Patience time.Duration // 0 for principalPatience
	asks     int           // the number of timeouts so far; callerAsks after an answer
	arn      string
}

// Principal returns the name for the audit: the one in the context if the audit can have it, or else
// the one in the options, or else the ARN of the credentials. It asks AWS for the ARN until there is an answer, even a refusal, or callerAsks
// waits have timed out. An unknown ARN is empty, and not an error.
func (a *Admin) Principal(ctx context.Context) (string, error) {
	if p := weir.PrincipalOf(ctx); p != "" && PrincipalFault(p) == "" {
		return p, nil
	}
	if p := a.Options.Principal; p != "" {
		if reason := PrincipalFault(p); reason != "" {
			return "", client.Fault(weir.Invalid, "principal", p, reason)
		}
		return p, nil
	}
	a.Caller.mu.Lock()
	defer a.Caller.mu.Unlock()
	if a.Caller.asks >= callerAsks {
		return a.Caller.arn, nil
	}
	o := a.Client.API.Options()
	short, cancel := context.WithTimeout(ctx, cmp.Or(a.Caller.Patience, principalPatience))
	defer cancel()
	out, err := sts.New(sts.Options{
		Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient, BaseEndpoint: o.BaseEndpoint,
		RetryMaxAttempts: 1,
	}).GetCallerIdentity(short, nil)
	switch {
	case ctx.Err() != nil:
		return "", client.Classify(ctx.Err())
	case short.Err() != nil:
		a.Caller.asks++
		return "", nil
	case err == nil && out.Arn != nil:
		a.Caller.arn = *out.Arn
	}
	a.Caller.asks = callerAsks // an error is an answer too: do not ask again
	return a.Caller.arn, nil
}

// longestPrincipal bounds the length of a principal.
const longestPrincipal = 256

// PrincipalFault returns the reason why a principal is not valid; empty if it is. As in the Python
// library, it is an ARN or a name of the form of an entity's.
func PrincipalFault(p string) string {
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	switch {
	case strings.HasPrefix(p, "arn:"):
		return ""
	case len(p) > longestPrincipal:
		return "must have at most 256 characters"
	case !strings.ContainsRune(alnum, rune(p[0])), strings.Trim(p, alnum+"_.-:@") != "":
		return "must be an ARN, or begin with a letter or digit and have only letters, digits, _ . - : @"
	}
	return ""
}
