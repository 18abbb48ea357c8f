package limiter_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// unplannedStore is a store that reserves by a record of its own while the configuration is read.
// It notes the calls that it gets.
type unplannedStore struct {
	*fakeStore
	record weir.Limit // without a name, nothing is taken
	parent string     // the parent in the record
	lost   error      // the error of ReserveUnplanned
	// refusesToKeep is the error of KeepUnplanned.
	refusesToKeep error
	readTime      time.Duration

	noted []string
}

func (s *unplannedStore) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted = append(s.noted, what)
}

func (s *unplannedStore) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	what := "read " + of.Entity
	if consistent {
		what += " consistently"
	}
	s.note(what)
	select {
	case <-time.After(s.readTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := s.fakeStore.ReadConfig(ctx, of, consistent)
	if err != nil {
		return nil, err
	}
	of1 := *c
	if of.Entity == "parent" {
		of1.Parent, of1.Cascade = "", false
	}
	return &of1, nil
}

func (s *unplannedStore) ReserveUnplanned(
	_ context.Context, now time.Time, u *driver.Unplanned,
) (*driver.Plan, *driver.Outcome, error) {
	s.note("take " + u.Subject.Entity)
	if s.record.Name == "" || s.lost != nil {
		return nil, nil, s.lost
	}
	p := &driver.Plan{ID: u.ID, New: u.New, Fingerprint: u.Fingerprint, Charges: 1, Lifetime: u.Lifetime}
	p.Subjects = []driver.Judged{{Subject: u.Subject, Parent: s.parent}}
	if s.parent != "" {
		p.Subjects = append(p.Subjects,
			driver.Judged{Subject: weir.Subject{Entity: s.parent, Resource: u.Subject.Resource}})
	}
	for _, j := range p.Subjects {
		p.Takes = append(p.Takes, &driver.Take{
			Subject: j.Subject, Limit: &s.record, Ceiling: s.record.Capacity,
			Parts: []driver.Part{{Units: u.Costs["rpm"]}},
		})
	}
	out := p.Outcome()
	out.At = now.Truncate(time.Millisecond)
	for i := range p.Takes {
		out.Limits[i] = weir.LimitStatus{Entity: p.Takes[i].Entity, Limit: "rpm", Available: 7}
		out.Taken[i].Pieces = []driver.Piece{{Units: 1, Mark: 42}}
	}
	return p, out, nil
}

func (s *unplannedStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	what := "reserve"
	if p.Again {
		what += " again"
	}
	s.note(what)
	return s.fakeStore.Reserve(ctx, now, p, out)
}

// KeepUnplanned records the lease with version 7.
func (s *unplannedStore) KeepUnplanned(
	_ context.Context, _ time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	s.note("keep " + p.Subjects[0].Entity)
	out.Version = 7
	return s.refusesToKeep
}

func (s *unplannedStore) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	what := string(u.Verb)
	if u.Unplanned {
		what = "give back"
	}
	for _, c := range u.Changes {
		if u.Unplanned && (c.To != 0 || c.From != 1 || c.Holding.Pieces[0].Mark != 42) {
			what += " something else"
		}
	}
	if err := ctx.Err(); err != nil {
		what += " too late"
	}
	s.note(what)
	return s.fakeStore.Update(ctx, now, u, out)
}

// newUnplannedStore returns a store whose record equals its configuration, and a limiter over it.
func newUnplannedStore(t *testing.T, o *limiter.Options) (*unplannedStore, *limiter.Limiter) {
	t.Helper()
	s := &unplannedStore{fakeStore: newFakeStore(), readTime: 10 * time.Millisecond}
	s.record = s.config.Levels[0].Limits[0]
	l, err := limiter.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

// checkCalls checks the calls that the store got. Reads come first, because they run in the
// background.
func (s *unplannedStore) checkCalls(t *testing.T, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.noted, func(a, b string) int {
		switch first, second := strings.HasPrefix(a, "read"), strings.HasPrefix(b, "read"); {
		case first && second:
			return strings.Compare(a, b)
		case first:
			return -1
		case second:
			return 1
		}
		return 0
	})
	if got := strings.Join(s.noted, ", "); got != want {
		t.Errorf("the store was asked: %s\nwant: %s", got, want)
	}
	s.noted = nil
}

// checkConcurrentCalls checks the calls that the store got from callers that ran at the same time,
// in any order. want has the reads first, and the others in alphabetical order.
func (s *unplannedStore) checkConcurrentCalls(t *testing.T, want string) {
	t.Helper()
	s.mu.Lock()
	slices.Sort(s.noted)
	s.mu.Unlock()
	s.checkCalls(t, want)
}
