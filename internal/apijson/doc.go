// Package apijson is the JSON of the HTTP API: the bodies of requests and answers, problems, and
// the RateLimit headers, as docs/server.md and openapi.json describe them. The handler and the
// client both use it, so that a member is added in one place.
//
// A type has the name of its schema in the OpenAPI document. FooOf converts a value of package weir
// to the type Foo, and ReadFoo reads an answer.
//
// [encoding/json] writes requests and reads answers. It skips members that a newer server may have
// added. The handler reads requests itself, because it must refuse such members. encoding/json also
// writes the answers, except those that are sent most often: a lease and a receipt append themselves
// to the text, byte for byte as encoding/json would write them (ADR 34).
//
// Instants and durations are whole milliseconds, as in package weir.
package apijson
