package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/archive"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/schema"
)

// openArchive opens an archive to write to, and checks that its bucket exists. A bucket that does
// not answer may do so later.
func openArchive(cmd *cobra.Command, url string) (*archive.Archive, error) {
	l, err := archive.Parse(url)
	if err != nil {
		return nil, console.UsageError(cmd, "%w", err)
	}
	ar, err := archive.Open(cmd.Context(), l)
	if err != nil {
		return nil, connect.ServiceError(err)
	}
	if err := ar.Check(cmd.Context()); err != nil && !errors.Is(err, weir.Unavailable) {
		return nil, connect.ServiceError(err)
	}
	return ar, nil
}

// orFromArchive makes a command read an archive if a flag names one.
func orFromArchive(
	a *console.App, cmd *cobra.Command, plan connect.Plan, q *weir.AuditQuery, url *string,
) *cobra.Command {
	fromStore := cmd.RunE
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("archive") {
			return fromStore(cmd, args)
		}
		if err := console.RejectBlankFlags(cmd); err != nil {
			return err
		}
		for _, name := range []string{"server", "store", "limits", "token-file", "ca-cert"} {
			if cmd.Flags().Changed(name) {
				return console.UsageError(cmd,
					"--archive and --%s cannot be combined: give one of them", name)
			}
		}
		if _, err := plan(cmd, args); err != nil { // it fills q
			return console.AsUsageError(cmd, err)
		}
		if !q.To.IsZero() && !q.From.Before(q.To) {
			return console.UsageError(cmd, "--to must be after --from")
		}
		l, err := archive.Parse(*url, "namespace", "namespace_id")
		if err != nil {
			return console.UsageError(cmd, "%w", err)
		}
		ar, err := archive.Open(cmd.Context(), l)
		if err != nil {
			return connect.ServiceError(err)
		}
		body, damage, err := listArchive(cmd.Context(), ar, q)
		if err != nil {
			return connect.ServiceError(err)
		}
		output, _ := cmd.Flag("output").Value.(*console.Choice)
		return errors.Join(body.answer().Print(a, output), damage)
	})
	return cmd
}

// idSlack is how far the time in the ID of an event may be from its timestamp.
const idSlack = 24 * time.Hour

// listArchive lists the newest events of a query. damage is what could not be read.
func listArchive(
	ctx context.Context, ar *archive.Archive, q *weir.AuditQuery,
) (body *auditBody, damage, err error) {
	s := newArchiveSearch(ar, q)
	to := q.To
	if at, ok := idTime(q.After); ok {
		if latest := at.Add(idSlack); to.IsZero() || latest.Before(to) {
			to = latest
		}
	}
	for day, err := range ar.Days(ctx, aggregator.ArchivePrefix, q.From, to) {
		if err != nil {
			return nil, nil, err
		}
		if s.enough(day) {
			break
		}
		if err := s.readDay(ctx, day); err != nil {
			return nil, nil, err
		}
	}
	s.trim()
	body = &auditBody{Events: []auditEventBody{}}
	for i, e := range s.found {
		if i == q.Size {
			body.Next = s.found[i-1].ID
			break
		}
		body.add(e.AuditEvent)
	}
	return body, s.damage(), nil
}

// archiveSearch keeps the newest events of a query that were found so far, and one more.
type archiveSearch struct {
	of    *archive.Archive
	q     *weir.AuditQuery
	owner string
	after string

	mu    sync.Mutex // guards the fields below while objects are read in parallel
	found []*aggregator.ArchivedEvent
	bad   []*badObject
	many  int // damage that is not in bad
}

func newArchiveSearch(ar *archive.Archive, q *weir.AuditQuery) *archiveSearch {
	s := &archiveSearch{of: ar, q: q, owner: schema.AuditSystem}
	if id, err := weir.ParseLeaseID(q.After); err == nil {
		s.after = id.String() // it may be given in lower case
	}
	switch {
	case q.At.Entity != "":
		s.owner = q.At.Entity
	case q.At.Resource != "":
		s.owner = schema.AuditResource(q.At.Resource)
	}
	return s
}

