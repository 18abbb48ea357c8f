// Package httpapi has what a program imports to use weir over HTTP, or around HTTP.
//
// [NewClient] returns a [weir.Service] that calls a server. [Middleware] puts a reservation around
// the requests of a net/http server, and [NewTransport] around those of a client; both work with
// any service, in the process or over HTTP. The handler that serves the API is in package
// httphandler, below this one.
//
// Only status 200 means admitted, and only status 429 with a body that says so means denied. Every
// failure is an application/problem+json document (RFC 9457) with the code, field, value and reason
// of a [weir.Error]; /openapi.json on a server describes the rest.
package httpapi
