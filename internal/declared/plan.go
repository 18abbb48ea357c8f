package declared

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/manifest"
)

const (
	// staleAfter is the age of the mark of an apply from which on it counts as interrupted. An apply
	// renews its mark several times in that time.
	staleAfter = time.Minute
	// mostDeleted is the part of the limits, as its reciprocal, that an apply may delete unasked.
	mostDeleted = 5
	// notApplied begins the reason of a refusal.
	notApplied = "the file is not applied: "
)

// plan is the difference between a store and a file.
type plan struct {
	file   *file
	record *declare.Record
	// stored and wanted are the configuration as it is and as it should be.
	stored  *declare.Definitions
	wanted  *weir.Definitions
	changes []manifest.Change
	// out is the plan as it is shown. Its changes are those above, in the same order.
	out httpapi.LimitsPlan
}

// plan reads the store and compares it with a file. The record is read first, so that an apply
// that changes the store meanwhile also changes the record.
func (t *target) plan(ctx context.Context, f *file) (*plan, error) {
	record, err := t.ReadDeclared(ctx)
	if err != nil {
		return nil, err
	}
	all := record.Managed.Union(&f.sets)
	stored, err := t.ReadDefinitions(ctx, &all)
	if err != nil {
		return nil, err
	}
	p := &plan{file: f, record: record, stored: stored}
	p.out.Namespace = t.DeclaredNamespace()
	p.wanted, p.out.Kept = merge(stored, f, &record.Managed)
	p.changes = manifest.Diff(stored.Definitions, p.wanted)
	p.out.Changes = shown(p.changes)
	p.out.Unmanaged = shown(manifest.Diff(f.definitions, p.wanted))
	p.findLost()
	p.out.Record = len(p.changes) == 0 && !p.recordFits()
	p.refuse(t.now())
	if !p.out.Nothing() {
		d := p.claimed(p.steps())
		if e, ok := errors.AsType[*weir.Error](t.CheckDeclared(&d)); ok {
			p.refuseUnless("", e.Reason)
		}
	}
	return p, nil
}

// claimed returns the record while these steps are made, without a mark.
func (p *plan) claimed(steps []*step) declare.Record {
	d := *p.record
	d.Managed = p.record.Managed.Union(&p.file.sets)
	d.Hash = p.file.hash
	d.Again = slices.Clone(p.record.Again)
	for _, s := range steps {
		if s.kind == stepEntity || s.kind == stepDelete {
			d.Again = append(d.Again, s.at.Entity)
		}
	}
	slices.Sort(d.Again)
	d.Again = slices.Compact(d.Again)
	return d
}

// recordFits reports whether the record needs no write.
func (p *plan) recordFits() bool {
	r := p.record
	return r.Owner == "" && r.Apply == nil && len(r.Again) == 0 &&
		r.Managed.Equal(&p.file.sets) && (r.Hash == p.file.hash || r.Managed.Empty() && r.Hash == "")
}

// shown returns changes as they are shown.
func shown(changes []manifest.Change) []httpapi.LimitsChange {
	out := make([]httpapi.LimitsChange, len(changes))
	for i := range changes {
		c := &changes[i]
		out[i] = httpapi.LimitsChange{
			Action: string(c.Action), Path: c.Path(), Level: c.Level, Entity: c.Entity,
			Resource: c.Resource, Limit: c.Limit, Attribute: c.Attribute, Was: c.Was, Is: c.Is,
		}
		if c.Before != nil {
			out[i].Was = manifest.FormatLimit(*c.Before)
		}
		if c.After != nil {
			out[i].Is = manifest.FormatLimit(*c.After)
		}
	}
	return out
}

// placeOf returns the place of a change of a limit.
func placeOf(c *manifest.Change) weir.Subject {
	return weir.Subject{Entity: c.Entity, Resource: c.Resource}
}

// findLost finds the settings of other programs in places whose limits are written, and those that
// stay.
func (p *plan) findLost() {
	written := map[weir.Subject]bool{}
	deleted := map[string]bool{}
	for i := range p.changes {
		c := &p.changes[i]
		switch {
		case c.Limit != "":
			written[placeOf(c)] = true
		case c.Attribute == "" && c.Action == manifest.Delete:
			deleted[c.Entity] = true
		}
	}
	for _, s := range p.stored.Foreign {
		if deleted[s.At.Entity] || s.HidesWeaker && written[s.At] {
			p.out.Lost = append(p.out.Lost, noteOf(&s))
		} else {
			p.out.Foreign = append(p.out.Foreign, noteOf(&s))
		}
	}
}

