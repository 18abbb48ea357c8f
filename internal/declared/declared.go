// Package declared keeps a store's configuration as a limits file declares it. It works with
// every store that is a [declare.Store], through the methods of a limiter.
//
// The store has a record of the places that a file manages. A place that is in the file is
// created or updated, one that was managed and is no longer in the file is deleted, and one that
// was never managed is left alone (target.go). The difference between what is and what would be
// is a plan (plan.go, reach.go). An apply claims the record, makes the changes one by one under
// the claim, and writes the new set of managed places (apply.go, steps.go). An apply that was
// interrupted leaves its mark in the record; the next one continues, because it plans from what
// the store has then.
package declared

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/joined"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
)

// Limits compares limits files with the store of a limiter and applies them. It has no state of
// its own: what an apply must know is in the store.
type Limits struct{ limiter *limiter.Limiter }

var _ httpapi.LimitsAdmin = (*Limits)(nil)

// New returns the Limits of a limiter.
func New(l *limiter.Limiter) *Limits { return &Limits{l} }

// target is a store, and what is called for it.
type target struct {
	declare.Store

	now func() time.Time
}

func (l *Limits) target() (*target, error) {
	s, now, err := l.limiter.DeclaredStore()
	if err != nil {
		return nil, err
	}
	return &target{s, now}, nil
}

// file is a limits file that was parsed and that the store can hold.
type file struct {
	*httpapi.LimitsFile

	definitions *weir.Definitions
	// sets are the places that the file has.
	sets declare.Managed
	hash string
}

// parse parses a file and checks that it is for this store.
func (l *Limits) parse(t *target, f *httpapi.LimitsFile) (*file, error) {
	name := f.Name
	if name == "" {
		name = "limits"
	}
	m, err := manifest.Parse(name, []byte(f.Text))
	if err != nil {
		return nil, located(err)
	}
	if namespace := t.DeclaredNamespace(); namespace != "" {
		if err := m.CheckNamespace(namespace); err != nil {
			return nil, located(err)
		}
	}
	if err := l.limiter.CheckDefinitions(m.Definitions); err != nil {
		return nil, located(m.Locate(err))
	}
	hash, err := hashOf(m)
	if err != nil {
		return nil, err
	}
	return &file{f, m.Definitions, managedBy(m), hash}, nil
}

// located returns the mistakes in a file as errors that say where they are in the reason, because
// the API has no other place for that.
func located(err error) error {
	var errs []error
	for _, one := range joined.Errors(err) {
		at, ok := errors.AsType[*manifest.Error](one)
		e, known := errors.AsType[*weir.Error](one)
		if ok && known {
			c := *e
			c.Reason += fmt.Sprintf(" (line %d, column %d)", at.Line, at.Column)
			one = &c
		}
		errs = append(errs, one)
	}
	return errors.Join(errs...)
}

// managedBy returns the places that a file has.
func managedBy(m *manifest.Manifest) declare.Managed {
	d := m.Definitions
	set := declare.Managed{
		System: len(d.System) > 0, Policy: m.Has("system.on_unavailable"),
		Retention: !d.Retention.IsZero(), Limits: map[string][]string{},
		Entities:  slices.Sorted(maps.Keys(d.Entities)),
		Resources: withLimits(d.Resources),
	}
	for name, e := range d.Entities {
		if resources := withLimits(e.Limits); len(resources) > 0 {
			set.Limits[name] = resources
		}
	}
	return set
}

// withLimits returns the names, in order, that have limits.
func withLimits(levels map[string][]weir.Limit) []string {
	var names []string
	for name, limits := range levels {
		if len(limits) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hashOf returns the hash of what a file declares: files that differ only in their form have the
// same.
func hashOf(m *manifest.Manifest) (string, error) {
	text, err := manifest.Format(manifest.DefaultNamespace, m.Definitions) // it has one store anyway
	if err != nil {
		return "", err
	}
	text = fmt.Appendf(text, "# on_unavailable given: %v\n", m.Has("system.on_unavailable"))
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// PlanLimits implements [httpapi.LimitsAdmin].
func (l *Limits) PlanLimits(
	ctx context.Context, in *httpapi.LimitsFile,
) (*httpapi.LimitsPlan, error) {
	t, p, err := l.plan(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := p.reach(ctx, t); err != nil {
		return nil, asError(err)
	}
	return &p.out, nil
}

// plan compares a file with the store.
func (l *Limits) plan(ctx context.Context, in *httpapi.LimitsFile) (*target, *plan, error) {
	t, err := l.target()
	if err != nil {
		return nil, nil, err
	}
	f, err := l.parse(t, in)
	if err != nil {
		return nil, nil, err
	}
	p, err := t.plan(ctx, f)
	if err != nil {
		return nil, nil, asError(err)
	}
	return t, p, nil
}

// asError returns a store's error as an [*weir.Error].
func asError(err error) error {
	if _, ok := errors.AsType[*weir.Error](err); ok {
		return err
	}
	return &weir.Error{Code: weir.Unavailable, Reason: "the store did not answer", Err: err}
}
