package httphandler

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Role is a set of rights of a caller. Each role includes the weaker ones.
type Role int

// The roles, the weakest first.
const (
	// RoleNone may do nothing that needs a bearer token.
	RoleNone Role = iota
	// RoleRead may read status, explanations, children, capacity, activity, usage and the audit.
	RoleRead
	// RoleCall may reserve, adjust, complete, cancel and extend as well.
	RoleCall
	// RoleAdmin may change the configuration, and bring limits with a reserve.
	RoleAdmin
)

// String returns the role's word: "none", "read", "call" or "admin".
func (r Role) String() string {
	switch r {
	case RoleRead:
		return "read"
	case RoleCall:
		return "call"
	case RoleAdmin:
		return "admin"
	case RoleNone:
	}
	return "none"
}

// Identity is the owner of a bearer token.
type Identity struct {
	// Name is the name of the caller in what [Options.Trail] and [Details] say for logs, and in the
	// audit of its changes of the configuration.
	Name string
	// Role has the rights of the caller.
	Role Role
	// AllNamespaces lets a caller with [RoleAdmin] see and change all namespaces of the table that
	// the service is on. Default: false, only that of the service.
	AllNamespaces bool
}

// Require guards another handler as the API guards its own routes. Callers with a bearer token of
// the role least or a stronger one reach next; all callers do if Options.Authenticate is nil. Other
// callers get a problem with status 401 or 403.
func (h *Handler) Require(least Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &incoming{w: w, r: r, details: h.wantedDetails(r.Context())}
		err := h.authenticate(c, least)
		if c.details != nil {
			c.details.asked(c)
		}
		if err != nil {
			h.tellRefused(r.Context(), c, err)
			h.fail(w, r, err)
			return
		}
		h.options.LetIn(r.Context())
		next.ServeHTTP(w, r)
	})
}

// authenticate sets the identity of the caller, and returns an error if its role is too weak. It
// reads only the header. Its errors do not quote the bearer token.
func (h *Handler) authenticate(c *incoming, least Role) error {
	if h.options.Authenticate == nil {
		return nil
	}
	given := c.r.Header.Values("Authorization")
	if len(given) == 0 {
		return unauthorized("Bearer", "must be given")
	}
	token, reason := bearerToken(given)
	if reason != "" {
		return unauthorized(`Bearer error="invalid_request"`, reason)
	}
	identity, ok := h.options.Authenticate(token)
	if !ok {
		return unauthorized(`Bearer error="invalid_token"`, "the bearer token is not known")
	}
	c.identity = identity
	if identity.Role < least {
		return apijson.Refusal(http.StatusForbidden, &weir.Error{
			Code: weir.PermissionDenied, Field: "role", Value: identity.Role.String(),
			Reason: "must be " + least.String() + " or higher for this request",
		}, "WWW-Authenticate", `Bearer error="insufficient_scope"`)
	}
	return nil
}

// withCaller names the caller for the engine: the owner of the bearer token, or the address if no
// bearer tokens are in use.
func (h *Handler) withCaller(ctx context.Context, c *incoming) context.Context {
	if h.options.Authenticate != nil {
		c.caller = c.identity.Name
		return weir.ContextWithCaller(ctx, c.caller)
	}
	if address, ok := ctx.Value(addressKey{}).(string); ok {
		c.caller = address
		return ctx
	}
	c.caller = callerAddress(c.r.RemoteAddr)
	return weir.ContextWithCaller(ctx, c.caller)
}

// withPrincipal names the caller in the audit of its changes of the configuration. An address names
// no one, so the store uses its own name if no bearer tokens are in use.
func (h *Handler) withPrincipal(ctx context.Context, c *incoming) context.Context {
	if h.options.Authenticate == nil || c.identity.Name == "" {
		return ctx
	}
	return weir.WithPrincipal(ctx, c.identity.Name)
}

// addressKey is the context key of the address that [ConnContext] set as the caller.
type addressKey struct{}

// ConnContext names the remote address of a connection as the caller (see
// [weir.ContextWithCaller]). Set it as [http.Server.ConnContext] so that a [Handler] without bearer
// tokens parses the address once for each connection instead of once for each request.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	address := callerAddress(conn.RemoteAddr().String())
	return context.WithValue(weir.ContextWithCaller(ctx, address), addressKey{}, address)
}

// callerAddress returns the IP address of a caller, or "" if remote is not an address with a port.
// It does not trust X-Forwarded-For. It cuts an IPv6 address to its first 64 bits, because one host
// usually has all addresses with this prefix and could otherwise pose as many callers.
func callerAddress(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, err := address.Prefix(64)
		if err != nil {
			return ""
		}
		address = network.Addr()
	}
	return address.String()
}

func unauthorized(challenge, reason string) error {
	return apijson.Refusal(http.StatusUnauthorized, &weir.Error{
		Code: weir.PermissionDenied, Field: "Authorization", Reason: reason,
	}, "WWW-Authenticate", challenge)
}

// bearerToken returns the bearer token of the header (RFC 6750), or the reason that it is missing
// or malformed.
func bearerToken(given []string) (token, reason string) {
	if len(given) > 1 {
		return "", "is given twice"
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", "must have the scheme Bearer"
	}
	token = strings.Trim(token, " ")
	body := strings.TrimRight(token, "=")
	if body == "" {
		return "", "must have a bearer token"
	}
	for i := range len(body) {
		if !isTokenByte(body[i]) {
			return "", "has characters that a bearer token cannot have"
		}
	}
	return token, ""
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("-._~+/", c) >= 0
}
