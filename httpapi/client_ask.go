package httpapi

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Status returns the status of an entity's limits; see [weir.Service].
func (c *Client) Status(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	path := "/v1/status" + query("entity", "entity", entity, "resource", resource)
	return ask(ctx, c, path, apijson.ReadStatuses)
}

// Explain returns which limits apply to an entity on a resource; see [weir.Service].
func (c *Client) Explain(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
	path := "/v1/explain" + query("entity resource", "entity", entity, "resource", resource)
	return ask(ctx, c, path, apijson.ReadExplanation)
}

// Capacity returns the limits of every entity that uses a resource; see [Admin].
func (c *Client) Capacity(ctx context.Context, resource string) ([]weir.LimitStatus, error) {
	at, err := pathSegment("resource", resource)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, "/v1/resources/"+at+"/capacity", apijson.ReadStatuses)
}

// Activity returns the server's counts. It returns an error with code [weir.Invalid] or
// [weir.NotFound] if the server does not count.
func (c *Client) Activity(ctx context.Context) (*ActivityReport, error) {
	return ask(ctx, c, "/v1/activity", func(body []byte) (*ActivityReport, error) {
		report, err := apijson.Read[ActivityReport](body)
		if err == nil && report.NowMS <= 0 {
			err = errors.New("is not an activity report")
		}
		return report, err
	})
}

// Ready returns nil if the server answers that it is ready. It makes one attempt.
func (c *Client) Ready(ctx context.Context) error {
	k := get("/readyz")
	k.tries = 1
	_, out := call(ctx, c, k, func(body []byte) (*apijson.Health, error) {
		b, err := apijson.Read[apijson.Health](body)
		if err == nil && b.Status != "ok" {
			err = errors.New("does not say that it is ready")
		}
		return b, err
	})
	return out.err
}

// ask sends a GET and returns the result of read for the body of the answer.
func ask[T any](
	ctx context.Context, c *Client, path string, read func(body []byte) (T, error),
) (T, error) {
	answer, out := call(ctx, c, get(path), read)
	return answer, out.err
}

// query returns the query string of alternating names and values. It leaves out empty values,
// except that of the name must: the server then returns the error about the missing value.
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

// pathSegment returns a name escaped as a segment of a path. It refuses names that a path cannot
// contain.
func pathSegment(field, name string) (string, error) {
	switch name {
	case "":
		return "", apijson.Invalid(field, name, "must not be empty")
	case ".", "..":
		return "", apijson.Invalid(field, name, "is reserved")
	}
	return url.PathEscape(name), nil
}

// Documented is the set of types that have JSON in the API.
type Documented interface {
	*weir.Lease | *weir.DeniedError | *weir.Receipt | *weir.Explanation | []weir.LimitStatus | []weir.Limit
}

// Document returns a value that [encoding/json] encodes as the body of a server's answer, so that a
// program can print what the API returns. Limits become an object by name.
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
