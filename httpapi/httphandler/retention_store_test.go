package httphandler

import (
	"context"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

// RetentionStore is a store in memory that also has settings of the retention, as a DynamoDB table
// does. It keeps usage for 30 days at first. mu guards them.
type RetentionStore struct {
	*memory.Store

	mu  sync.Mutex
	now weir.Retention
}

// NewRetentionStore returns a store with the settings that the examples of the document show.
func NewRetentionStore(s *memory.Store) *RetentionStore {
	return &RetentionStore{Store: s, now: weir.Retention{UsageDays: new(int64(30))}}
}

// ReadRetention implements [driver.RetentionEditor].
func (s *RetentionStore) ReadRetention(context.Context) (*weir.Retention, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.now
	return &r, nil
}

// WriteRetention implements [driver.RetentionEditor].
func (s *RetentionStore) WriteRetention(_ context.Context, _ time.Time, r *weir.Retention) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.UsageDays != nil {
		s.now.UsageDays = r.UsageDays
	}
	if r.AuditDays != nil {
		s.now.AuditDays = r.AuditDays
	}
	if r.TTLMultiplier != nil {
		s.now.TTLMultiplier = r.TTLMultiplier
	}
	return nil
}