// enough reports whether no event of a day, or of an earlier one, is among the newest.
func (s *archiveSearch) enough(day time.Time) bool {
	s.trim()
	if len(s.found) <= s.q.Size {
		return false
	}
	oldest, ok := idTime(s.found[s.q.Size].ID)
	return ok && !oldest.Before(day.AddDate(0, 0, 1).Add(idSlack))
}

// idTime returns the time in the ID of an event; ok is false if it is not a ULID.
func idTime(id string) (at time.Time, ok bool) {
	ulid, err := weir.ParseLeaseID(id)
	if err != nil {
		return at, false
	}
	var ms int64
	for _, b := range ulid[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms), true
}

// matches reports whether an event is one of the query.
func (s *archiveSearch) matches(e *aggregator.ArchivedEvent) bool {
	in := &s.of.Location
	switch {
	case e.Entity != s.owner,
		in.NamespaceID != "" && e.NamespaceID != in.NamespaceID,
		in.NamespaceID == "" && e.Namespace != cmp.Or(in.Namespace, schema.DefaultNamespace),
		s.q.At.Entity != "" && s.q.At.Resource != "" && e.Resource != s.q.At.Resource,
		e.At.Before(s.q.From),
		!s.q.To.IsZero() && !e.At.Before(s.q.To),
		s.after != "" && e.ID >= s.after:
		return false
	}
	return true
}

// trim sorts what was found, drops what occurs twice, and keeps the newest.
func (s *archiveSearch) trim() {
	compare := func(a, b *aggregator.ArchivedEvent) int {
		return cmp.Or(cmp.Compare(b.ID, a.ID), cmp.Compare(a.NamespaceID, b.NamespaceID))
	}
	slices.SortStableFunc(s.found, compare)
	s.found = slices.CompactFunc(s.found,
		func(a, b *aggregator.ArchivedEvent) bool { return compare(a, b) == 0 })
	if keep := s.q.Size + 1; len(s.found) > keep {
		clear(s.found[keep:])
		s.found = s.found[:keep]
	}
}

// parallelReads is the number of objects that are read at the same time.
const parallelReads = 8

// readDay reads the objects of a day.
func (s *archiveSearch) readDay(ctx context.Context, day time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keys := make(chan string)
	var all sync.WaitGroup
	for range parallelReads {
		all.Go(func() {
			for key := range keys {
				if err := s.readObject(ctx, key); err != nil {
					cancel(err)
				}
			}
		})
	}
	var failed error
	for key, err := range s.of.Objects(ctx, aggregator.ArchiveDay(day)) {
		if failed = err; err != nil || ctx.Err() != nil {
			break
		}
		if strings.HasSuffix(key, ".jsonl.gz") {
			keys <- key
		}
	}
	close(keys)
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return failed
}

// readObject reads an object. The error is one that is not of this object alone.
func (s *archiveSearch) readObject(ctx context.Context, key string) error {
	body, err := s.of.Read(ctx, key)
	switch {
	case errors.Is(err, weir.NotFound), errors.Is(err, weir.Unsupported):
		s.note(key, err)
		return nil
	case err != nil:
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	for e, err := range aggregator.ReadArchive(body) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.note(key, err)
		case s.matches(e):
			s.mu.Lock()
			if s.found = append(s.found, e); len(s.found) > 2*s.q.Size+1000 {
				s.trim()
			}
			s.mu.Unlock()
		}
	}
	return nil
}

// badObject is an object, or a line of it, that could not be read.
type badObject struct {
	key string
	err error
}

// mostDamage bounds the damage that is reported one by one.
const mostDamage = 100

func (s *archiveSearch) note(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bad) == mostDamage {
		s.many++
		return
	}
	s.bad = append(s.bad, &badObject{key, err})
}

// damage returns the error for what could not be read; nil if there is nothing.
func (s *archiveSearch) damage() error {
	slices.SortStableFunc(s.bad, func(a, b *badObject) int { return cmp.Compare(a.key, b.key) })
	var errs []error
	for _, b := range s.bad {
		errs = append(errs, fmt.Errorf("object %s%s: %w", s.of.Prefix, b.key, b.err))
	}
	if s.many > 0 {
		errs = append(errs, fmt.Errorf("and %d more lines or objects that cannot be read",
			s.many))
	}
	return errors.Join(errs...)
}
