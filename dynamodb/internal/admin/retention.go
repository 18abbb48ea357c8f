package admin

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// ReadRetention returns the retention in the system's configuration, by a consistent read. Settings
// that the configuration does not have are nil.
func (a *Admin) ReadRetention(ctx context.Context) (*weir.Retention, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	c, err := client.Get(ctx, a.Client, schema.SystemConfigKey(a.config.Namespace), true, schema.ParseConfig)
	if err != nil {
		return nil, err
	}
	r := retentionOf(c)
	return &r, nil
}

// retentionOf returns the settings in a system's configuration, which may be nil.
func retentionOf(c *schema.Config) weir.Retention {
	r := weir.Retention{}
	if c == nil {
		return r
	}
	if c.UsageRetentionDays != 0 {
		r.UsageDays = new(c.UsageRetentionDays)
	}
	if c.RetentionDays != 0 {
		r.AuditDays = new(c.RetentionDays)
	}
	r.TTLMultiplier = c.TTLMultiplier
	return r
}

// WriteRetention changes the settings that r has. The limits and the policy of the system stay. The
// audit event of the change is kept by the new retention.
func (a *Admin) WriteRetention(ctx context.Context, now time.Time, r *weir.Retention) error {
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	err := a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		key := schema.SystemConfigKey(a.config.Namespace)
		item, err := a.Client.GetItem(ctx, key, true)
		if err != nil {
			return err
		}
		return t.planRetention(key, item, r)
	})
	if err == nil && r.TTLMultiplier != nil {
		a.config.NoteTTLMultiplier(&schema.Config{TTLMultiplier: r.TTLMultiplier})
	}
	return err
}

// planRetention plans the writes that change the settings of a system's configuration item, which
// may be nil.
func (t *Change) planRetention(key schema.Key, item schema.Item, r *weir.Retention) error {
	if _, err := client.Parse(item, schema.ParseConfig); err != nil {
		return err
	}
	e, details := t.inNamespace(key), map[string]any{}
	for _, s := range []struct {
		attribute string
		value     *int64
	}{
		{schema.AttrUsageRetention, r.UsageDays},
		{schema.AttrRetention, r.AuditDays},
		{schema.AttrTTLMultiplier, r.TTLMultiplier},
	} {
		if s.value == nil {
			continue
		}
		if n, err := schema.Int64(item[s.attribute]); err == nil && n == *s.value {
			continue
		}
		e.SetNumber(s.attribute, *s.value)
		details[s.attribute] = *s.value
	}
	if len(details) == 0 {
		return nil // nothing changes, for example on a repeated call
	}
	e.SetIfAbsent(schema.AttrConfigVersion, schema.Number(1))
	if err := t.setRetention(item); err != nil {
		return err
	}
	if r.AuditDays != nil {
		t.retention = *r.AuditDays
	}
	t.Update(key, e)
	return t.addAuditEvent(schema.ActionRetentionSet, schema.AuditSystem, "", details)
}
