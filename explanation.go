package weir

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Explanation says which limits apply to an entity on a resource, and why.
type Explanation struct {
	Entity   string
	Resource string
	// Level is the level whose limits apply; empty if nothing is configured.
	Level Level
	// Limits are the limits of that level, sorted by name.
	Limits []Limit
	// Hidden are the weaker levels that have limits, the strongest first. Their limits do not
	// apply.
	Hidden []LevelLimits
	// OnUnavailable is what the reservation becomes if the store does not answer, and
	// OnUnavailableFrom says where that policy comes from. One policy applies to the whole request,
	// so that both are empty in the explanation of a parent.
	OnUnavailable     Policy
	OnUnavailableFrom PolicySource
	// Parent explains the entity that is charged too, with the same costs; nil if there is none.
	Parent *Explanation

	// Costs are, after [Explanation.Charge], what the costs come to on this entity: those that it
	// has limits for, and one slot of each concurrency limit that they do not name.
	Costs Costs
	// LeftOut are, after [Explanation.Charge], the names of the limits that apply and that the
	// costs do not name, sorted: a request is neither judged by them nor charged on them.
	LeftOut []string
}

// maxCosts bounds the costs of a request (docs/semantics.md, line 3.2).
const maxCosts = 32

// Charge sets Costs and LeftOut, also of the parents, to what a request with these costs would be
// charged. An error is the one that [Service.Reserve] would return before it asks the store, with
// code [NoLimits], [UnknownLimit], [NeverSatisfiable] or [Invalid]; then nothing changes.
func (e *Explanation) Charge(costs Costs) error {
	if err := e.check(costs); err != nil {
		return err
	}
	for at := e; at != nil; at = at.Parent {
		at.Costs, at.LeftOut = Costs{}, nil
		for i := range at.Limits {
			l := &at.Limits[i]
			units, named := costs[l.Name]
			switch {
			case named:
				at.Costs[l.Name] = units
			case l.Kind == Concurrency:
				at.Costs[l.Name] = 1
			default:
				at.LeftOut = append(at.LeftOut, l.Name)
			}
		}
	}
	return nil
}

func (e *Explanation) check(costs Costs) error {
	if len(costs) > maxCosts {
		return NewError(Invalid, "costs", len(costs), fmt.Sprintf("a request has at most %d", maxCosts))
	}
	names := slices.Sorted(maps.Keys(costs))
	for _, name := range names {
		units, field := costs[name], "costs."+clip.Text(name)
		if reason := identifier.CheckLimit(name); reason != "" {
			return NewError(Invalid, field, name, reason)
		}
		if units < 0 {
			return NewError(Invalid, field, units, "must not be negative")
		}
	}
	known := map[string]bool{}
	for at := e; at != nil; at = at.Parent {
		for i := range at.Limits {
			known[at.Limits[i].Name] = true
		}
	}
	if len(known) == 0 {
		return NewError(NoLimits, "entity", e.Entity,
			fmt.Sprintf("no limits are configured for it on resource %q", clip.Text(e.Resource)))
	}
	for _, name := range names {
		if !known[name] {
			return NewError(UnknownLimit, "costs."+name, costs[name],
				"the limits here are "+clip.Names(slices.Collect(maps.Keys(known))))
		}
	}
	for at := e; at != nil; at = at.Parent {
		for i := range at.Limits {
			if err := at.checkCost(&at.Limits[i], costs[at.Limits[i].Name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCost returns an error if the limit can never hold the units.
func (e *Explanation) checkCost(l *Limit, units int64) error {
	switch {
	case units > l.Capacity && !l.Shadow:
		return NewError(NeverSatisfiable, "costs."+l.Name, units,
			fmt.Sprintf("%s on %s can hold at most %d", clip.Text(e.Entity), clip.Text(e.Resource), l.Capacity))
	case units > MaxBucketUnits && l.Kind == Bucket:
		return NewError(Invalid, "costs."+l.Name, units, "is more than a limit can count")
	}
	return nil
}

// PolicySource says where the policy for an unavailable store comes from. The first source that
// has a policy applies: "limiter" (the limiter's options), "system" (the system's configuration in
// the store), "default" (nothing is configured: [Block]).
type PolicySource string

// The sources of a policy, the strongest first. A store whose configuration comes from a limits
// file always has a policy, because a file that names none means Block.
const (
	PolicyFromLimiter PolicySource = "limiter"
	PolicyFromSystem  PolicySource = "system"
	PolicyFromDefault PolicySource = "default"
)

// LevelLimits are the limits of one level, sorted by name.
type LevelLimits struct {
	Level  Level
	Limits []Limit
}
