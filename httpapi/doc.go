// Package httpapi uses weir over HTTP, or around HTTP requests.
//
// [NewClient] returns a [Client], a [weir.Service] that calls a server. It encodes a call once and
// sends the same bytes in every attempt, with the same lease ID, until a weir server has answered,
// the attempts are used up, or nine tenths of the time to the caller's deadline have passed. It
// cancels in the background a reservation that ended without an answer.
//
// [Middleware] puts a reservation around the requests that a net/http server handles, and a
// [Transport] around those that a client sends. Both work with any service, in the process or over
// HTTP. They run [weir.Do], which reserves, extends the lease, and settles it.
//
// The server keeps the leases. If a program dies between a reserve and its settlement, what it
// reserved stays charged, and its slots return after their timeout. A program that has stored the
// lease ID can settle the lease after a restart.
//
// [Admin] is the interface to the configuration, which a [Client] and a limiter implement. The
// handler that serves the API is in package httphandler, below this one.
//
// Only status 200 means admitted, and only status 429 with a body that says so means denied. Every
// failure is an application/problem+json document (RFC 9457) with the code, field, value and reason
// of a [weir.Error]. The document /openapi.json on a server describes the rest.
package httpapi
