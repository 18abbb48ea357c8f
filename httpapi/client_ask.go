package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Status reports an entity's limits; see [weir.Service].
func (c *Client) Status(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	return ask(
		ctx,
		c,
		"/v1/status"+query("entity", "entity", entity, "resource", resource),
		apijson.ReadStatuses,
	)
}

// Explain says which limits apply to an (entity, resource); see [weir.Service].
func (c *Client) Explain(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
	return ask(
		ctx,
		c,
		"/v1/explain"+query("entity resource", "entity", entity, "resource", resource),
		apijson.ReadExplanation,
	)
}

// Capacity reports the limits of every entity that uses a resource; see [Admin].
func (c *Client) Capacity(ctx context.Context, resource string) ([]weir.LimitStatus, error) {
	at, err := segment("resource", resource)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, "/v1/resources/"+at+"/capacity", apijson.ReadStatuses)
}

// Activity returns what the server has counted, or an error with code [weir.Invalid] or
// [weir.NotFound] where it counts nothing.
func (c *Client) Activity(ctx context.Context) (*ActivityReport, error) {
	return ask(ctx, c, "/v1/activity", func(body []byte) (*ActivityReport, error) {
		report, err := apijson.Read[ActivityReport](body)
		if err == nil && report.NowMS <= 0 {
			err = errors.New("is no report")
		}
		return report, err
	})
}

// Ready returns nil where the server says that it can answer. It asks once.
func (c *Client) Ready(ctx context.Context) error {
	out := c.do(ctx, &call{
		method: http.MethodGet, path: "/readyz", most: mostOfVerb, once: true,
		accept: func(body []byte) error {
			b, err := apijson.Read[struct {
				Status string `json:"status"`
			}](body)
			if err == nil && b.Status != "ok" {
				err = errors.New("does not say that it is ready")
			}
			return err
		},
	})
	return out.err
}

// ask gets something that changes nothing.
func ask[T any](
	ctx context.Context, c *Client, path string, as func(body []byte) (T, error),
) (T, error) {
	var answer T
	out := c.do(ctx, &call{
		method: http.MethodGet, path: path, most: mostOfList,
		accept: func(body []byte) (err error) {
			answer, err = as(body)
			return err
		},
	})
	if out.err != nil {
		var none T
		return none, out.err
	}
	return answer, nil
}

// query writes parameters, given as names and values in turn, without empty ones but for those that
// must be given: the server has the words for a missing name.
func query(must string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, value := pairs[i], pairs[i+1]; value != "" || strings.Contains(must, name) {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// segment is a name as a part of a path. Servers take some names for directions instead.
func segment(field, name string) (string, error) {
	switch name {
	case "":
		return "", apijson.Invalid(field, name, "must not be empty")
	case ".", "..":
		return "", apijson.Invalid(field, name, "must not begin with '.'")
	}
	return url.PathEscape(name), nil
}

// Documented is what the wire has words for.
type Documented interface {
	*weir.Lease | *weir.DeniedError | *weir.Receipt | *weir.Explanation | []weir.LimitStatus | []weir.Limit
}

// Document returns a value as the wire says it, for [encoding/json]: the body that a server would
// answer with, so that a program which prints it and one that reads the wire agree. Limits are an
// object by name.
func Document[T Documented](v T) any {
	switch v := any(v).(type) {
	case *weir.Lease:
		return apijson.LeaseOf(v)
	case *weir.DeniedError:
		return apijson.ProblemOf(v)
	case *weir.Receipt:
		return apijson.ReceiptOf(v)
	case *weir.Explanation:
		return apijson.ExplanationOf(v)
	case []weir.LimitStatus:
		return apijson.LimitsStatus{Limits: apijson.StatusesOf(v)}
	case []weir.Limit:
		return apijson.LimitsOf(v)
	}
	return nil // there are no other types
}
