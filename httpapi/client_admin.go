package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Admin reads and changes the configuration, one place or entity at a time. [*limiter.Limiter] and
// [*Client] implement it, with the rules of the limiter's methods.
type Admin interface {
	// Limits returns the limits that are configured at one place: the system's for the zero
	// subject, a resource's for a subject without an entity, and an entity's otherwise. An entity's
	// limits on [weir.DefaultResource] apply on every resource for which it has no other limits.
	Limits(ctx context.Context, at weir.Subject) ([]weir.Limit, error)
	// SetLimits replaces the limits at a place. An empty list removes them.
	SetLimits(ctx context.Context, at weir.Subject, limits []weir.Limit) error
	// Policy and SetPolicy read and change the system's on_unavailable.
	Policy(ctx context.Context) (weir.Policy, error)
	SetPolicy(ctx context.Context, p weir.Policy) error
	RetentionAdmin
	VersionAdmin
	// Entity returns the definition of an entity with its version, or an error with code [weir.NotFound].
	Entity(ctx context.Context, name string) (*weir.EntityDefinition, error)
	// SetEntity declares an entity, or changes its parent and cascade. It does not change its
	// limits.
	SetEntity(ctx context.Context, name, parent string, cascade bool) error
	// DeleteEntity removes an entity and its limits. It returns an error with code [weir.Conflict]
	// if the entity has children.
	DeleteEntity(ctx context.Context, name string) error
	ListAdmin
}

// ListAdmin lists entities and resources.
type ListAdmin interface {
	// Entities returns a page of names in order.
	Entities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
	// Resources returns, in order, the resources on which an entity has limits of its own or
	// something in use; if entity is empty, all that have limits or are in use.
	Resources(ctx context.Context, entity string) ([]string, error)
	// Capacity returns the limits of every entity that uses a resource or has limits of its own on
	// it.
	Capacity(ctx context.Context, resource string) ([]weir.LimitStatus, error)
}

// RetentionAdmin reads and changes for how long the store keeps usage, the audit and idle buckets.
// Both methods return an error with code [weir.Unsupported] if the store has no such settings.
type RetentionAdmin interface {
	// Retention returns the settings; one that is nil is not configured, so that its default applies.
	Retention(ctx context.Context) (*weir.Retention, error)
	// SetRetention changes the settings that r has; one that is nil stays as it is.
	SetRetention(ctx context.Context, r weir.Retention) error
}

// Limits returns the limits that are configured at one place; see [Admin].
func (c *Client) Limits(ctx context.Context, at weir.Subject) ([]weir.Limit, error) {
	place, err := c.Place(ctx, at)
	if err != nil {
		return nil, err
	}
	return place.Limits, nil
}

// SetLimits replaces the limits at a place; see [Admin].
func (c *Client) SetLimits(ctx context.Context, at weir.Subject, limits []weir.Limit) error {
	_, err := c.ChangeLimits(ctx, at, limits, nil)
	return err
}

// Policy returns the system's on_unavailable; see [Admin].
func (c *Client) Policy(ctx context.Context) (weir.Policy, error) {
	return ask(ctx, c, "/v1/admin/system", func(body []byte) (weir.Policy, error) {
		b, err := apijson.Read[apijson.System](body)
		if err != nil {
			return "", err
		}
		if b.OnUnavailable == "" {
			return "", errors.New("has no policy")
		}
		return b.OnUnavailable, nil
	})
}

// SetPolicy sets the system's on_unavailable; see [Admin].
func (c *Client) SetPolicy(ctx context.Context, p weir.Policy) error {
	if err := apijson.CheckText("on_unavailable", string(p)); err != nil {
		return err
	}
	k := put("/v1/admin/system/on_unavailable", &apijson.Policy{OnUnavailable: p})
	return sendEdit(ctx, c, k, func(b *apijson.Policy) (string, bool) {
		return b.Note, b.OnUnavailable == p
	}).err
}

// Retention returns for how long the store keeps what it records; see [RetentionAdmin].
func (c *Client) Retention(ctx context.Context) (*weir.Retention, error) {
	return ask(ctx, c, retentionPath, readRetention)
}

