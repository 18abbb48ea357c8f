package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// trail logs what callers change, and which of them are refused. It is the [httphandler.Trail] of the
// server. Texts of callers are escaped by [shown], so that no caller can forge a line or a field.
type trail struct {
	logger *slog.Logger
	// refused bounds the lines about refusals, by kind.
	refused map[httphandler.RefusalKind]*refusalCount
	// changes bounds the lines about changes that were not made.
	changes *refusalCount
}

// The kinds of refusals that the server has besides those of the handler.
const (
	// refusedHost means that the request was for another host (see loopbackOnly).
	refusedHost httphandler.RefusalKind = "host"
	// refusedChange means that a change of the configuration was refused, or failed.
	refusedChange httphandler.RefusalKind = "change"
)

func newTrail(l *slog.Logger) *trail {
	t := &trail{logger: l, refused: map[httphandler.RefusalKind]*refusalCount{}}
	for _, kind := range []httphandler.RefusalKind{
		httphandler.RefusedToken, httphandler.RefusedRole, httphandler.RefusedBody,
		httphandler.RefusedRequest, httphandler.RefusedLoad, refusedHost,
	} {
		t.refused[kind] = &refusalCount{kind: kind, ofOne: refusalsOfOne, ofAll: refusalsOfAll}
	}
	t.changes = &refusalCount{kind: refusedChange, ofOne: changesOfOne, ofAll: changesOfAll}
	t.refused[refusedChange] = t.changes
	return t
}

// none is the value of a field that has none. No bearer token can have this name.
const none = "-"

// The most bytes of texts from callers in one line, after escaping.
const (
	mostName   = 96
	mostPath   = 160
	mostReason = 240
)

// asker is who sent a request, for the log.
type asker struct {
	caller    string     // the owner of the bearer token, or none
	from      netip.Addr // invalid if it is not known
	forwarded netip.Addr // the last address in X-Forwarded-For; invalid without one
}

func askerOf(r *http.Request, by *httphandler.Identity) asker {
	a := asker{caller: none}
	if by.Name != "" {
		a.caller = shown(by.Name, mostName)
	}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		a.from = at.Addr().Unmap().WithZone("")
	}
	if given := r.Header.Values("X-Forwarded-For"); len(given) > 0 {
		last := given[len(given)-1]
		last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
		if ip, err := netip.ParseAddr(last); err == nil { // other texts are left out
			a.forwarded = ip.Unmap().WithZone("")
		}
	}
	return a
}

// attrs returns the fields of who asked.
func (a *asker) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("caller", a.caller), slog.String("from", addressText(a.from))}
	if a.forwarded.IsValid() {
		attrs = append(attrs, slog.String("forwarded_for", a.forwarded.String()))
	}
	return attrs
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return none
	}
	return a.String()
}

// key returns under which key refusals of the asker are counted: the name of a bearer token, or the
// address. One host usually has all addresses of an IPv6 network of 64 bits.
func (a *asker) key() string {
	switch {
	case a.caller != none:
		return a.caller
	case a.from.Is6():
		if network, err := a.from.Prefix(64); err == nil {
			return network.String()
		}
	}
	return addressText(a.from)
}

// Refused logs a refusal, or counts it if there are too many.
func (t *trail) Refused(ctx context.Context, r *httphandler.Refusal) {
	who := askerOf(r.Request, &r.By)
	if !t.refused[r.Kind].allow(who.key(), who.caller != none) {
		return
	}
	attrs := append([]slog.Attr{slog.String("kind", string(r.Kind))}, who.attrs()...)
	attrs = append(attrs, slog.String("method", methodLabel(r.Request.Method)),
		slog.String("route", routeLabel(r.Request.Pattern)),
		slog.String("path", safePath(r.Request)), slog.Int("status", r.Status),
		slog.String("reason", shownText(withoutToken(r.Request, r.Reason), mostReason)))
	if r.Kind == httphandler.RefusedRole {
		attrs = append(attrs, slog.String("role", r.By.Role.String()))
	}
	t.logger.LogAttrs(ctx, slog.LevelInfo, "refused", attrs...)
}

