package httphandler

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/apijson"
)

// route is one method on one path.
type route struct {
	method string
	path   string // a pattern of [http.ServeMux]
	// role is the least role that a caller needs; RoleNone needs no bearer token.
	role Role
	// allNamespaces is true if the caller's bearer token must be for all namespaces.
	allNamespaces bool
	// query has the names of the allowed parameters.
	query []string
	serve endpoint
	// changes is the change of the configuration that the route makes; nil if there is none.
	changes *changeOf
	// plain replaces serve for a route that is not a part of the API.
	plain http.Handler
}

func (r *route) pattern() string { return r.method + " " + r.path }

// limited reports whether the route counts towards MaxConcurrent.
func (r *route) limited() bool { return strings.HasPrefix(r.path, "/v1/") }

func (r *route) hasBody() bool { return r.method == http.MethodPost || r.method == http.MethodPut }

func get(path string, role Role, serve endpoint, query ...string) route {
	return route{method: http.MethodGet, path: path, role: role, serve: serve, query: query}
}

func post(path string, serve endpoint) route {
	return route{method: http.MethodPost, path: path, role: RoleCall, serve: serve}
}

func plain(path string, handler http.Handler) route {
	return route{method: http.MethodGet, path: path, plain: handler}
}

// routes returns the routes of the handler, which depend on its options.
func (h *Handler) routes() []route {
	routes := []route{
		get("/healthz", RoleNone, (*Handler).healthy),
		get("/readyz", RoleNone, (*Handler).ready),
		plain("/openapi.json", http.HandlerFunc(h.serveOpenAPI)),
		post("/v1/reserve", (*Handler).reserve),
		post("/v1/adjust", update(adjustBody(), adjust)),
		post("/v1/complete", update(completeBody(), complete)),
		post("/v1/cancel", update(updateBody{}, cancel)),
		post("/v1/extend", update(updateBody{}, extend)),
		get("/v1/status", RoleRead, (*Handler).status, "entity", "resource"),
		get("/v1/explain", RoleRead, (*Handler).explain, "entity", "resource", "costs"),
	}
	if h.options.Admin != nil {
		routes = append(routes,
			get("/v1/entities/{entity}/children", RoleRead, (*Handler).children, "after", "size"),
			get("/v1/entities/{entity}/resources", RoleRead, (*Handler).resources, "after", "size"),
			get("/v1/resources", RoleRead, (*Handler).resources, "after", "size"),
			get("/v1/resources/{resource}/capacity", RoleRead, (*Handler).capacity))
		routes = append(routes, adminRoutes()...)
		routes = append(routes, namespaceRoutes()...)
	}
	if h.options.Limits != nil {
		const limits = "/v1/admin/limits"
		routes = append(routes,
			route{method: "POST", path: limits + "/plan", role: RoleAdmin, serve: (*Handler).planLimits},
			route{method: "POST", path: limits + "/apply", role: RoleAdmin, serve: (*Handler).applyLimits},
			get(limits+"/export", RoleAdmin, (*Handler).exportLimits))
	}
	if h.options.Records != nil {
		routes = append(routes,
			get("/v1/usage", RoleRead, (*Handler).usage,
				"entity", "resource", "limit", "window", "from", "to", "after", "size"),
			get("/v1/audit", RoleRead, (*Handler).audit,
				"entity", "resource", "from", "to", "after", "size"))
	}
	if h.options.Activity != nil {
		routes = append(routes, get("/v1/activity", RoleRead, (*Handler).activity))
	}
	if page := h.options.StatusPage; page != nil {
		routes = append(routes, plain("/{$}", page), plain("/usage", page), plain("/page/{file}", page))
	}
	return routes
}

// adminRoutes returns the routes that read and change the configuration.
func adminRoutes() []route {
	const (
		system   = "/v1/admin/system"
		entities = "/v1/admin/entities"
		entity   = entities + "/{entity}"
	)
	admin := func(method, path string, serve endpoint, query ...string) route {
		return route{
			method: method, path: path, role: RoleAdmin, query: query, serve: serve,
			changes: changes(method, path),
		}
	}
	routes := []route{
		admin("GET", system, (*Handler).getSystem),
		admin("PUT", system+"/on_unavailable", (*Handler).putPolicy),
		admin("GET", system+"/retention", (*Handler).getRetention),
		admin("PUT", system+"/retention", (*Handler).putRetention),
		admin("GET", entities, (*Handler).listEntities, "parent", "resource", "after", "size"),
		admin("GET", entity, (*Handler).getEntity),
		admin("PUT", entity, (*Handler).putEntity),
		admin("DELETE", entity, (*Handler).deleteEntity),
	}
	for _, p := range []struct {
		path  string
		of    place
		query []string
	}{
		{system + "/limits", systemPlace, nil},
		{"/v1/admin/resources/{resource}/limits", resourcePlace, nil},
		{entity + "/limits", entityPlace, []string{"resource"}},
	} {
		routes = append(routes,
			admin("GET", p.path, getLimits(p.of), p.query...),
			admin("PUT", p.path, putLimits(p.of), p.query...),
			admin("DELETE", p.path, deleteLimits(p.of), p.query...))
	}
	return routes
}

// register adds the routes to the mux, and for each path a handler that refuses other methods.
func (h *Handler) register() {
	allowed := map[string][]string{}
	h.direct = make(map[string]*directRoute)
	for _, r := range h.routes() {
		handler := h.handle(&r)
		h.patterns = append(h.patterns, r.pattern())
		h.mux.Handle(r.pattern(), handler)
		if r.method == http.MethodPost {
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

// directRoute is the route of a verb. The handler finds it without the mux, which is slower.
type directRoute struct {
	pattern string
	handler http.Handler
}

// directly returns the route of a verb, as the mux would find it, and nil for other requests. It
// need not clean the path, because a path in the map is clean.
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
	h.fail(w, r, apijson.Refusal(http.StatusNotFound,
		apijson.Invalid("path", r.URL.EscapedPath(), "is not a path of this server")))
}

// parseQuery parses a query. It refuses parameters that are unknown, repeated or empty, and reports
// every mistake.
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
			errs = append(errs, apijson.Invalid(apijson.Shorten(name), given[0],
				"is not a known parameter"))
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