// SetRetention changes the settings that r has; see [RetentionAdmin].
func (c *Client) SetRetention(ctx context.Context, r weir.Retention) error {
	return sendEdit(ctx, c, put(retentionPath, apijson.RetentionOf(&r)),
		func(b *apijson.Retention) (string, bool) {
			answer := maps.Collect(b.Retention().All)
			for name, value := range r.All {
				if now := answer[name]; value != nil && now == nil {
					return "", false
				}
			}
			return b.Note, true
		}).err
}

const retentionPath = "/v1/admin/system/retention"

func readRetention(body []byte) (*weir.Retention, error) {
	b, err := apijson.Read[apijson.Retention](body)
	if err != nil {
		return nil, err
	}
	return b.Retention(), nil
}

// Entity returns the definition of an entity with its version; see [Admin].
func (c *Client) Entity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	at, err := pathSegment("entity", name)
	if err != nil {
		return nil, err
	}
	e, out := call(ctx, c, get("/v1/admin/entities/"+at), func(body []byte) (*weir.EntityDefinition, error) {
		b, err := apijson.Read[apijson.Entity](body)
		if err != nil {
			return nil, err
		}
		if b.Entity != name {
			return nil, errors.New("is about another entity: " + apijson.Shorten(b.Entity))
		}
		return b.Definition()
	})
	if out.err != nil {
		return nil, out.err
	}
	e.Version = out.version()
	return e, nil
}

// SetEntity declares an entity, or changes its parent and cascade; see [Admin].
func (c *Client) SetEntity(ctx context.Context, name, parent string, cascade bool) error {
	_, err := c.ChangeEntity(ctx, name, &change.Entity{Parent: parent, Cascade: cascade}, nil)
	return err
}

// DeleteEntity removes an entity and its limits; see [Admin].
func (c *Client) DeleteEntity(ctx context.Context, name string) error {
	return c.RemoveEntity(ctx, name, nil)
}

// Entities returns a page of names in order; see [Admin]. The role read is enough to list the
// children of an entity if the query names no resource.
func (c *Client) Entities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	if q == nil {
		q = &weir.EntityQuery{}
	}
	size := sizeText(q.Size)
	if q.Parent == "" || q.Resource != "" {
		return ask(ctx, c, "/v1/admin/entities"+query("",
			"parent", q.Parent, "resource", q.Resource, "after", q.After, "size", size), apijson.ReadEntities)
	}
	parent, err := pathSegment("parent", q.Parent)
	if err != nil {
		return nil, err
	}
	path := "/v1/entities/" + parent + "/children" + query("", "after", q.After, "size", size)
	page, err := ask(ctx, c, path, apijson.ReadEntities)
	if e, ok := errors.AsType[*weir.Error](err); ok && e.Field == "entity" {
		e.Field = "parent" // as in the query
	}
	return page, err
}

// placePath returns the path of the limits at a place.
func placePath(at weir.Subject) (string, error) {
	if at == (weir.Subject{}) {
		return "/v1/admin/system/limits", nil
	}
	resource, err := pathSegment("resource", at.Resource)
	if at.Entity == "" {
		return "/v1/admin/resources/" + resource + "/limits", err
	}
	entity, wrong := pathSegment("entity", at.Entity)
	if wrong != nil {
		return "", wrong
	}
	return "/v1/admin/entities/" + entity + "/limits" + query("", "resource", at.Resource), err
}

// sendEdit sends a change of the configuration, which can be repeated. The function note returns
// the note in an answer, or false if the answer is about another change.
func sendEdit[T any](
	ctx context.Context, c *Client, k *apiCall, note func(answer *T) (text string, ok bool),
) callResult {
	text, out := call(ctx, c, k, func(body []byte) (string, error) {
		answer, err := apijson.Read[T](body)
		if err != nil {
			return "", err
		}
		text, ok := note(answer)
		if !ok {
			return "", errors.New("does not match the request")
		}
		return text, nil
	})
	if out.err == nil && text != "" {
		c.options.Note(text)
	}
	return out
}

func put(path string, body any) *apiCall {
	return &apiCall{method: http.MethodPut, path: path, body: body, most: maxListReply}
}

func remove(path string) *apiCall {
	return &apiCall{method: http.MethodDelete, path: path, most: maxListReply}
}
