package httphandler

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir/internal/apijson"
)

// endpoint is what a route does: a method of the handler.
type endpoint func(h *Handler, ctx context.Context, c *incoming) (*answer, error)

// route is one method on one path.
type route struct {
	method string
	path   string // in the syntax of [http.ServeMux]
	// role is what a caller must at least have; RoleNone needs no bearer token.
	role Role
	// query are the parameters that the route knows.
	query []string
	// serve answers with a body, or with an error.
	serve endpoint
	// plain answers by itself, instead of serve, and is no part of the API.
	plain http.Handler
}

func (r *route) pattern() string { return r.method + " " + r.path }

// limited is whether the route is part of the API, whose requests at once are bounded.
func (r *route) limited() bool { return strings.HasPrefix(r.path, "/v1/") }

// reads is whether requests of the route have a body.
func (r *route) reads() bool { return r.method == http.MethodPost || r.method == http.MethodPut }

// routes lists what the handler serves with its options.
func (h *Handler) routes() []route {
	routes := slices.Concat(h.healthRoutes(), verbRoutes(), askRoutes())
	if h.options.Admin != nil {
		routes = slices.Concat(routes, listRoutes(), adminRoutes())
	}
	if h.options.Activity != nil {
		routes = append(routes, route{
			method: "GET", path: "/v1/activity", role: RoleRead, serve: (*Handler).recent,
		})
	}
	if page := h.options.StatusPage; page != nil {
		routes = append(routes,
			route{method: "GET", path: "/{$}", plain: page},
			route{method: "GET", path: "/page/{file}", plain: page})
	}
	return routes
}

// register puts the routes into the mux, and for each path an answer to the methods that it has
// not.
func (h *Handler) register() {
	allowed := map[string][]string{}
	h.direct = make(map[string]*directRoute)
	for _, r := range h.routes() {
		handler := h.handle(&r)
		h.patterns = append(h.patterns, r.pattern())
		h.mux.Handle(r.pattern(), handler)
		if r.method == http.MethodPost && !strings.Contains(r.path, "{") {
			h.direct[r.path] = &directRoute{r.pattern(), handler}
		}
		allowed[r.path] = append(allowed[r.path], r.method)
		if r.method == http.MethodGet {
			allowed[r.path] = append(allowed[r.path], http.MethodHead)
		}
	}
	for path, methods := range allowed {
		h.mux.Handle(path, h.wrongMethod(strings.Join(methods, ", ")))
	}
	h.mux.Handle("/", http.HandlerFunc(h.notFound))
}

// directRoute is a route that is found by its path alone, without the mux.
type directRoute struct {
	pattern string
	handler http.Handler
}

// directly finds the route of a verb, which the mux would find too; nil for other requests. A path
// that is one of these as it came in is in its plainest form.
func (h *Handler) directly(r *http.Request) *directRoute {
	if r.Method != http.MethodPost || r.URL.RawPath != "" {
		return nil
	}
	return h.direct[r.URL.Path]
}

func (h *Handler) wrongMethod(allow string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, apijson.Refusal(http.StatusMethodNotAllowed,
			apijson.Invalid("method", r.Method, "must be one of "+allow), "Allow", allow))
	})
}

func (h *Handler) notFound(w http.ResponseWriter, r *http.Request) {
	h.fail(w, r, apijson.Refusal(http.StatusNotFound, apijson.Invalid("path", r.URL.EscapedPath(), "is no path here")))
}

// parseQuery reads a query whose parameters must be among the known ones, each at most once and not
// empty. Every mistake is told.
func parseQuery(raw string, known ...string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, apijson.Invalid("query", raw, "cannot be read: "+err.Error())
	}
	query := make(map[string]string, len(values))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		switch {
		case len(errs) == apijson.MaxMistakes:
		case !slices.Contains(known, name):
			errs = append(errs, apijson.Invalid(apijson.Shorten(name), given[0], "is no parameter here"))
		case len(given) > 1:
			errs = append(errs, apijson.Invalid(name, given[1], "is given twice"))
		case given[0] == "":
			errs = append(errs, apijson.Invalid(name, "", "must not be empty"))
		default:
			query[name] = given[0]
		}
	}
	return query, apijson.Join(errs)
}

// pageSize reads the parameter size.
func pageSize(query map[string]string) (int, error) {
	text, ok := query["size"]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 1 || n > 1000 {
		return 0, apijson.Invalid("size", text, "must be between 1 and 1000")
	}
	return int(n), nil
}
