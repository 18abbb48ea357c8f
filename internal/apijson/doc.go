// Package apijson is the JSON of the HTTP API: the bodies of requests and answers, problems, and
// the RateLimit headers, as docs/server.md and openapi.json describe them. The handler and the
// client both use it, so that a member is added in one place.
//
// A type has the name of its schema in the OpenAPI document. FooOf converts a value of package weir
// to the type Foo, and ReadFoo reads an answer.
//
// [encoding/json] writes requests and reads answers. It skips members that a newer server may have
// added. The handler reads requests itself, because it must refuse such members. The answers to the
// verbs are appended to a buffer by hand, byte for byte as encoding/json writes their types.
//
// Instants and durations are whole milliseconds, as in package weir.
package apijson
