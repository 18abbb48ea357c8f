package server

import (
	"cmp"
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// readier is a store that may be unable to reserve for a while: one elsewhere that does not answer,
// or one where this server's limits are not the ones in force.
type readier interface {
	// Ready reports why the store cannot reserve.
	Ready(ctx context.Context) error
}

// readyWithin is how long a store has to say that it is ready, where nobody says.
const readyWithin = time.Second

// ready says whether new callers are welcome. The store has as long to answer as for any other
// call.
func (s *Server) ready(ctx context.Context) error {
	if s.ending.Load() {
		return &weir.Error{Code: weir.Unavailable, Reason: "the server is shutting down"}
	}
	if s.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.options.Limiter.StoreTimeout, readyWithin))
	defer cancel()
	return s.store.Ready(ctx)
}
