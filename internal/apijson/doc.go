// Package apijson is the JSON of the HTTP API: the bodies of requests and answers, problems, and
// the RateLimit headers, as docs/server.md and openapi.json describe them. The handler and the
// client both use it, so that a member is added in one place.
//
// A type has the name of its schema in the OpenAPI document. FooOf converts a value of package weir
// to the type Foo, and ReadFoo reads a body.
//
// Answers are read by [encoding/json], which skips members that a newer server may have added.
// Requests come from anybody, so they are read by a reader of this package that refuses unknown and
// repeated members, reports every mistake with its path, and uses no more memory than the body is
// long. The bodies that callers send most are recognised by a scanner that allocates next to
// nothing; whatever it does not recognise goes to the reader (ADR 13). The answers to the verbs are
// appended to a buffer by hand, byte for byte as [encoding/json] writes their types.
//
// Instants and durations are whole milliseconds, as in package weir.
package apijson