// safePath returns the path of a request, without the query, or [hidden].
func safePath(r *http.Request) string {
	if withoutToken(r, r.URL.Path) == hidden {
		return hidden
	}
	return shown(r.URL.EscapedPath(), mostPath)
}

// leastSecret is the number of bytes from which on a text may be a bearer token. A shorter one, such
// as "/", would hide any path.
const leastSecret = 8

// withoutToken returns a text of a request, or [hidden] if the caller has put its bearer token there.
func withoutToken(r *http.Request, text string) string {
	for _, given := range r.Header.Values("Authorization") {
		_, secret, _ := strings.Cut(given, " ")
		if secret = strings.TrimSpace(secret); secret == "" {
			secret = given // without a scheme
		}
		if len(secret) >= leastSecret && strings.Contains(text, secret) {
			return hidden
		}
	}
	return text
}

// Changed logs a change of the configuration. Changes that were made are always logged, others unless
// the caller makes too many.
func (t *trail) Changed(ctx context.Context, c *httphandler.Change) {
	who := askerOf(c.Request, &c.By)
	if c.Err != nil && !t.changes.allow(who.key(), who.caller != none) {
		return
	}
	attrs := append([]slog.Attr{slog.String("action", c.Action)}, who.attrs()...)
	attrs = append(attrs, slog.String("place", placeName(c)))
	if c.Namespace != "" {
		name := withoutToken(c.Request, c.Namespace)
		attrs = append(attrs, slog.String("namespace", shown(name, mostName)))
	}
	if c.At.Entity != "" {
		attrs = append(attrs, slog.String("entity", shown(withoutToken(c.Request, c.At.Entity), mostName)))
	}
	if c.At.Resource != "" {
		attrs = append(attrs, slog.String("resource", shown(withoutToken(c.Request, c.At.Resource), mostName)))
	}
	level, result := slog.LevelInfo, "done"
	switch {
	case c.Err == nil:
	case c.Status < http.StatusInternalServerError || errors.Is(c.Err, weir.Overloaded):
		level, result = slog.LevelWarn, "refused"
	default:
		level, result = slog.LevelError, "failed"
	}
	attrs = append(attrs, slog.String("result", result))
	if c.Before != "" {
		attrs = append(attrs, slog.String("before", shownText(withoutToken(c.Request, c.Before), mostReason)))
	}
	if c.After != "" {
		attrs = append(attrs, slog.String("after", shownText(withoutToken(c.Request, c.After), mostReason)))
	}
	if c.Err != nil {
		reason := withoutToken(c.Request, oneLine(c.Err))
		attrs = append(attrs, slog.Int("status", c.Status),
			slog.String("reason", shownText(reason, mostReason)))
	}
	t.logger.LogAttrs(ctx, level, "change", attrs...)
}

// oneLine returns the text of an error, of which there may be several, one a line. What they quote has
// no line breaks.
func oneLine(err error) string {
	return strings.NewReplacer("weir: ", "", "\n", "; ").Replace(err.Error())
}

// placeName returns the sort of a place.
func placeName(c *httphandler.Change) string {
	switch {
	case c.Namespace != "":
		return "namespace"
	case c.At.Entity != "":
		return "entity"
	case c.At.Resource != "":
		return "resource"
	}
	return "system"
}

// flushEvery is how often the refusals that were left out are logged as a number.
const flushEvery = time.Minute

// run logs the numbers of the refusals that were left out, every minute and at the end.
func (t *trail) run(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t.flush(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
			t.flush(ctx)
		}
	}
}

// flush logs the numbers of the refusals that were left out after the last flush, by kind.
func (t *trail) flush(ctx context.Context) {
	kinds := make([]*refusalCount, 0, len(t.refused))
	for _, kind := range t.refused {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b *refusalCount) int { return cmp.Compare(a.kind, b.kind) })
	for _, kind := range kinds {
		kind.flush(ctx, t.logger)
	}
}