func noteOf(s *declare.Foreign) httpapi.LimitsNote {
	return httpapi.LimitsNote{Path: s.Path, Attribute: s.Attribute, Reason: s.Reason}
}

// refuse finds the reasons why an apply would be refused.
func (p *plan) refuse(now time.Time) {
	p.refuseOwner()
	if m := p.record.Apply; m != nil && now.Sub(m.At) < staleAfter && !p.file.TakeOver {
		p.out.Refusals = append(p.out.Refusals, underWay(m))
	}
	if p.file.Yes {
		return
	}
	limits, entities := p.count(p.stored.Definitions)
	var gone, goneEntities int
	for i := range p.changes {
		switch c := &p.changes[i]; {
		case c.Action != manifest.Delete || c.Attribute != "":
		case c.Limit != "":
			gone++
		default:
			goneEntities++
		}
	}
	for _, n := range []struct {
		gone, of int
		what     string
	}{{gone, limits, "limits"}, {goneEntities, entities, "entities"}} {
		if n.gone*mostDeleted > n.of {
			p.refuseUnless("yes", fmt.Sprintf("it would delete %d of the %d stored %s that this file has or "+
				"that the file before it had, more than a fifth: if that is meant, repeat it with --yes",
				n.gone, n.of, n.what))
		}
	}
}

// refuseOwner refuses a record of another program.
func (p *plan) refuseOwner() {
	r := p.record
	if r.Owner == "" || p.file.Adopt {
		return
	}
	var has []string
	if r.Managed.System {
		has = append(has, "the limits of the system")
	}
	if n := len(r.Managed.Resources); n > 0 {
		has = append(has, fmt.Sprintf("%d resources (%s)", n, clip.Names(r.Managed.Resources)))
	}
	if n := len(r.Managed.Limits); n > 0 {
		has = append(has, fmt.Sprintf("the limits of %d entities", n))
	}
	if r.Pending > 0 {
		has = append(has, fmt.Sprintf("unfinished tasks: %d", r.Pending))
	}
	if len(has) == 0 {
		return // an empty record
	}
	p.refuseUnless("adopt", fmt.Sprintf("%s manages limits here: %s. Stop applying with it, put what "+
		"shall stay into the file (weir limits export writes all), and repeat with --adopt; what it "+
		"manages and the file does not have is deleted", r.Owner, strings.Join(has, ", ")))
}

// refuseUnless adds a refusal that a field of the request allows.
func (p *plan) refuseUnless(allowed, reason string) {
	p.out.Refusals = append(p.out.Refusals, httpapi.LimitsRefusal{Allowed: allowed, Reason: reason})
}

// underWay returns the refusal because of an apply.
func underWay(m *declare.Mark) httpapi.LimitsRefusal {
	by := m.By
	if by == "" {
		by = "somebody"
	}
	return httpapi.LimitsRefusal{
		Allowed: "take_over", By: m.By, Since: m.At.UTC(),
		Reason: fmt.Sprintf("%s is applying a file, and was at it at %s: wait until %s, or repeat "+
			"with --take-over if that apply was killed", by, m.At.UTC().Format(time.RFC3339),
			m.At.Add(staleAfter).UTC().Format(time.RFC3339)),
	}
}

// count returns the numbers of stored limits and entities that were managed before, or that the
// file has.
func (p *plan) count(d *weir.Definitions) (limits, entities int) {
	managed := p.record.Managed.Union(&p.file.sets)
	if managed.System {
		limits += len(d.System)
	}
	for _, name := range managed.Resources {
		limits += len(d.Resources[name])
	}
	for name, resources := range managed.Limits {
		for _, resource := range resources {
			limits += len(d.Entities[name].Limits[resource])
		}
	}
	for _, name := range managed.Entities {
		if _, ok := d.Entities[name]; ok {
			entities++
		}
	}
	return limits, entities
}

// err returns the refusals as one error; nil if there are none.
func (p *plan) err() error {
	if len(p.out.Refusals) == 0 {
		return nil
	}
	var reasons []string
	for _, r := range p.out.Refusals {
		reasons = append(reasons, r.Reason)
	}
	return &weir.Error{
		Code: weir.Conflict, Field: "limits", Reason: notApplied + strings.Join(reasons, "; "),
	}
}
