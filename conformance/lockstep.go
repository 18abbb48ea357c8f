package conformance

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// lockstep does a script in a world and in the model, and compares every answer.
type lockstep struct {
	script *Script
	world  World
	model  ModelWorld
	exact  bool
	zones  []*time.Location
	dst    int // offsets of the script's zones that changed on the way
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

// startLockstep opens the worlds for a script. The caller closes the one in it.
func startLockstep(t T, h *Harness, s *Script, c *model.Calendar) (*lockstep, error) {
	ref, err := OpenModel(s.Setup(), h.Traits.EntitySlash, c, nil)
	if err != nil {
		return nil, err
	}
	return &lockstep{
		script: s, model: ref, world: h.Open(t, s.Setup()), exact: !h.Inexact, zones: s.zones(),
	}, nil
}

// run does the whole script, or as much of it as agrees. Each is told of every step that the model
// has done; it may be nil.
func (l *lockstep) run(ctx context.Context, each func(model.Note)) *difference {
	for i := range l.script.Ops {
		o := &l.script.Ops[i]
		got := l.inWorld(ctx, o)
		l.model.SetNewID(newIDOf(got))
		before := l.model.Now()
		want := perform(ctx, l.model, l.script, o)
		l.countZones(before)
		if !sameAnswer(got, want, l.exact) {
			return &difference{i, *o, got, want}
		}
		if each != nil {
			each(l.note(o, want))
		}
	}
	return nil
}

// note says what became of a step in the model.
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

// inWorld does a step in the world. A panic is an answer too: one that the model never gives.
func (l *lockstep) inWorld(ctx context.Context, o *Op) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return perform(ctx, l.world, l.script, o)
}

// newIDOf gives the model the lease ID that the world has made, so that both have the same lease.
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

// zones are those of the budgets in a script.
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
