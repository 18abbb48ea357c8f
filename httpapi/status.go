package httpapi

import (
	"net/http"

	"github.com/weir-limiter/weir"
)

// statusOf is the one table of codes and status codes, for the handler, and read backwards by the
// client's tests. A denial is no code: it is 429.
func statusOf(c weir.Code) int {
	switch c {
	case weir.Invalid, weir.Unsupported:
		return http.StatusBadRequest
	case weir.PermissionDenied:
		return http.StatusForbidden
	case weir.UnknownLimit, weir.NoLimits, weir.NotFound, weir.UnknownLease:
		return http.StatusNotFound
	case weir.Conflict, weir.Ended:
		return http.StatusConflict
	case weir.NeverSatisfiable:
		return http.StatusUnprocessableEntity
	case weir.Unavailable, weir.Overloaded, weir.Superseded:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
