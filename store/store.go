// Package store opens a store by its URL, the same way for the library, the command line and the
// server:
//
//	memory:                                 in the process, forgotten with it
//	memory:?snapshot=FILE&every=1s          the same, with its state kept in a file
//	dynamodb://TABLE?region=eu-central-1    one table, shared by all who open it
//	tigerbeetle://HOST:PORT,…?cluster=7     a TigerBeetle cluster, by the addresses of its replicas
//	tigerbeetle://emulator                  one in the process, to try it: it is forgotten with it
//
// Values in a query are percent-encoded; a '+' stands for itself. Credentials are never in a URL:
// they come from each ecosystem's own chain.
package store

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// Options are what a store is opened with beside its URL. Nil means all defaults.
type Options struct {
	// Definitions are the limits and entities configured at first, for a store that keeps its
	// configuration in the process. Default: none.
	Definitions *weir.Definitions
	// OnError is told of what goes wrong outside of calls, such as writing a snapshot, each time it
	// does; the store tries again by itself. It may be called from a goroutine of the store that
	// Close waits for: to close the store in it would wait forever. Default: nobody.
	OnError func(error)
	// Follow leaves the definitions in force as they are, where the store is shared and has some: a
	// reservation is refused if these are others. It is for what acts once. Default: false.
	Follow bool
	// PutInForce puts the definitions in force, where the store is shared and others are, also if
	// they were in force before and have been superseded. Default: false.
	PutInForce bool
	// ReadOnly opens what is there for looking at it, beside whoever else has it open, and creates
	// nothing. What would change anything is refused with [weir.Unsupported]. A store that is
	// nowhere but in the process has nothing to look at, and is opened as ever.
	// Default: false.
	ReadOnly bool
}

// Open opens the store that a URL names. A mistake in the URL is a [*weir.Error] with code
// [weir.Invalid] that names the part at fault, a store that is not in this binary one with
// [weir.Unsupported]; a store that does not answer is [weir.Unavailable].
func Open(ctx context.Context, rawURL string, o *Options) (driver.Store, error) {
	if o == nil {
		o = &Options{}
	}
	scheme, rest, ok := strings.Cut(rawURL, ":")
	if !ok {
		return nil, invalid("store", rawURL, "must begin with a scheme, such as memory:")
	}
	// What follows a scheme stays out of the errors: somebody may have put a password there.
	switch scheme += ":"; scheme {
	case "memory:":
		return openMemory(rest, o)
	case dynamoDBScheme:
		return openDynamoDB(ctx, rest, o)
	case tigerBeetleScheme:
		return openTigerBeetle(ctx, rest, o)
	default:
		return nil, invalid("store", scheme, "is no store: there are memory:, dynamodb: and tigerbeetle:")
	}
}

// Namespace returns the namespace that a store's URL names, or the default one if it names none. It
// is empty for a store without namespaces, and for a URL that [Open] refuses.
func Namespace(rawURL string) string {
	rest, ok := strings.CutPrefix(rawURL, tigerBeetleScheme)
	if !ok {
		return ""
	}
	t, err := parseTigerBeetle(rest)
	if err != nil {
		return ""
	}
	return cmp.Or(t.options.Namespace, "default")
}

// openMemory opens what follows "memory:".
func openMemory(rest string, o *Options) (driver.Store, error) {
	opaque, query, _ := strings.Cut(rest, "?")
	if opaque != "" {
		return nil, invalid("store", "memory:"+rest, "must have nothing between memory: and the query")
	}
	q, err := parseQuery(query, "snapshot", "every")
	if err != nil {
		return nil, err
	}
	file, persistent := q["snapshot"]
	every, paced := q["every"]
	switch {
	case !persistent && paced:
		return nil, invalid("store.every", every, "needs a snapshot")
	case !persistent:
		return asStore(memory.Open(&memory.Options{Definitions: o.Definitions}))
	case file == "":
		return nil, invalid("store.snapshot", file, "must be the name of a file")
	}
	options := &memory.SnapshotOptions{Definitions: o.Definitions, OnError: o.OnError, ReadOnly: o.ReadOnly}
	if paced {
		options.Every, err = time.ParseDuration(every)
		if err != nil || options.Every < time.Millisecond {
			return nil, invalid("store.every", every, "must be a duration of at least 1ms, such as 1s")
		}
	}
	return asStore(memory.OpenSnapshot(file, options))
}

// asStore makes sure that a store which failed to open is nil, and not a nil of its type.
func asStore[B driver.Store](b B, err error) (driver.Store, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

// parseQuery reads name=value pairs, each of the known names at most once. It is not the form
// encoding: file names may contain '+' and ';'.
func parseQuery(query string, known ...string) (map[string]string, error) {
	out := make(map[string]string)
	if query == "" {
		return out, nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, encoded, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(encoded)
		_, again := out[name]
		switch {
		case !slices.Contains(known, name):
			return nil, invalid("store."+name, encoded,
				"is not known here: must be "+strings.Join(known, " or "))
		case !ok:
			return nil, invalid("store."+name, "", "must have a value")
		case again:
			return nil, invalid("store."+name, encoded, "is given twice")
		case err != nil:
			return nil, invalid("store."+name, encoded, "has a malformed percent-encoding")
		}
		out[name] = value
	}
	return out, nil
}

func invalid(field, value, reason string) *weir.Error {
	return fault(weir.Invalid, field, value, reason)
}

// fault shortens what it quotes to 64 characters, so that a hostile URL does not fill a log.
func fault(code weir.Code, field, value, reason string) *weir.Error {
	return &weir.Error{Code: code, Field: shorten(field), Value: shorten(value), Reason: reason}
}

func shorten(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if runes := []rune(s); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return s
}
