package weir

import (
	"errors"
	"fmt"
)

// Retention says for how long a store keeps what it records and what is idle. A setting that is nil
// is not configured; in a change it means that the setting stays as it is.
type Retention struct {
	// UsageDays is how long a record of usage is kept after it was begun, in days: from 1 to
	// [MaxRetentionDays]. Records that exist keep their time. Default: 90.
	UsageDays *int64
	// AuditDays is how long an event of the audit is kept, in days: from 1 to [MaxRetentionDays].
	// Events that exist keep their time. Default: 90.
	AuditDays *int64
	// TTLMultiplier is how long an idle bucket is kept, as a multiple of the time in which its
	// slowest limit fills up: from 2 to 1,000,000, or 0 to keep it for good. Buckets with
	// limits of the entity's own are always kept. A bucket gets the new time with its next refill.
	// Default: 7.
	TTLMultiplier *int64
}

const (
	// MaxRetentionDays is the longest retention of usage and of the audit, in days.
	MaxRetentionDays = 3650
	// maxTTLMultiplier is the largest multiplier of the time to live of buckets.
	maxTTLMultiplier = 1_000_000
)

// IsZero reports whether no setting is configured.
func (r Retention) IsZero() bool { return r == Retention{} }

// Same reports whether both have the same settings with the same values.
func (r Retention) Same(o Retention) bool {
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(r.UsageDays, o.UsageDays) && same(r.AuditDays, o.AuditDays) &&
		same(r.TTLMultiplier, o.TTLMultiplier)
}

// All yields each setting with the name that it has in a limits file and on the wire: "usage_days",
// "audit_days", "ttl_multiplier". The value is nil if the setting is not configured.
func (r Retention) All(yield func(name string, value *int64) bool) {
	_ = yield("usage_days", r.UsageDays) && yield("audit_days", r.AuditDays) &&
		yield("ttl_multiplier", r.TTLMultiplier)
}

// Validate returns every mistake in the settings, joined: each is an [*Error] with code [Invalid]
// whose Field is the name of the setting, as [Retention.All] yields it.
func (r Retention) Validate() error {
	var errs []error
	for name, value := range r.All {
		least, most := int64(1), int64(MaxRetentionDays)
		reason := fmt.Sprintf("must be from %d to %d days", least, most)
		if name == "ttl_multiplier" {
			least, most = 0, maxTTLMultiplier
			reason = fmt.Sprintf("must be from 2 to %d, or 0 to keep idle buckets for good", most)
		}
		// Times are rounded down to seconds, so a multiple of 1 would end before the limit has filled up.
		tooShort := name == "ttl_multiplier" && value != nil && *value == 1
		if value != nil && (*value < least || *value > most || tooShort) {
			errs = append(errs, invalid(name, *value, reason))
		}
	}
	return errors.Join(errs...)
}
