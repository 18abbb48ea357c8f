package conformance

import (
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// entityCases returns the cases of section 9. Cases about chains are in Go, because one store
// refuses a chain when it is set and another when it is used.
func entityCases() []Case {
	deep := func(levels int) Needs {
		return Needs{Kinds: []weir.Kind{weir.Bucket}, Depth: levels}
	}
	eight := limiter.Options{CascadeDepth: 8}
	return append(scriptedCases("entities"),
		Case{"one level by default", "9.1", deep(1), onWorld(Setup{}, oneLevel)},
		Case{"eight levels by option", "9.1", deep(8), onWorld(Setup{}.under(eight), eightLevels)})
}

// chainOf returns entities e0, e1, … that form a chain with a number of ancestors above e0.
func chainOf(ancestors int) *weir.Definitions {
	d := &weir.Definitions{
		System:   []weir.Limit{slowLimit(weir.Bucket, "n", 20)},
		Entities: map[string]weir.EntityDefinition{},
	}
	for i := range ancestors + 1 {
		e := weir.EntityDefinition{}
		if i < ancestors {
			e = weir.EntityDefinition{Parent: fmt.Sprintf("e%d", i+1), Cascade: true}
		}
		d.Entities[fmt.Sprintf("e%d", i)] = e
	}
	return d
}

// refusesTower expects a chain that is too long to be refused when it is set or when it is used.
func (s *caseWorld) refusesTower(ancestors int) {
	s.Helper()
	err := s.Configure(chainOf(ancestors))
	if err == nil {
		_, err = s.Reserve(s.Context(), ask("e0", cost(1)))
	}
	s.refused(weir.Invalid, err)
}

func oneLevel(s *caseWorld) {
	s.configure(chainOf(1))
	s.admit(ask("e0", cost(1)))
	s.expectAvailable("e1", cost(19))
	s.refusesTower(2)
	s.expectAvailable("e1", cost(19))
}

func eightLevels(s *caseWorld) {
	s.configure(chainOf(8))
	l := s.admit(ask("e0", cost(3)))
	s.equal("judged", len(l.Limits), 9)
	for i := range 9 {
		s.expectAvailable(fmt.Sprintf("e%d", i), cost(17))
	}
	s.admit(ask("e8", cost(16)))
	d := s.deny(ask("e0", cost(2)))
	s.equal("denied by", d.Limits[8].Exceeded, true)
	s.expectAvailable("e0", cost(17))
	s.complete(l, cost(1))
	s.expectAvailable("e8", cost(3))
	s.refusesTower(9)
}
