package weir

import (
	"sync"
	"sync/atomic"
)

// storedPolicy is the policy of the store's configuration, as last read or set. What was read before a
// change of this process does not come back after it.
type storedPolicy struct {
	policy atomic.Pointer[Policy]
	epoch  atomic.Int64 // counts the changes
	mu     sync.Mutex
}

// last returns the policy; empty where none is known.
func (s *storedPolicy) last() Policy {
	if p := s.policy.Load(); p != nil {
		return *p
	}
	return ""
}

// set says what the policy has been changed to.
func (s *storedPolicy) set(p Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch.Add(1)
	s.policy.Store(&p)
}

// read says what was read, and at which epoch the reading began.
func (s *storedPolicy) read(p Policy, epoch int64) {
	if known := s.policy.Load(); known != nil && *known == p {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch.Load() == epoch {
		s.policy.Store(&p)
	}
}
