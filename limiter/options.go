package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Options tune a [Limiter]. A nil *Options means all defaults.
type Options struct {
	// Limits apply to a subject for which the store has no limits configured. Default: none.
	Limits []weir.Limit
	// OnUnavailable decides what a reservation becomes if the store does not answer. Default: the
	// policy in the store's configuration, or Block if it has none.
	OnUnavailable weir.Policy
	// StoreTimeout bounds how long a reservation, an update or a status waits for the store; a
	// nearer deadline of the caller bounds it further. Administrative calls and lists instead get
	// as long as the caller's deadline allows or, without a deadline, one minute or StoreTimeout,
	// whichever is longer. A store in the process gets no timeout. Default: one second.
	StoreTimeout time.Duration
	// LeaseLifetime is how long a lease lives unless it is extended. A lease lives longer if one of
	// its concurrency limits has a longer timeout. Default: one hour.
	LeaseLifetime time.Duration
	// LeaseMemory is how long an ended lease is remembered. Default: ten minutes.
	LeaseMemory time.Duration
	// LeaseMemorySize bounds the number of ended leases that are remembered. Default: a million.
	LeaseMemorySize int
	// MaxLeases bounds the number of live leases. A reservation above it is refused with code
	// [weir.Overloaded]. Default: a million.
	MaxLeases int
	// MaxLeasesPerCaller bounds the number of live leases of each caller that
	// [weir.ContextWithCaller] names. Default: a tenth of MaxLeases, or nine tenths while there is
	// only one such caller.
	MaxLeasesPerCaller int
	// CacheTTL is how long a resolution is reused before the configuration is read again. A
	// negative value turns the cache off. Default: one minute.
	CacheTTL time.Duration
	// CacheSize is the number of resolutions that the cache has room for. It may hold up to twice
	// as many. Default: 250,000.
	CacheSize int
	// CascadeDepth is the number of ancestors that a charge may reach, from 1 to 8. A longer chain
	// of parents is an error. Default: one.
	CascadeDepth int
	// DeclaredResources refuses a charge on a resource that has no limits of its own, neither for
	// everybody nor for an entity that is charged, with code [weir.NotFound]. Without it a
	// misspelled or invented resource has the limits of the system, on counters of its own.
	// Default: false.
	DeclaredResources bool
	// Now reads the clock. Default: [time.Now].
	Now func() time.Time
	// Observer is told of every call. Default: none.
	Observer Observer
}

const maxCascadeDepth = 8

// withDefaults returns the options with defaults filled in, or every mistake in them, joined.
func (o *Options) withDefaults(traits driver.Traits) (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var errs []error
	positive := func(field string, d *time.Duration, byDefault time.Duration) {
		if *d == 0 {
			*d = byDefault
		}
		if *d < time.Millisecond {
			errs = append(errs, invalid(field, *d, "must be at least a millisecond"))
		}
	}
	positive("StoreTimeout", &out.StoreTimeout, time.Second)
	positive("LeaseLifetime", &out.LeaseLifetime, time.Hour)
	positive("LeaseMemory", &out.LeaseMemory, 10*time.Minute)
	if out.CacheTTL == 0 {
		out.CacheTTL = time.Minute
	}
	count := func(field string, n *int, byDefault, limit int, why string) {
		if *n == 0 {
			*n = byDefault
		}
		if *n < 1 || *n > limit {
			errs = append(errs, invalid(field, *n, fmt.Sprintf("must be from 1 to %d%s", limit, why)))
		}
	}
	count("LeaseMemorySize", &out.LeaseMemorySize, 1_000_000, 1<<30, "")
	count("MaxLeases", &out.MaxLeases, 1_000_000, 1<<30, "")
	if out.MaxLeasesPerCaller != 0 && out.MaxLeases > 0 {
		count("MaxLeasesPerCaller", &out.MaxLeasesPerCaller, 0, out.MaxLeases, ", the bound on all leases")
	}
	count("CacheSize", &out.CacheSize, 250_000, 1<<30, "")
	count("CascadeDepth", &out.CascadeDepth, 1, min(maxCascadeDepth, traits.CascadeDepth),
		", the most that the store allows")
	switch out.OnUnavailable {
	case "", weir.Block, weir.Allow:
	default:
		errs = append(errs, invalid("OnUnavailable", string(out.OnUnavailable), "must be block or allow"))
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	var err error
	if out.Limits, err = weir.NormalizeLimits("Limits", out.Limits); err != nil {
		errs = append(errs, err)
	}
	for i := range out.Limits {
		if err := checkSupported(&traits, "Limits."+out.Limits[i].Name, &out.Limits[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// checkSupported refuses a limit that the store does not support: one of a kind that it does not
// enforce, or a shadow limit.
func checkSupported(t *driver.Traits, field string, l *weir.Limit) error {
	switch {
	case !slices.Contains(t.Kinds, l.Kind):
		return weir.NewError(weir.Unsupported, field+".kind", string(l.Kind),
			"this store does not support this kind of limit")
	case l.Shadow && t.NoShadow:
		return weir.NewError(weir.Unsupported, field+".enforce", false,
			"this store does not support shadow limits")
	}
	return nil
}

// Observer is told of every reservation and every update when it ends. Metrics and logs are
// attached here. Observe runs on the caller's goroutine, so it must be fast, and it must be safe
// for concurrent use.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Event describes one reservation or update.
type Event struct {
	Verb    weir.Verb
	LeaseID weir.LeaseID
	// At is when the call began, by [Options.Now].
	At time.Time
	// Took is how long the call lasted, by the same clock.
	Took time.Duration
	// Charges are those of the request, also if it has a single one: who asked. They are nil for
	// other verbs, and for a malformed request. They belong to the caller: Observe must neither
	// keep nor change them.
	Charges []weir.Charge
	// Limits has the status of every limit that a reservation was judged by; nil for other verbs.
	Limits []weir.LimitStatus
	// Used has the change that an update made on each limit, in the order of the lease's limits.
	// It is empty for a reservation, an extend, an error, a replay and a degraded lease. Observe
	// must not keep it.
	Used []Use
	// Replay reports that the call repeated one that had been answered before.
	Replay bool
	// Degraded reports that the lease is a degraded one, of which the store knows nothing.
	Degraded bool
	// RefundInDoubt is [weir.Receipt.RefundInDoubt] of the answer.
	RefundInDoubt bool
	// Err is the error that the call returned: nil, a [*weir.DeniedError] or a [*weir.Error].
	Err error
}

// Use is the change that an update made on one limit of a lease.
type Use struct {
	// Subject is whose limit it is: the request's, or that of an ancestor. It is empty if another
	// process reserved the lease and the store does not keep the names.
	weir.Subject
	Limit string
	Kind  weir.Kind
	// Change is the change of the use of the limit, in units: above zero if the lease now stands
	// for more, below zero for a refund.
	Change int64
	// Total is the units that the lease stands for on the limit after the update. After a
	// complete it is what was used, also of slots, which the lease has returned; after a cancel
	// it is 0.
	Total int64
}
