package limiter

import (
	"context"
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Retention returns for how long the store keeps usage, the audit and idle buckets. Settings that
// are not configured are nil: their defaults apply. If the store is not a [driver.RetentionEditor],
// the error has code [weir.Unsupported].
func (l *Limiter) Retention(ctx context.Context) (*weir.Retention, error) {
	editor, err := l.retentionEditor()
	if err != nil {
		return nil, err
	}
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	r, err := editor.ReadRetention(storeCtx)
	if err != nil {
		return nil, classify(err)
	}
	if r == nil {
		return nil, wrongAnswer("it is neither a retention nor an error")
	}
	return r, nil
}

// SetRetention changes the settings that r has; those that are nil stay as they are. If there are
// mistakes in r, SetRetention returns all of them, joined, and changes nothing. If the store is not
// a [driver.RetentionEditor], the error has code [weir.Unsupported].
func (l *Limiter) SetRetention(ctx context.Context, r weir.Retention) error {
	editor, err := l.retentionEditor()
	if err != nil {
		return err
	}
	if r.IsZero() {
		return invalid("retention", "", "must have at least one of usage_days, audit_days and ttl_multiplier")
	}
	if err := r.Validate(); err != nil {
		return fmt.Errorf("weir: set retention: %w", err)
	}
	return l.changeConfig(ctx, func(ctx context.Context) error {
		return editor.WriteRetention(ctx, l.options.Now(), &r)
	})
}

// noRetention is the reason in the error of a store without settings of the retention.
const noRetention = "is not a setting of this store, only of a DynamoDB table: " +
	"a store in memory keeps usage as the options in its URL say, and TigerBeetle keeps its transfers for good"

func (l *Limiter) retentionEditor() (driver.RetentionEditor, error) {
	if editor, ok := l.store.(driver.RetentionEditor); ok {
		return editor, nil
	}
	return nil, weir.NewError(weir.Unsupported, "retention", "", noRetention)
}
