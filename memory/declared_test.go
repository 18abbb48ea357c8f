package memory

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
)

// TestDeclaredRecord writes the record of what a limits file manages. A writer that has read an older
// record is refused, and so is a change under a claim that does not stand.
func TestDeclaredRecord(t *testing.T) {
	t.Parallel()
	snapshot, err := OpenSnapshot(filepath.Join(t.TempDir(), "state"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = snapshot.Close() })
	plain, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]interface {
		declare.Store
		WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error
	}{"plain": plain, "snapshot": snapshot} {
		ctx, now := t.Context(), time.Unix(1e9, 0)
		read, err := s.ReadDeclared(ctx)
		if err != nil || !read.Managed.Empty() || read.Apply != nil {
			t.Fatalf("%s: a new store has %+v, %v", name, read, err)
		}
		first := &declare.Record{Apply: &declare.Mark{ID: "one", At: now}}
		if err := s.WriteDeclared(ctx, now, read, first); err != nil || first.Revision != 1 {
			t.Fatalf("%s: first: %+v, %v", name, first, err)
		}
		late := &declare.Record{Apply: &declare.Mark{ID: "two", At: now}}
		err = s.WriteDeclared(ctx, now, read, late)
		if !errors.Is(err, declare.ErrClaimLost) || !errors.Is(err, weir.Conflict) {
			t.Errorf("%s: a writer with an old record: got %v", name, err)
		}
		for id, want := range map[string]bool{"one": true, "two": false} {
			err := s.WritePolicy(declare.WithClaim(ctx, id), now, weir.Allow)
			if ok := err == nil; ok != want || !ok && !errors.Is(err, declare.ErrClaimLost) {
				t.Errorf("%s: a change under the claim %s: got %v", name, id, err)
			}
		}
		for of, err := range s.LiveSubjects(ctx, now, weir.Subject{}) {
			t.Errorf("%s: %v is live, %v", name, of, err)
		}
		if err := s.FollowConfig(ctx, now, nil); err != nil || s.DeclaredNamespace() != "" {
			t.Errorf("%s: %v, namespace %q", name, err, s.DeclaredNamespace())
		}
	}
}
