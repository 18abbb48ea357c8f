//go:build cgo

package tigerbeetle

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// maxAuditEvents bounds the events that a server remembers.
const maxAuditEvents = 1000

// configAudit remembers the changes of the configuration that this server has made or seen.
type configAudit struct {
	mu sync.Mutex
	// events are in the order of their IDs.
	events []weir.AuditEvent
	last   weir.LeaseID
	// version is the latest version in force that has an event.
	version uint64
}

// add records an event of the system. A later event has a greater ID, whatever the clock does.
func (a *configAudit) add(at time.Time, action, principal string, details map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLocked(at, action, principal, details)
}

// addLocked is like add, for callers that hold a.mu.
func (a *configAudit) addLocked(at time.Time, action, principal string, details map[string]any) {
	id := weir.NewLeaseID(at) // a ULID
	if bytes.Compare(id[:], a.last[:]) <= 0 {
		id = a.last
		for i := len(id) - 1; i >= 0; i-- {
			if id[i]++; id[i] != 0 {
				break
			}
		}
	}
	a.last = id
	if len(a.events) >= maxAuditEvents {
		a.events = slices.Delete(a.events, 0, maxAuditEvents/10)
	}
	a.events = append(a.events, weir.AuditEvent{
		ID: id.String(), At: at.UTC().Truncate(time.Second), Action: action, Entity: "$SYSTEM",
		Principal: principal, Details: details,
	})
}

// auditLoaded records that this server has loaded definitions.
func (s *Store) auditLoaded(ctx context.Context, d *weir.Definitions) {
	limits := int64(0)
	for range d.All {
		limits++
	}
	inForce, _, stale := s.version.now()
	s.audit.add(time.UnixMilli(s.clock.nowMS()), "configuration_loaded", weir.PrincipalOf(ctx),
		map[string]any{
			"version": int64(inForce), "in_force": !stale, "limits": limits,
			"resources": int64(len(d.Resources)), "entities": int64(len(d.Entities)),
		})
}

// auditVersion records which version is in force, unless the latest event of that sort says so.
func (s *Store) auditVersion() {
	inForce, since, stale := s.version.now()
	a := &s.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	if inForce <= a.version {
		return
	}
	a.version = inForce
	a.addLocked(time.UnixMilli(s.clock.nowMS()), "version_in_force", "", map[string]any{
		"version": int64(inForce), "in_force_here": !stale,
		"since": time.UnixMilli(since).UTC().Format(time.RFC3339),
	})
}

// ReadAudit yields the changes of the configuration that this server has made or seen while it
// ran: definitions that it loaded, and versions that it or another server put in force. The
// ledger has no audit, so a restart forgets them, and the oldest of more than 1,000 are forgotten
// too. Resources and entities have no events, because they change with the limits file. It never
// fails.
func (s *Store) ReadAudit(
	_ context.Context, q *weir.AuditQuery,
) iter.Seq2[weir.AuditEvent, error] {
	return func(yield func(weir.AuditEvent, error) bool) {
		if q.At != (weir.Subject{}) {
			return
		}
		s.audit.mu.Lock()
		events := slices.Clone(s.audit.events)
		s.audit.mu.Unlock()
		for _, e := range slices.Backward(events) {
			if q.After != "" && e.ID >= q.After || e.At.Before(q.From) ||
				!q.To.IsZero() && !e.At.Before(q.To) {
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

var _ driver.AuditReader = (*Store)(nil)
