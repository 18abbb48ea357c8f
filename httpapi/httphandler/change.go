package httphandler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Change is a request to change the configuration, and its result.
type Change struct {
	// Action is what was asked for: "limits_set", "limits_deleted", "entity_set",
	// "entity_deleted", "on_unavailable_set", "retention_set", "namespace_registered",
	// "namespace_deleted", "namespace_recovered" or "namespace_purged". The apply of a limits
	// file is told as its changes, one by one, or as one "limits_applied" if it was not made.
	Action string
	// At is the place: the system, a resource, an entity, or an entity on a resource.
	At weir.Subject
	// Namespace is the name of the namespace that is registered or deleted, or the ID of the one
	// that is recovered or purged; empty for other changes.
	Namespace string
	Request   *http.Request
	// By is who asked; zero if no bearer tokens are in use.
	By Identity
	// Before says in short what was configured when the request began, and After what the request has
	// configured. Both are empty if that is not known. If two administrators change the same place at
	// once, the one that was slower may have changed more than Before says.
	Before, After string
	// Status is the status of the answer; 503 for a change of a limits file that has failed.
	Status int
	// Err is nil if the change was made. With a status of 500 or more its outcome is unknown.
	Err error
}

// changeOf is the change that a route makes.
type changeOf struct {
	action string
	place  place
	before func(h *Handler, ctx context.Context, at weir.Subject) string
}

// changes returns what a route of the configuration changes; nil if it only reads.
func changes(method, path string) *changeOf {
	switch name := path[strings.LastIndexByte(path, '/')+1:]; {
	case method == http.MethodGet:
		return nil
	case name == "limits" && method == http.MethodDelete:
		return &changeOf{"limits_deleted", placeOf(path), (*Handler).limitsNow}
	case name == "limits":
		return &changeOf{"limits_set", placeOf(path), (*Handler).limitsNow}
	case name == "on_unavailable":
		return &changeOf{"on_unavailable_set", systemPlace, (*Handler).policyNow}
	case name == "retention":
		return &changeOf{"retention_set", systemPlace, (*Handler).retentionNow}
	case name == "{entity}" && method == http.MethodDelete:
		return &changeOf{"entity_deleted", entityAlone, (*Handler).entityNow}
	case name == "{entity}":
		return &changeOf{"entity_set", entityAlone, (*Handler).entityNow}
	default:
		return &changeOf{strings.ToLower(method), entityAlone, (*Handler).nothingNow}
	}
}

func entityAlone(c *incoming) weir.Subject { return weir.Subject{Entity: c.r.PathValue("entity")} }

// placeOf returns the place of a route for limits.
func placeOf(path string) place {
	switch {
	case strings.Contains(path, "{entity}"):
		return entityPlace
	case strings.Contains(path, "{resource}"):
		return resourcePlace
	}
	return systemPlace
}

// change carries out and answers a request of a route that changes the configuration, and tells the
// trail, also of the cause of a failure.
func (h *Handler) change(ctx context.Context, t *route, c *incoming) {
	body, err := h.tellChange(ctx, t, c)
	if err != nil {
		c.writer.WriteProblem(c.w, err, h.rateLimits)
		return
	}
	_ = h.answer(c, body) // the change is made, whether or not its caller gets the answer
}

// tellChange carries out a change, and tells the trail what came of it, also after a panic.
func (h *Handler) tellChange(ctx context.Context, t *route, c *incoming) (body any, err error) {
	at := weir.Subject{Entity: c.r.PathValue("entity"), Resource: c.r.PathValue("resource")}
	told := &Change{Action: t.changes.action, At: at, Request: c.r, Status: http.StatusOK}
	told.Namespace = cmp.Or(c.r.PathValue("namespace"), c.r.PathValue("namespace_id"))
	err = &weir.Error{Code: weir.Unavailable, Reason: "the server failed, the outcome is unknown"}
	defer func() {
		if err != nil {
			told.Err, told.Status = err, apijson.ProblemOf(err).Status
		} else {
			told.After = afterOf(t.changes.action, body)
		}
		h.options.Trail.Changed(ctx, told)
	}()
	if h.options.Authenticate != nil {
		told.By = c.identity
	}
	reading := *t
	reading.serve = func(h *Handler, ctx context.Context, c *incoming) (any, error) {
		told.At = t.changes.place(c) // the query was read
		told.Before = t.changes.before(h, ctx, told.At)
		return t.serve(h, ctx, c)
	}
	return h.carryOut(ctx, &reading, c)
}

