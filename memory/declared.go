package memory

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
)

// The record of the places that a limits file manages is kept beside the configuration. It is in a
// snapshot if the configuration is, and a configuration that is replaced as a whole begins without
// it.

var _ declare.Store = (*Store)(nil)

// DeclaredNamespace returns that a limits file may name any namespace.
func (s *Store) DeclaredNamespace() string { return "" }

// ReadDefinitions returns the configuration. It never fails.
func (s *Store) ReadDefinitions(
	context.Context, *declare.Managed,
) (*declare.Definitions, error) {
	return &declare.Definitions{Definitions: s.config.Load().whole()}, nil
}

// ReadDeclared returns the record of the places that a limits file manages. It never fails.
func (s *Store) ReadDeclared(context.Context) (*declare.Record, error) {
	s.editing.Lock()
	defer s.editing.Unlock()
	r := s.declared // the parts are never changed, only replaced
	return &r, nil
}

// WriteDeclared replaces the record, if it is as it was read.
func (s *Store) WriteDeclared(
	_ context.Context, _ time.Time, read, d *declare.Record,
) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if s.declared.Revision != read.Revision {
		return declare.ClaimLost("the record of the limits that a file manages has changed meanwhile")
	}
	d.Revision = read.Revision + 1
	s.declared = *d
	return nil
}

// CheckDeclared returns nil: there is no bound.
func (s *Store) CheckDeclared(*declare.Record) error { return nil }

// checkClaim returns an error if a change is part of an apply that was taken over. The caller
// holds editing.
func (s *Store) checkClaim(ctx context.Context) error {
	id := declare.ClaimOf(ctx)
	if id == "" || s.declared.Apply != nil && s.declared.Apply.ID == id {
		return nil
	}
	return declare.ClaimLost("this apply was taken over, or the configuration was replaced: " +
		"it changes nothing more")
}

// LiveSubjects yields the subjects that have something in use.
func (s *Store) LiveSubjects(
	_ context.Context, now time.Time, of weir.Subject,
) iter.Seq2[weir.Subject, error] {
	return func(yield func(weir.Subject, error) bool) {
		for i := range s.stripes {
			var found []weir.Subject // so that no lock is held while the caller has them
			s.stripes[i].inUse(now.UnixMilli(), func(s weir.Subject) bool {
				return (of.Entity == "" || s.Entity == of.Entity) &&
					(of.Resource == "" || s.Resource == of.Resource)
			}, func(s weir.Subject) bool {
				found = append(found, s)
				return true
			})
			for _, s := range found {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

// FollowConfig does nothing: the store judges by the configuration.
func (s *Store) FollowConfig(context.Context, time.Time, []weir.Subject) error { return nil }
