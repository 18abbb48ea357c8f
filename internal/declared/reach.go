package declared

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/httpapi"
)

// mostLiveNames bounds the names of live entities that a change lists.
const mostLiveNames = 10

// reach finds which live entities each change reaches: those with state in the store for which
// the place of the change is the one that applies, before the change or after it.
func (p *plan) reach(ctx context.Context, t *target) error {
	if len(p.changes) == 0 {
		return nil
	}
	reached := map[weir.Subject]map[string]bool{} // by place
	own := map[string]bool{}                      // entities with state
	err := p.eachLive(ctx, t, func(s weir.Subject, places []weir.Subject) {
		own[s.Entity] = true
		for _, at := range places {
			if reached[at] == nil {
				reached[at] = map[string]bool{}
			}
			reached[at][s.Entity] = true
		}
	})
	if err != nil {
		return err
	}
	for i := range p.changes {
		c := &p.changes[i]
		switch {
		case c.Limit != "":
			p.out.Changes[i].Live = liveOf(reached[placeOf(c)])
		case c.Entity != "" && own[c.Entity]:
			p.out.Changes[i].Live = &httpapi.LiveEntities{Count: 1, Names: []string{c.Entity}}
		case c.Entity != "":
			p.out.Changes[i].Live = liveOf(nil)
		}
	}
	return nil
}

// eachLive calls visit with each subject that has state, and the places whose limits apply to it
// before the plan and after it.
func (p *plan) eachLive(
	ctx context.Context, t *target, visit func(s weir.Subject, places []weir.Subject),
) error {
	hidden := foreignPlaces(p.stored.Foreign)
	for s, err := range t.LiveSubjects(ctx, t.now(), weir.Subject{}) {
		if err != nil {
			return err
		}
		var places []weir.Subject
		for _, d := range []*weir.Definitions{p.stored.Definitions, p.wanted} {
			if at, ok := applying(d, hidden, s); ok && !slices.Contains(places, at) {
				places = append(places, at)
			}
		}
		visit(s, places)
	}
	return nil
}

func liveOf(names map[string]bool) *httpapi.LiveEntities {
	all := slices.Sorted(maps.Keys(names))
	if all == nil {
		all = []string{}
	}
	return &httpapi.LiveEntities{Count: len(all), Names: all[:min(len(all), mostLiveNames)]}
}

// foreignPlaces returns the places that have limits which the definitions leave out.
func foreignPlaces(settings []declare.Foreign) map[weir.Subject]bool {
	places := map[weir.Subject]bool{}
	for _, s := range settings {
		if s.HidesWeaker {
			places[s.At] = true
		}
	}
	return places
}

// applying returns the place whose limits apply to a subject. Limits that the definitions leave
// out hide weaker ones too.
func applying(
	d *weir.Definitions, hidden map[weir.Subject]bool, s weir.Subject,
) (weir.Subject, bool) {
	own := d.Entities[s.Entity].Limits
	for _, l := range []struct {
		at     weir.Subject
		limits []weir.Limit
	}{
		{s, own[s.Resource]},
		{weir.Subject{Entity: s.Entity, Resource: weir.DefaultResource}, own[weir.DefaultResource]},
		{weir.Subject{Resource: s.Resource}, d.Resources[s.Resource]},
		{weir.Subject{}, d.System},
	} {
		if len(l.limits) > 0 || hidden[l.at] {
			return l.at, true
		}
	}
	return weir.Subject{}, false
}
