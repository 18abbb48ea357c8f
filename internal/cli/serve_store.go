package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/store"
)

// servedStore returns the URL of the store that is to be served.
func servedStore(a *console.App, o *serveOptions) string {
	return cmp.Or(o.store, a.Env(connect.StoreEnv), "memory:")
}

// refusePutInForce refuses the flag on a store that has no limits of other servers.
func refusePutInForce(a *console.App, cmd *cobra.Command, o *serveOptions) error {
	if !o.putInForce || connect.IsCluster(servedStore(a, o)) {
		return nil
	}
	return console.UsageError(cmd, "--put-in-force needs a store whose servers share one limits file: "+
		"--store tigerbeetle://HOST:PORT")
}

// openServed opens the store that is to be served.
func openServed(ctx context.Context, a *console.App, o *serveOptions) (weir.Backend, error) {
	at := servedStore(a, o)
	refused := func(reason string) error {
		return &weir.Error{Code: weir.Invalid, Field: "limits", Value: o.LimitsFile, Reason: reason}
	}
	opening, m := &store.Options{OnError: o.StoreFaults.Note, PutInForce: o.putInForce}, &manifest.Manifest{}
	o.Namespace = store.Namespace(at)
	switch {
	case connect.IsTable(at) && o.LimitsFile != "":
		return nil, refused(connect.LimitsOnTable)
	case !connect.IsCluster(at):
	case o.LimitsFile == "":
		return nil, refused(connect.LimitsOfCluster)
	case o.LimitsFile == console.StandardInput:
		return nil, refused("must be a file, which can be read again")
	default:
		var err error
		if m, err = openingLimits(ctx, o); err != nil {
			return nil, err
		}
		opening.Definitions = m.Definitions
	}
	backend, err := store.Open(ctx, at, opening)
	if err != nil && opening.Definitions != nil && !connect.IsURLError(err) {
		return nil, m.Locate(err)
	}
	return backend, err
}

// openingLimits reads the limits that a store is opened with: one on a cluster decides by them, at
// once, whether they are in force.
func openingLimits(ctx context.Context, o *serveOptions) (*manifest.Manifest, error) {
	data, err := server.ReadLimits(o.LimitsFile)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(o.LimitsFile, data)
	if err != nil {
		return nil, &server.FileError{Err: err}
	}
	if err := m.CheckNamespace(o.Namespace); err != nil {
		return nil, &server.FileError{Err: err}
	}
	o.LimitsOpened = data
	refused, err := connect.ValidateFor(ctx, m.Definitions, o.limiter)
	if refused != nil {
		return nil, &server.FileError{Err: m.Locate(refused)}
	}
	return m, err
}
