package connect

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
	"github.com/weir-limiter/weir/store"
)

// openStore opens a store for one command.
func openStore(a *console.App, cmd *cobra.Command, t *Target) (*Connection, error) {
	if err := t.checkStore(cmd); err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	m := &manifest.Manifest{}
	if t.limits != "" {
		var err error
		if m, err = ReadLimits(ctx, a, t.limits); err != nil {
			return nil, err
		}
	}
	if namespace := store.Namespace(t.store); namespace != "" && t.limits != "" {
		if err := m.CheckNamespace(namespace); err != nil {
			return nil, err
		}
	}
	if IsCluster(t.store) {
		refused, err := ValidateFor(ctx, m.Definitions, limiter.Options{CascadeDepth: deepest})
		if err := errors.Join(m.Locate(refused), err); err != nil {
			return nil, err
		}
	}
	backend, err := store.Open(ctx, t.store, &store.Options{
		Definitions: m.Definitions, ReadOnly: t.does == Reads || t.does == Compares, Follow: true,
	})
	if err != nil {
		if IsURLError(err) {
			return nil, console.UsageError(cmd, "%w", err)
		}
		return nil, m.Locate(err)
	}
	if err := t.checkLimits(cmd, backend); err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	lim, err := limiter.New(backend, &limiter.Options{
		// Allow the depth of cascade that the limits file declares, as far as the store does.
		CascadeDepth: backend.Traits().CascadeDepth,
	})
	if err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	return &Connection{
		Service: lim, Admin: lim, Records: lim, Limits: declared.New(lim), Close: lim.Close,
	}, nil
}

// openTable returns a connection to the table that the flags name. It sends nothing yet.
func openTable(cmd *cobra.Command, t *Target) (*Connection, error) {
	table, err := store.Table(t.store)
	if err != nil {
		return nil, console.UsageError(cmd, "%w", err)
	}
	return &Connection{Namespaces: table, Close: func() error { return nil }}, nil
}

// IsURLError reports whether a store was not opened because of its URL.
func IsURLError(err error) bool {
	e, ok := errors.AsType[*weir.Error](err)
	return ok && e.Code == weir.Invalid && (e.Field == "store" || strings.HasPrefix(e.Field, "store."))
}

// checkStore refuses a store that would forget what the command did. For a command that only reads
// or settles, it also refuses a store that does not exist.
func (t *Target) checkStore(cmd *cobra.Command) error {
	query, memory := strings.CutPrefix(t.store, "memory:")
	file, kept := snapshotFile(query)
	switch {
	case IsTable(t.store) && t.limits != "":
		return console.UsageError(cmd, "--limits %s", LimitsOnTable)
	case memory && !kept:
		return console.UsageError(cmd,
			"--store %s: the state would be lost at the end of the command: name a file with "+
				"memory:?snapshot=FILE, or a server with --server", t.store)
	case memory && t.does == Configures:
		return console.UsageError(cmd,
			"--store memory: takes its limits from a limits file: change that, and put it into the "+
				"snapshot file with weir limits apply, or change a server's limits with --server")
	case memory && t.ownLimits() && t.limits != "":
		return console.UsageError(cmd, "--limits is not for this command, which is about the limits in "+
			"the snapshot file")
	case t.ownLimits() && IsCluster(t.store):
		return console.UsageError(cmd,
			"--store %s takes its limits from the limits file of its servers, and has no others to "+
				"compare, export or change: change that file, and reload the servers", tigerBeetleScheme)
	case isEmulator(t.store):
		return console.UsageError(cmd, "--store %s: the state would be lost at the end of the command: name a cluster's addresses "+
			"with tigerbeetle://HOST:PORT, or a server with --server", t.store)
	case IsCluster(t.store) && t.does == Configures:
		return console.UsageError(cmd,
			"--store %s takes its limits from the limits file: change the file, and reload the "+
				"servers", tigerBeetleScheme)
	case IsCluster(t.store) && t.limits == "":
		return console.UsageError(cmd, "--limits %s", LimitsOfCluster)
	case t.does == Reserves || t.does == Applies || file == "":
		return nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		reason := "does not exist: weir reserve creates it"
		if t.does == Compares {
			reason = "does not exist: weir limits apply creates it"
		}
		return &weir.Error{Code: weir.Invalid, Field: "store.snapshot", Value: file, Reason: reason}
	}
	return nil // opening the store reports other errors
}

