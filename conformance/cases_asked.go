package conformance

import (
	"slices"

	"github.com/weir-limiter/weir"
)

// askedCases returns the cases about whom a denial names.
func askedCases() []Case {
	const line = "4.5"
	bucket := only(weir.Bucket)
	family := Needs{Kinds: bucket.Kinds, Depth: 1}
	return []Case{
		{"a parent denies", line, family, onWorld(Setup{}, parentDenies)},
		{"one of several charges is denied", line, bucket,
			onWorld(system(slowLimit(weir.Bucket, "n", 20)), oneOfSeveral)},
		{"one entity asks on two resources", line, bucket,
			onWorld(system(slowLimit(weir.Bucket, "n", 20)), twoResources)},
	}
}

// asked expects a denial to name who asked.
func (s *caseWorld) asked(d *weir.DeniedError, want ...weir.Subject) {
	s.Helper()
	if !slices.Equal(d.Charges, want) {
		s.Errorf("denied by %+v: got %v for who asked, want %v", d.Limits, d.Charges, want)
	}
}

func subject(entity string) weir.Subject { return weir.Subject{Entity: entity, Resource: resource} }

// parentDenies has no limit of the child's own, so that nothing but who asked names the child.
func parentDenies(s *caseWorld) {
	perEntity := map[string][]weir.Limit{weir.DefaultResource: {slowLimit(weir.Bucket, "n", 20)}}
	s.configure(&weir.Definitions{Entities: map[string]weir.EntityDefinition{
		"acme":   {Limits: perEntity},
		"team-a": {Parent: "acme", Cascade: true},
		"team-b": {Parent: "acme", Cascade: true},
	}})
	s.admit(ask("team-a", cost(15)))
	s.asked(s.deny(ask("team-a", cost(6))), subject("team-a"))
	s.asked(s.deny(ask("team-b", cost(6))), subject("team-b"))
	s.asked(s.deny(ask("acme", cost(6))), subject("acme"))
	s.asked(s.deny(several(charge("team-b", cost(3)), charge("acme", cost(3)))),
		subject("team-b"), subject("acme"))
}

func oneOfSeveral(s *caseWorld) {
	s.admit(ask("b", cost(15)))
	s.asked(s.deny(several(charge("c", cost(1)), charge("b", cost(6)), charge("a", cost(1)))),
		subject("c"), subject("b"), subject("a"))
}

func twoResources(s *caseWorld) {
	s.admit(ask("a", cost(15)))
	other := weir.Subject{Entity: "a", Resource: "another"}
	s.asked(s.deny(several(
		weir.Charge{Entity: other.Entity, Resource: other.Resource, Costs: cost(1)},
		charge("a", cost(6)))), other, subject("a"))
}
