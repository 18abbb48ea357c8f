package httphandler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Trail records what callers of a [Handler] change, and which of them are refused. Its methods are
// called concurrently, and keep nothing of their arguments: the request and its texts are used
// again. Texts from callers are as long and as hostile as the callers like.
type Trail interface {
	// Changed is called after each request to change the configuration whose caller has the role
	// for it.
	Changed(ctx context.Context, c *Change)
	// Refused is called after each request that was refused for one of the reasons of [Refusal].
	Refused(ctx context.Context, r *Refusal)
}

// Refusal is a request that was refused before the service did anything.
type Refusal struct {
	Kind    RefusalKind
	Request *http.Request
	// By is who asked; zero if no known bearer token was given.
	By Identity
	// Status is the status of the answer, and Reason says why, without a bearer token.
	Status int
	Reason string
}

// RefusalKind is a sort of refusal.
type RefusalKind string

// The kinds of refusals.
const (
	// RefusedToken means that the bearer token is missing, malformed or unknown.
	RefusedToken RefusalKind = "token"
	// RefusedRole means that the role of the caller is too weak.
	RefusedRole RefusalKind = "role"
	// RefusedBody means that the body is too large, or did not arrive in time.
	RefusedBody RefusalKind = "body"
	// RefusedRequest means that the request is malformed: its query, its body or a name.
	RefusedRequest RefusalKind = "request"
	// RefusedLoad means that the server has no capacity for the request.
	RefusedLoad RefusalKind = "load"
)

// tellRefused tells the trail of a refusal, if the error is one. It knows nothing of denials.
func (h *Handler) tellRefused(ctx context.Context, c *incoming, err error) {
	if h.options.Trail == nil {
		return
	}
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		return
	}
	kind := refusalKind(err)
	if kind == "" {
		return
	}
	p := apijson.ProblemOf(err)
	reason := strings.TrimSpace(p.Field + " " + p.Reason)
	r := &Refusal{Kind: kind, Request: c.r, Status: p.Status, Reason: reason}
	if h.options.Authenticate != nil {
		r.By = c.identity
		if kind == RefusedToken {
			r.By = Identity{}
		}
	}
	h.options.Trail.Refused(ctx, r)
}

// refusalKind returns the kind of a refusal, and "" for other errors. An error of the service with
// code [weir.PermissionDenied] is one of the store, which refused the server.
func refusalKind(err error) RefusalKind {
	if refused, ok := errors.AsType[*apijson.HTTPError](err); ok {
		switch refused.Status {
		case http.StatusUnauthorized:
			return RefusedToken
		case http.StatusForbidden:
			return RefusedRole
		case http.StatusRequestEntityTooLarge, http.StatusRequestTimeout:
			return RefusedBody
		case http.StatusBadRequest, http.StatusUnsupportedMediaType:
			return RefusedRequest
		}
		return ""
	}
	faults := apijson.FaultsOf(err)
	if len(faults) == 0 {
		return ""
	}
	switch faults[0].Code {
	case weir.Invalid:
		return RefusedRequest
	case weir.Overloaded:
		return RefusedLoad
	default:
		return ""
	}
}

// Details are what is known of a request besides what HTTP says, for a log. Texts are as the caller
// has sent them.
type Details struct {
	// By is who asked; zero if no bearer tokens are in use, or no known one was given.
	By Identity
	// Entity and Resource are those of the first charge, of the query or of the path.
	Entity, Resource string
	// Charges are who asked for a reservation, if it has several charges, in their order.
	Charges []weir.Subject
	// LeaseID is the lease that was asked for or made; zero if there is none.
	LeaseID weir.LeaseID
	// Charged has the names of the limits that an admitted reservation was charged to, Denied those of
	// the limits that denied it. Limits of other subjects than Entity on Resource have full names.
	Charged, Denied []string
}

// detailsKey is the context key of a request's details.
type detailsKey struct{}

// ContextWithDetails returns the context for a request whose details are wanted, and the details,
// which a [Handler] fills in if its Options.Logger logs at debug level. They are complete when the
// handler has returned.
func ContextWithDetails(ctx context.Context) (context.Context, *Details) {
	d := &Details{}
	return context.WithValue(ctx, detailsKey{}, d), d
}

// wantedDetails returns the details to fill in; nil if none are wanted. It looks at the level first,
// because that costs no search of the context.
func (h *Handler) wantedDetails(ctx context.Context) *Details {
	if !h.options.Logger.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	d, _ := ctx.Value(detailsKey{}).(*Details)
	return d
}

// asked fills in who asked, and what the query and the path name, at the end of a request.
func (d *Details) asked(c *incoming) {
	d.By = c.identity
	d.Entity = cmp.Or(d.Entity, c.r.PathValue("entity"), c.query["entity"])
	d.Resource = cmp.Or(d.Resource, c.r.PathValue("resource"), c.query["resource"])
}

// reserved fills in a reservation and its outcome.
func (d *Details) reserved(r *weir.Request, lease *weir.Lease, err error) {
	if d == nil {
		return
	}
	d.Entity, d.Resource = strings.Clone(r.Entity), strings.Clone(r.Resource)
	if len(r.Charges) > 0 {
		d.Entity = strings.Clone(r.Charges[0].Entity)
		d.Resource = strings.Clone(r.Charges[0].Resource)
	}
	for i := range r.Charges {
		c := &r.Charges[i]
		if len(r.Charges) > 1 {
			at := weir.Subject{Entity: strings.Clone(c.Entity), Resource: strings.Clone(c.Resource)}
			d.Charges = append(d.Charges, at)
		}
	}
	d.LeaseID = r.LeaseID
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		d.LeaseID = denied.LeaseID
		d.Denied = d.names(denied.Limits, func(l *weir.LimitStatus) bool {
			return l.Exceeded && !l.Shadow
		})
	}
	if lease != nil {
		d.LeaseID = lease.ID
		d.Charged = d.names(lease.Limits, func(l *weir.LimitStatus) bool { return l.Requested != 0 })
	}
}

// names returns the names of some limits.
func (d *Details) names(limits []weir.LimitStatus, some func(*weir.LimitStatus) bool) []string {
	var names []string
	for i := range limits {
		l := &limits[i]
		switch {
		case !some(l):
		case l.Entity == d.Entity && l.Resource == d.Resource:
			names = append(names, strings.Clone(l.Limit))
		default:
			at := weir.Subject{Entity: l.Entity, Resource: l.Resource}
			names = append(names, at.FullName(l.Limit))
		}
	}
	return names
}
