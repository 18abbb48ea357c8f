package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// read decodes an answer. Fields that are not known are a newer server's.
func read[T any](body []byte) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return out, nil
}

// instant is the zero time for zero: a wire without the field says that there is none.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// milliseconds stays at the longest duration there is, as the limiter's waits do.
func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// anyNegativeWait reports whether a limit is said to fit before now, which weir never says.
func anyNegativeWait(bodies []statusBody) bool {
	return slices.ContainsFunc(bodies, func(b statusBody) bool { return b.RetryAfterMS < 0 })
}

func statusesOf(bodies []statusBody) []weir.LimitStatus {
	if len(bodies) == 0 {
		return nil
	}
	out := make([]weir.LimitStatus, len(bodies))
	for i := range bodies {
		b := &bodies[i]
		out[i] = weir.LimitStatus{
			Entity: b.Entity, Resource: b.Resource, Limit: b.Limit, Kind: b.Kind, Level: b.Level,
			Capacity: b.Capacity, Available: b.Available, Requested: b.Requested,
			Exceeded: b.Exceeded, Shadow: b.Shadow, Superseded: b.Superseded,
			RetryAfter: milliseconds(b.RetryAfterMS), AtLeast: b.AtLeast,
		}
	}
	return out
}

// readLease reads the answer to a reservation under an ID.
func readLease(body []byte, id weir.LeaseID) (*weir.Lease, error) {
	b, err := read[leaseBody](body)
	switch {
	case err != nil:
		return nil, err
	case !b.Allowed:
		return nil, errors.New("does not say that it was allowed")
	case b.LeaseID != id:
		return nil, fmt.Errorf("is about another lease: %s", b.LeaseID)
	case b.ReservedAtMS <= 0 || b.Limits == nil || anyNegativeWait(b.Limits):
		return nil, errors.New("is not whole")
	}
	return &weir.Lease{
		ID: b.LeaseID, ReservedAt: instant(b.ReservedAtMS), Expires: instant(b.ExpiresMS),
		HoldsUntil: instant(b.HoldsUntilMS), Degraded: b.Degraded, Replay: b.Replay, Seq: b.Seq,
		Limits: statusesOf(b.Limits),
	}, nil
}

// readReceipt reads the answer to a verb on a lease.
func readReceipt(body []byte, id weir.LeaseID) (*weir.Receipt, error) {
	b, err := read[receiptBody](body)
	switch {
	case err != nil:
		return nil, err
	case b.LeaseID != id:
		return nil, fmt.Errorf("is about another lease: %s", b.LeaseID)
	case b.AtMS <= 0:
		return nil, errors.New("is not whole")
	}
	return &weir.Receipt{
		LeaseID: id, At: instant(b.AtMS), Expires: instant(b.ExpiresMS),
		HoldsUntil: instant(b.HoldsUntilMS), Degraded: b.Degraded,
		RefundInDoubt: b.RefundInDoubt,
	}, nil
}

func readStatuses(body []byte) ([]weir.LimitStatus, error) {
	b, err := read[limitsStatusBody](body)
	if err == nil && b.Limits == nil {
		err = errors.New("has no limits")
	}
	if err == nil && anyNegativeWait(b.Limits) {
		err = errors.New("has a wait below zero")
	}
	if err != nil {
		return nil, err
	}
	return statusesOf(b.Limits), nil
}

// limitsOf reads limits by name, in order of their names.
func limitsOf(bodies map[string]limitBody) ([]weir.Limit, error) {
	if len(bodies) == 0 {
		return nil, nil
	}
	out := make([]weir.Limit, 0, len(bodies))
	for name, b := range bodies {
		l, err := b.limit(name)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(x, y weir.Limit) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// limit is what a body says, with defaults filled in. A limit that only a newer server
// understands is returned as far as it can be read.
func (b *limitBody) limit(name string) (weir.Limit, error) {
	period, err := parseSeconds(string(b.RefillPeriod))
	if err != nil {
		return weir.Limit{}, fmt.Errorf("has a refill_period of %q: %w", shorten(b.RefillPeriod), err)
	}
	l := weir.Limit{
		Name: name, Kind: b.Kind, Capacity: b.Capacity, RefillAmount: b.RefillAmount,
		RefillPeriod: period, Window: seconds(b.Window), Timeout: seconds(b.Timeout),
		Every: b.Every, Zone: b.Zone, Shadow: b.Enforce != nil && !*b.Enforce,
	}
	if normal, err := l.Normalize(); err == nil {
		return normal, nil
	}
	return l, nil
}

func seconds(n int64) time.Duration {
	if n > math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Second
}

func readExplanation(body []byte) (*weir.Explanation, error) {
	b, err := read[explanationBody](body)
	if err != nil {
		return nil, err
	}
	return b.explanation()
}

func (b *explanationBody) explanation() (*weir.Explanation, error) {
	if b.Entity == "" || b.Resource == "" {
		return nil, errors.New("is not whole")
	}
	e := &weir.Explanation{Entity: b.Entity, Resource: b.Resource, Level: b.Level}
	var err error
	if e.Limits, err = limitsOf(b.Limits); err != nil {
		return nil, err
	}
	for _, h := range b.Hidden {
		limits, err := limitsOf(h.Limits)
		if err != nil {
			return nil, err
		}
		e.Hidden = append(e.Hidden, weir.LevelLimits{Level: h.Level, Limits: limits})
	}
	if b.Parent != nil {
		e.Parent, err = b.Parent.explanation()
	}
	return e, err
}

// parseSeconds reads seconds with up to nine digits behind the point; nothing is zero.
func parseSeconds(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return time.ParseDuration(text + "s")
}
