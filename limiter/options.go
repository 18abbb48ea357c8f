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

// Options tune a [Limiter]. Nil means all defaults.
type Options struct {
	// Limits apply where nothing is configured in the store. Default: none.
	Limits []weir.Limit
	// OnUnavailable says what a reservation becomes when the store does not answer. Default: what
	// the store's configuration says, otherwise Block.
	OnUnavailable weir.Policy
	// StoreTimeout is how long the store gets to answer; less where the caller's deadline is
	// nearer. What an administrator does, and whatever lists, gets as long as the caller's deadline
	// allows, and a minute without one, or StoreTimeout if that is longer. A store in the process
	// gets no timeout. Default: one second.
	StoreTimeout time.Duration
	// LeaseLifetime is how long a lease lives unless it is extended; never less than the longest
	// timeout of its concurrency limits. Default: one hour.
	LeaseLifetime time.Duration
	// LeaseMemory is how long an ended lease is remembered. Default: ten minutes.
	LeaseMemory time.Duration
	// LeaseMemorySize is how many ended leases are remembered at most. Default: a million.
	LeaseMemorySize int
	// MaxLeases is how many leases are live at most; a reservation above it is refused with code
	// [weir.Overloaded]. Default: a million.
	MaxLeases int
	// MaxLeasesPerCaller is how many of them one caller has at most that [weir.ContextWithCaller]
	// names. Default: a tenth of MaxLeases; a caller that is the only one may have the other nine
	// tenths.
	MaxLeasesPerCaller int
	// CacheTTL is how long a resolution may be used again; negative turns the cache off.
	// Default: one minute.
	CacheTTL time.Duration
	// CacheSize is how many resolutions are kept at least, where so many are asked for; at most
	// twice as many. Default: 250,000.
	CacheSize int
	// CascadeDepth is how many ancestors a charge reaches, from 1 to 8. A longer chain is an
	// error. Default: one.
	CascadeDepth int
	// Now reads the clock. Default: [time.Now].
	Now func() time.Time
	// Observer is told of every call. Default: nobody.
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
	count("CascadeDepth", &out.CascadeDepth, 1, min(maxCascadeDepth, traits.CascadeDepth), ", what the store allows")
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

// checkSupported refuses a limit that the store cannot do: one of a kind that it does not enforce,
// or a shadow limit where it has none.
func checkSupported(t *driver.Traits, field string, l *weir.Limit) error {
	switch {
	case !slices.Contains(t.Kinds, l.Kind):
		return weir.NewError(weir.Unsupported, field+".kind", string(l.Kind), "this store does not enforce the kind")
	case l.Shadow && t.NoShadow:
		return weir.NewError(weir.Unsupported, field+".enforce", false, "this store has no shadow limits")
	}
	return nil
}

// Observer is told of every call to a [Limiter], after it. It must be quick and safe to call at
// once; it is where metrics and logs attach.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Event is one call.
type Event struct {
	Verb    weir.Verb
	LeaseID weir.LeaseID
	// At is when the call began, by the limiter's clock.
	At time.Time
	// Took is how long it lasted, by the same clock.
	Took time.Duration
	// Limits has the status of every limit that a reservation judged; nil for other verbs.
	Limits []weir.LimitStatus
	// Replay is true where the call had been answered before.
	Replay bool
	// Degraded is true where the store was not asked, or did not answer and the policy is Allow.
	Degraded bool
	// RefundInDoubt is that of the receipt, see [weir.Receipt].
	RefundInDoubt bool
	// Err is what the call returned: nil, a [*weir.DeniedError] or an [*weir.Error].
	Err error
}