// ownLimits reports whether the command is about the limits that a store keeps.
func (t *Target) ownLimits() bool { return t.does == Compares || t.does == Applies }

// checkLimits refuses a snapshot file without limits for a command that needs some, and a limits
// file beside those that a snapshot file has.
func (t *Target) checkLimits(cmd *cobra.Command, backend any) error {
	k, ok := backend.(interface{ OwnLimits() bool })
	switch {
	case !ok || t.ownLimits():
	case t.limits == "" && !k.OwnLimits():
		return console.UsageError(cmd, "give the store's limits with --limits FILE: the snapshot file has "+
			"none; weir limits apply puts them there")
	case t.limits != "" && k.OwnLimits():
		return console.UsageError(cmd, "--limits %s", LimitsInFile)
	}
	return nil
}

// LimitsInFile is the reason in the error of a limits file beside the limits of a snapshot file.
const LimitsInFile = "cannot be used with a snapshot file that has limits of its own: change them with " +
	"weir limits apply, or take them away by applying a file without limits"

// IsTable reports whether a store's URL names a DynamoDB table, which keeps its own configuration.
func IsTable(url string) bool { return strings.HasPrefix(url, "dynamodb:") }

const tigerBeetleScheme = "tigerbeetle:"

// IsCluster reports whether a store's URL names TigerBeetle.
func IsCluster(url string) bool { return strings.HasPrefix(url, tigerBeetleScheme) }

// isEmulator reports whether a store's URL names the TigerBeetle emulator in the process.
func isEmulator(url string) bool {
	name, _, _ := strings.Cut(url, "?")
	return name == tigerBeetleScheme+"//emulator"
}

// deepest is the largest number of ancestors that a limiter can charge.
const deepest = 8

// LimitsOfCluster is the reason in the error of a cluster without a limits file.
const LimitsOfCluster = "must name a limits file: a TigerBeetle cluster does not store the names of limits and entities"

// LimitsOnTable is the reason in the error of a table with a limits file.
const LimitsOnTable = "cannot be used with a DynamoDB table, which has its own limits: " +
	"change them with weir limits apply, or with weir system, resource and entity set-limits"

// snapshotFile returns the file that a memory store's URL names. A malformed name is refused when
// the store is opened, before anything is created.
func snapshotFile(rest string) (file string, ok bool) {
	_, query, _ := strings.Cut(rest, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if encoded, found := strings.CutPrefix(pair, "snapshot="); found {
			file, _ = url.PathUnescape(encoded)
			return file, true
		}
	}
	return "", false
}

// ValidateFor returns the error with which a limiter would refuse the definitions. A command calls
// it before it opens a store on TigerBeetle, because opening that store puts the definitions in
// force for other servers too. It tries them on a memory store, which supports the same limits. err
// is an error in the options.
func ValidateFor(ctx context.Context, d *weir.Definitions, o limiter.Options) (refused, err error) {
	b, err := memory.Open(nil)
	if err != nil {
		return nil, err
	}
	o.Observer = nil
	l, err := limiter.New(b, &o)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return l.Configure(ctx, d), l.Close()
}

// ReadLimits reads a limits file.
func ReadLimits(ctx context.Context, a *console.App, name string) (*manifest.Manifest, error) {
	data, err := a.Read(ctx, name, MaxLimitsBytes)
	if err != nil {
		return nil, err
	}
	return manifest.Parse(console.InputName(name), data)
}

// MaxLimitsBytes bounds the part of a limits file that is read. The bound of [manifest.Parse] is
// lower, and its error better.
const MaxLimitsBytes = 8 << 20
