package httphandler

import (
	"cmp"
	"context"
	"net/http"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
	"github.com/weir-limiter/weir/namespace"
)

// namespaceRoutes returns the routes that administer the namespaces of a table.
func namespaceRoutes() []route {
	const (
		all    = "/v1/admin/namespaces"
		byName = all + "/{namespace}"
		byID   = all + "/{namespace_id}"
	)
	ofAll := func(method, path, action string, serve endpoint, query ...string) route {
		r := route{
			method: method, path: path, role: RoleAdmin, allNamespaces: true, query: query, serve: serve,
		}
		if action != "" {
			r.changes = &changeOf{action, systemPlace, (*Handler).nothingNow}
		}
		return r
	}
	return []route{
		ofAll("GET", all, "", (*Handler).listNamespaces, "orphans"),
		ofAll("GET", byName, "", (*Handler).getNamespace),
		ofAll("PUT", byName, "namespace_registered", (*Handler).registerNamespace),
		ofAll("DELETE", byName, "namespace_deleted", (*Handler).deleteNamespace, "yes"),
		ofAll("POST", byID+"/recover", "namespace_recovered", (*Handler).recoverNamespace),
		ofAll("POST", byID+"/purge", "namespace_purged", (*Handler).purgeNamespace),
	}
}

// checkAllNamespaces refuses a caller whose bearer token is for the namespace of the service.
func (h *Handler) checkAllNamespaces(c *incoming) error {
	if h.options.Authenticate == nil || c.identity.AllNamespaces {
		return nil
	}
	return apijson.Refusal(http.StatusForbidden, &weir.Error{
		Code: weir.PermissionDenied, Field: "namespaces",
		Reason: "the bearer token is for the namespace of this server only: " +
			"one for all namespaces of the table is needed",
	}, "WWW-Authenticate", `Bearer error="insufficient_scope"`)
}

// namespaces returns what administers the namespaces, or an error that names the store if it has
// none.
func (h *Handler) namespaces() (namespace.Admin, error) {
	if h.options.Namespaces == nil {
		return nil, &weir.Error{
			Code: weir.Unsupported, Field: "store", Value: h.options.Store,
			Reason: "has no namespaces to administer: only a DynamoDB table has",
		}
	}
	return h.options.Namespaces, nil
}

// yes reads a query parameter that is true or false. Default: false.
func yes(c *incoming, name string) (bool, error) {
	switch given, ok := c.query[name]; {
	case !ok || given == "false":
		return false, nil
	case given == "true":
		return true, nil
	default:
		return false, apijson.Invalid(name, given, "must be true or false")
	}
}

func (h *Handler) listNamespaces(ctx context.Context, c *incoming) (any, error) {
	orphans, wrong := yes(c, "orphans")
	admin, err := h.namespaces()
	if err := cmp.Or(wrong, err); err != nil {
		return nil, err
	}
	list := admin.Namespaces
	if orphans {
		list = admin.OrphanNamespaces
	}
	all, err := list(ctx)
	if err != nil {
		return nil, err
	}
	return apijson.NamespacesOf(all), nil
}

func (h *Handler) getNamespace(ctx context.Context, c *incoming) (any, error) {
	admin, err := h.namespaces()
	if err != nil {
		return nil, err
	}
	return namespaceAnswer(admin.Namespace(ctx, c.r.PathValue("namespace")))
}

func namespaceAnswer(n *namespace.Namespace, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return apijson.NamespaceOf(n), nil
}

func (h *Handler) registerNamespace(ctx context.Context, c *incoming) (any, error) {
	wrong := c.reader.nothing(c.in)
	admin, err := h.namespaces()
	if err := cmp.Or(apijson.NoConditions(c.r.Header), wrong, err); err != nil {
		return nil, err
	}
	n, made, err := admin.RegisterNamespace(ctx, c.r.PathValue("namespace"))
	if err != nil {
		return nil, err
	}
	body := apijson.NamespaceOf(n)
	body.Registered = &made
	return body, nil
}

// deleteNamespace refuses to delete the namespace of the service, which would then refuse every
// reservation, and the default one unless the caller confirms that.
func (h *Handler) deleteNamespace(ctx context.Context, c *incoming) (any, error) {
	name := c.r.PathValue("namespace")
	confirmed, wrong := yes(c, "yes")
	admin, err := h.namespaces()
	if err := cmp.Or(apijson.NoConditions(c.r.Header), wrong, err); err != nil {
		return nil, err
	}
	refused := ""
	switch {
	case name == h.options.Namespace:
		refused = "is the namespace that this server serves: stop its servers, and delete it with " +
			"weir namespace delete --store, or through the server of another namespace"
	case name == namespace.Default && !confirmed:
		refused = "is the namespace of every program that names none: " +
			"confirm its deletion with yes=true"
	}
	if refused != "" {
		return nil, &weir.Error{Code: weir.Conflict, Field: "namespace", Value: name, Reason: refused}
	}
	return namespaceAnswer(admin.DeleteNamespace(ctx, name))
}

func (h *Handler) recoverNamespace(ctx context.Context, c *incoming) (any, error) {
	wrong := c.reader.nothing(c.in)
	admin, err := h.namespaces()
	if err := cmp.Or(apijson.NoConditions(c.r.Header), wrong, err); err != nil {
		return nil, err
	}
	return namespaceAnswer(admin.RecoverNamespace(ctx, c.r.PathValue("namespace_id")))
}

// purgeNamespace stops if the client leaves, as a command on the table does. The next purge goes
// on.
func (h *Handler) purgeNamespace(ctx context.Context, c *incoming) (any, error) {
	scan, wrong := c.reader.purge(c.in)
	admin, err := h.namespaces()
	if err := cmp.Or(apijson.NoConditions(c.r.Header), wrong, err); err != nil {
		return nil, err
	}
	h.takeLong(c)
	ctx, cancel := context.WithTimeout(ctx, longestApply-answerTime)
	defer cancel()
	id := c.r.PathValue("namespace_id")
	deleted, err := admin.PurgeNamespace(ctx, id, scan, nil)
	if err != nil {
		return nil, err
	}
	return &apijson.Purged{ID: id, Deleted: deleted}, nil
}

func describeNamespace(n *apijson.Namespace) string {
	return n.Name + " " + n.ID + " " + n.Status
}

// nothing reads an object without members.
func (d *bodyReader) nothing(text []byte) error {
	if err := d.begin(text); err != nil {
		return err
	}
	d.fields(func([]byte) bool { return false })
	return d.end()
}

// purge reads an [apijson.PurgeRequest].
func (d *bodyReader) purge(text []byte) (scan bool, err error) {
	if err := d.begin(text); err != nil {
		return false, err
	}
	d.fields(func(name []byte) bool {
		if string(name) != "scan" {
			return false
		}
		scan = d.boolean()
		return true
	})
	return scan, d.end()
}