// nothing describes a place at which nothing is configured.
const nothing = "none"

func (h *Handler) limitsNow(ctx context.Context, at weir.Subject) string {
	limits, err := h.options.Admin.Limits(ctx, at)
	if err != nil {
		return "" // the change may still be made
	}
	return describeLimits(apijson.LimitsOf(limits))
}

func (h *Handler) policyNow(ctx context.Context, _ weir.Subject) string {
	policy, err := h.options.Admin.Policy(ctx)
	if err != nil {
		return ""
	}
	return string(policy)
}

func (h *Handler) retentionNow(ctx context.Context, _ weir.Subject) string {
	r, err := h.options.Admin.Retention(ctx)
	if err != nil {
		return ""
	}
	return describeRetention(apijson.RetentionOf(r))
}

func (h *Handler) entityNow(ctx context.Context, at weir.Subject) string {
	e, err := h.options.Admin.Entity(ctx, at.Entity)
	switch {
	case errors.Is(err, weir.NotFound):
		return nothing
	case err != nil:
		return ""
	}
	text := describeEntity(apijson.EntityOf("", e))
	if n := len(e.Limits); n > 0 {
		text += ", limits on " + strconv.Itoa(n) + " resources"
	}
	return text
}

func (h *Handler) nothingNow(context.Context, weir.Subject) string { return "" }

// afterOf describes the answer to a change.
func afterOf(action string, body any) string {
	if strings.HasSuffix(action, "_deleted") && action != "namespace_deleted" {
		return nothing
	}
	switch b := body.(type) {
	case *apijson.Namespace:
		return describeNamespace(b)
	case *apijson.Purged:
		return strconv.FormatInt(b.Deleted, 10) + " items deleted"
	case apijson.LimitSet:
		return describeLimits(b.Limits)
	case apijson.Policy:
		return string(b.OnUnavailable)
	case *apijson.Retention:
		return describeRetention(b)
	case *apijson.Entity:
		return describeEntity(b)
	}
	return ""
}

func describeEntity(e *apijson.Entity) string {
	text := "no parent"
	if e.Parent != "" {
		text = "parent " + e.Parent
	}
	if e.Cascade {
		text += ", cascade"
	}
	if e.Name != "" {
		text += ", name " + strconv.Quote(e.Name)
	}
	if len(e.Metadata) > 0 {
		text += ", metadata " + strings.Join(slices.Sorted(maps.Keys(e.Metadata)), " ")
	}
	return text
}

func describeRetention(r *apijson.Retention) string {
	var parts []string
	for _, p := range []struct {
		name string
		of   *int64
	}{
		{"usage_days", r.UsageDays},
		{"audit_days", r.AuditDays},
		{"ttl_multiplier", r.TTLMultiplier},
	} {
		if p.of != nil {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, *p.of))
		}
	}
	if len(parts) == 0 {
		return nothing
	}
	return strings.Join(parts, ", ")
}

// maxDescribed bounds the limits that a description names.
const maxDescribed = 8

// describeLimits returns limits in short, in the order of their names: "rpm 100 per 60s, slots 5 at once".
func describeLimits(limits map[string]apijson.Limit) string {
	if len(limits) == 0 {
		return nothing
	}
	names := slices.Sorted(maps.Keys(limits))
	var parts []string
	for _, name := range names[:min(len(names), maxDescribed)] {
		l := limits[name]
		parts = append(parts, name+" "+describeLimit(&l))
	}
	if more := len(names) - maxDescribed; more > 0 {
		parts = append(parts, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(parts, ", ")
}

func describeLimit(l *apijson.Limit) string {
	text := strconv.FormatInt(l.Capacity, 10)
	switch l.Kind {
	case weir.Window:
		text += " in " + (time.Duration(l.Window) * time.Second).String()
	case weir.Concurrency:
		text += " at once"
	case weir.Budget:
		text += " each " + l.Every
		if l.Zone != "" && l.Zone != "UTC" {
			text += " in " + l.Zone
		}
	case weir.Bucket, "":
		if l.RefillAmount != 0 && l.RefillAmount != l.Capacity {
			text += " + " + strconv.FormatInt(l.RefillAmount, 10)
		}
		if l.RefillPeriod != "" {
			text += " per " + l.RefillPeriod.String() + "s"
		}
	}
	if l.Enforce != nil && !*l.Enforce {
		text += " (not enforced)"
	}
	return text
}
