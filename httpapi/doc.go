// Package httpapi speaks weir over HTTP, in JSON with snake_case names.
//
// [NewHandler] serves a [weir.Service]; [NewClient] is one, for callers elsewhere. [Middleware]
// puts a reservation around the requests of a net/http server, [NewTransport] around those of a
// client; both work on any service, in process or over the wire.
//
// Nothing but status 200 means admitted, and nothing but 429 with a body that says so means denied.
// Every failure is an application/problem+json document (RFC 9457) with the code, the field, the
// value and the reason of the [weir.Error]; /openapi.json describes the rest.
package httpapi
