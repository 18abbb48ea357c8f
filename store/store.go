// Package store opens a store by its URL, in the same way for the library, the command line and the
// server:
//
//	memory:                                 in the process, lost when it ends
//	memory:?snapshot=FILE&every=1s          in the process, with its state in a file
//	memory:?usage_days=31                   in the process; see the options of package memory
//	dynamodb://TABLE?region=eu-central-1    a DynamoDB table, which many processes can share
//	tigerbeetle://HOST:PORT,…?cluster=7     a TigerBeetle cluster, by its replicas' addresses
//	tigerbeetle://emulator                  a TigerBeetle in the process, for trying it out
//
// Values in a query are percent-encoded, and a '+' stands for itself. URLs have no credentials: the
// AWS SDK finds those for DynamoDB itself.
//
// [Open] returns a [driver.Store] for limiter.New. [Table] returns the table of a dynamodb: URL for
// administration.
package store

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// Options are the options of a store in addition to its URL. A nil *Options means all defaults.
type Options struct {
	// Definitions are the limits and entities configured when the store is opened, for a store that
	// keeps its configuration in the process. Default: none.
	Definitions *weir.Definitions
	// OnError is called with each error that happens outside of calls, such as one of writing a
	// snapshot; the store tries again by itself. It may be called on a goroutine of the store for
	// which Close waits, so it must not call Close. Default: none.
	OnError func(error)
	// Timeout is how long calls wait for the store: StoreTimeout of the limiter. On DynamoDB a
	// write that has no answer after twice that time is given up, and its outcome is unknown.
	// Default: one second.
	Timeout time.Duration
	// Follow leaves the definitions that are in force on a shared store unchanged. If Definitions
	// differ from them, reservations are refused. It is for a program that makes a single call.
	// Default: false.
	Follow bool
	// PutInForce puts Definitions in force on a shared store even if they were in force before and
	// have been superseded. Default: false.
	PutInForce bool
	// ReadOnly opens an existing store for reading, even if other processes have it open, and
	// creates nothing. Calls that would change something return an error with code
	// [weir.Unsupported]. A store that exists only in the process has nothing to read and is opened
	// as without this option. Default: false.
	ReadOnly bool
}

// Open opens the store that a URL names. The error is a [*weir.Error]: with code [weir.Invalid] for
// a mistake in the URL, which it names, with [weir.Unsupported] for a store that this binary was
// built without, and with [weir.Unavailable] for a store that does not answer.
func Open(ctx context.Context, rawURL string, o *Options) (driver.Store, error) {
	if o == nil {
		o = &Options{}
	}
	scheme, rest, ok := strings.Cut(rawURL, ":")
	if !ok {
		return nil, invalid("store", rawURL, "must begin with a scheme, such as memory:")
	}
	// Errors do not show what follows an unknown scheme, because it may contain a password.
	switch scheme += ":"; scheme {
	case dynamoDBScheme:
		return openDynamoDB(ctx, rest, o)
	case "memory:", tigerBeetleScheme:
		if d := o.Definitions; d != nil && !d.Retention.IsZero() {
			return nil, weir.NewError(weir.Unsupported, "system.retention", "",
				"is not a setting of this store, only of a DynamoDB table: leave it out")
		}
		if scheme == tigerBeetleScheme {
			return openTigerBeetle(ctx, rest, o)
		}
		return openMemory(rest, o)
	default:
		return nil, invalid("store", scheme,
			"is not a store: use memory:, dynamodb: or tigerbeetle:")
	}
}

// Namespace returns the namespace in a tigerbeetle: URL, or the default one if the URL has none. A
// limits file for that store must not name another. For the other stores, which take no limits file
// or have no namespaces, and for a URL that [Open] refuses, it is empty.
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

// openMemory opens a store from the part of its URL after "memory:".
func openMemory(rest string, o *Options) (driver.Store, error) {
	opaque, query, _ := strings.Cut(rest, "?")
	if opaque != "" {
		return nil, invalid("store", "memory:"+rest, "must be memory: or memory:?snapshot=FILE")
	}
	q, err := parseQuery(query, "snapshot", "every", "usage_days", "usage_entries", "audit_events")
	if err != nil {
		return nil, err
	}
	kept := memory.Options{Definitions: o.Definitions}
	for _, of := range []struct {
		name  string
		least int
		out   *int
	}{
		{"usage_days", -1, &kept.UsageDays}, {"usage_entries", 1, &kept.UsageEntries},
		{"audit_events", -1, &kept.AuditEvents},
	} {
		if err := parseKept(q, of.name, of.least, of.out); err != nil {
			return nil, err
		}
	}
	file, persistent := q["snapshot"]
	every, paced := q["every"]
	switch {
	case !persistent && paced:
		return nil, invalid("store.every", every, "needs snapshot=FILE")
	case !persistent:
		return asStore(memory.Open(&kept))
	case file == "":
		return nil, invalid("store.snapshot", file, "must be the name of a file")
	}
	options := &memory.SnapshotOptions{
		Definitions: o.Definitions, OnError: o.OnError, ReadOnly: o.ReadOnly,
		UsageDays: kept.UsageDays, UsageEntries: kept.UsageEntries, AuditEvents: kept.AuditEvents,
	}
	if paced {
		options.Every, err = time.ParseDuration(every)
		if err != nil || options.Every < time.Millisecond {
			return nil, invalid("store.every", every, "must be a duration of at least 1ms, such as 1s")
		}
	}
	return asStore(memory.OpenSnapshot(file, options))
}

// parseKept parses the bound of something that is kept: a number above zero, or -1 for nothing if
// least is -1.
func parseKept(q map[string]string, name string, least int, out *int) error {
	text, given := q[name]
	if !given {
		return nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n != 0 && n >= least && n <= math.MaxInt32:
		*out = n
		return nil
	case least < 0:
		return invalid("store."+name, text, "must be a number above zero, or -1 to keep nothing")
	}
	return invalid("store."+name, text, "must be a number above zero")
}

// asStore returns a nil interface if a store failed to open, and not an interface with a nil
// pointer.
func asStore[B driver.Store](b B, err error) (driver.Store, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

// parseQuery parses name=value pairs, each with a known name and at most once. This is not form
// encoding, because names of files may contain '+' and ';'.
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
				"is unknown: must be "+strings.Join(known, " or "))
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
