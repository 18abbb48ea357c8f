package conformance

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// lockstep plays a script in a world and in the model, and compares every answer.
type lockstep struct {
	script *Script
	world  World
	model  ModelWorld
	how    comparison
	zones  []*time.Location
	dst    int // how often the script's zones changed their offsets

	calendar *model.Calendar
	table    *Coverage // may be nil

	remote  bool // the store is not in the process
	changes int  // of the configuration, so far
	leases  map[weir.LeaseID]reserved
}

// reserved holds the charges that a lease was reserved for, and how many changes of the
// configuration came before.
type reserved struct {
	charges []weir.Charge
	changes int
}

// difference is the first step at which a world and the model disagree.
type difference struct {
	step      int // among the script's operations, from 0
	op        Op
	got, want answer
}

func (d *difference) String() string {
	return fmt.Sprintf("step %d: %v\n  got  %v\n  want %v", d.step+1, d.op, d.got, d.want)
}

// startLockstep opens a world and a model for a script. The caller closes the world by finish. The
// table may be nil.
func startLockstep(
	t T, h *Harness, s *Script, c *model.Calendar, table *Coverage,
) (*lockstep, error) {
	ref, err := OpenModel(s.Setup(), c, nil)
	if err != nil {
		return nil, err
	}
	return &lockstep{
		script: s, model: ref, world: h.Open(t, s.Setup()),
		how: comparison{exact: !h.Inexact, servers: h.SeveralServers}, calendar: c, table: table,
		zones: s.zones(), remote: !h.Traits.Local, leases: make(map[weir.LeaseID]reserved),
	}, nil
}

// step plays the script's i-th operation. It returns the model's answer, and the difference if
// there is one. A contended denial of the world has changed nothing, so the model does not get the
// operation, and the answer is the world's.
func (l *lockstep) step(ctx context.Context, i int) (answer, *difference) {
	o := &l.script.Ops[i]
	l.resolve(ctx, o)
	got := l.runInWorld(ctx, o)
	if denied, ok := deniedBy(got.err); ok && denied.Contended && !l.how.exact {
		l.table.count(model.Note{Verb: o.Verb, Outcome: "contended"})
		return got, nil
	}
	l.model.SetNewID(newIDOf(got))
	before := l.model.Now()
	want := perform(ctx, l.model, l.script, o)
	l.countZones(before)
	l.how.changed = l.leases[o.ID].changes != l.changes
	if !l.how.same(got, want) {
		return want, &difference{i, *o, got, want}
	}
	l.remember(o, got)
	l.table.count(l.note(o, want))
	return want, nil
}

// finish closes the world, and adds the effects of time to the table.
func (l *lockstep) finish(t T) {
	t.Helper()
	l.table.merge(l)
	if err := l.world.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// remember records what a lease was reserved for, and counts the changes of the configuration.
func (l *lockstep) remember(o *Op, a answer) {
	if a.lease != nil {
		l.leases[a.lease.ID] = reserved{o.Charges, l.changes}
	}
	if o.Verb == opConfigure && a.err == nil {
		l.changes++
	}
}

// resolve has the limiter read the configuration for a lease that is about to be settled, if it has
// changed. A limiter does not read the configuration from a store outside the process while it
// settles: it would use the limits that were in force when the lease was reserved.
func (l *lockstep) resolve(ctx context.Context, o *Op) {
	lease, known := l.leases[o.ID]
	if !l.remote || !known || o.Verb == opReserve || lease.changes == l.changes {
		return
	}
	for _, c := range lease.charges {
		for _, w := range []World{l.world, l.model} {
			_, _ = w.Explain(ctx, c.Entity, c.Resource) // a later step gets the same error
		}
	}
}

// note returns the outcome of a step in the model.
func (l *lockstep) note(o *Op, a answer) model.Note {
	switch {
	case o.Verb == opAdvance && o.By < 0:
		return model.Note{Verb: o.Verb, Outcome: "back"}
	case o.Verb != opAdvance && o.Verb != opConfigure:
		return l.model.Last()
	case a.err != nil:
		return model.Note{Verb: o.Verb, Outcome: "refused"}
	default:
		return model.Note{Verb: o.Verb, Outcome: "ok"}
	}
}

// runInWorld plays a step in the world. A panic is an answer too, which the model never gives.
func (l *lockstep) runInWorld(ctx context.Context, o *Op) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return perform(ctx, l.world, l.script, o)
}

// newIDOf returns a function that gives the model the lease ID that the world has made, so that
// both have the same lease.
func newIDOf(a answer) func(time.Time) weir.LeaseID {
	if a.lease != nil {
		return func(time.Time) weir.LeaseID { return a.lease.ID }
	}
	if denied, ok := deniedBy(a.err); ok {
		return func(time.Time) weir.LeaseID { return denied.LeaseID }
	}
	return weir.NewLeaseID
}

func (l *lockstep) countZones(before time.Time) {
	after := l.model.Now()
	for _, z := range l.zones {
		_, was := before.In(z).Zone()
		_, is := after.In(z).Zone()
		if was != is {
			l.dst++
		}
	}
}

// zones returns the zones of the budgets in a script.
func (s *Script) zones() []*time.Location {
	known := make(map[string]bool)
	var zones []*time.Location
	for i := range s.Sets {
		for _, l := range s.Sets[i].Definitions.All {
			if l.Zone == "" || known[l.Zone] {
				continue
			}
			known[l.Zone] = true
			if z, err := time.LoadLocation(l.Zone); err == nil {
				zones = append(zones, z)
			}
		}
	}
	return zones
}
