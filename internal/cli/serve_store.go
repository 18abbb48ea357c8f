package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
	"github.com/weir-limiter/weir/store"
)

// servedStore returns the URL of the store that is to be served.
func (a *app) servedStore(o *serveOptions) string {
	return cmp.Or(o.store, a.env(storeEnv), "memory:")
}

// refusePutInForce refuses the flag on a store that has no limits of other servers.
func (a *app) refusePutInForce(cmd *cobra.Command, o *serveOptions) error {
	if !o.putInForce || isCluster(a.servedStore(o)) {
		return nil
	}
	return misused(cmd, "--put-in-force needs a store whose servers share one limits file: "+
		"--store tigerbeetle://HOST:PORT")
}

// openServed opens the store that is to be served.
func (a *app) openServed(ctx context.Context, o *serveOptions) (weir.Backend, error) {
	at := a.servedStore(o)
	refused := func(reason string) error {
		return &weir.Error{Code: weir.Invalid, Field: "limits", Value: o.LimitsFile, Reason: reason}
	}
	opening, m := &store.Options{OnError: o.StoreFaults.Note, PutInForce: o.putInForce}, &manifest.Manifest{}
	o.Namespace = store.Namespace(at)
	switch {
	case isTable(at) && o.LimitsFile != "":
		return nil, refused(limitsOnTable)
	case !isCluster(at):
	case o.LimitsFile == "":
		return nil, refused(limitsOfCluster)
	case o.LimitsFile == standardInput:
		return nil, refused("must be a file, which can be read again")
	default:
		var err error
		if m, err = openingLimits(ctx, o); err != nil {
			return nil, err
		}
		opening.Definitions = m.Definitions
	}
	backend, err := store.Open(ctx, at, opening)
	if err != nil && opening.Definitions != nil && !inURL(err) {
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
	refused, err := rehearse(ctx, m.Definitions, o.limiter)
	if refused != nil {
		return nil, &server.FileError{Err: m.Locate(refused)}
	}
	return m, err
}

// rehearse finds what a limiter would refuse in definitions before a store is opened that puts them
// in force for other servers too. What it is played on can do what a store on TigerBeetle can. err
// is about the options.
func rehearse(ctx context.Context, d *weir.Definitions, o weir.Options) (refused, err error) {
	b, err := memory.Open(nil)
	if err != nil {
		return nil, err
	}
	o.Observer = nil
	l, err := weir.New(b, &o)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return l.Configure(ctx, d), l.Close()
}
