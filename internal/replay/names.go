package replay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/text"
)

// names keeps one string for each entity and each resource of a trace, and one caller for each two
// of them that meet.
type names struct {
	entities, resources strings32
	pairs               map[[2]int32]int32
	callers             []Caller
}

func newNames() *names {
	return &names{
		entities:  strings32{known: map[string]int32{}, most: MaxEntities, check: checkEntity},
		resources: strings32{known: map[string]int32{}, most: maxResources, check: checkResource},
		pairs:     map[[2]int32]int32{},
	}
}

// strings32 numbers strings in the order in which they come.
type strings32 struct {
	known map[string]int32
	names []string
	most  int
	check func(string) (reason string)
}

// number returns the number of a name, or says what is wrong with it.
func (s *strings32) number(name string) (number int32, reason string) {
	number, ok := s.known[name]
	if ok {
		return number, ""
	}
	if reason := s.check(name); reason != "" {
		return 0, reason
	}
	if len(s.names) >= s.most {
		return 0, fmt.Sprintf("is one too many: there may be %s of them", text.FormatInt(int64(s.most)))
	}
	name = strings.Clone(name) // what was read is a part of its line
	number = int32(len(s.names))
	s.known[name] = number
	s.names = append(s.names, name)
	return number, ""
}

// caller returns the number of who calls what, or says that there are too many.
func (n *names) caller(entity, resource int32, of func() Caller) (number int32, reason string) {
	key := [2]int32{entity, resource}
	number, ok := n.pairs[key]
	switch {
	case ok:
		return number, ""
	case len(n.callers) >= MaxEntities:
		return 0, fmt.Sprintf("makes more than %s pairs of an entity and a resource",
			text.FormatInt(MaxEntities))
	}
	number = int32(len(n.callers))
	n.pairs[key] = number
	n.callers = append(n.callers, of())
	return number, ""
}

// checkEntity says what is wrong with an entity's name, in the words of the library.
func checkEntity(name string) string {
	return reasonOf(&weir.Definitions{Entities: map[string]weir.EntityDefinition{name: {}}})
}

// checkResource says what is wrong with a resource's name, in the words of the library.
func checkResource(name string) string {
	return reasonOf(&weir.Definitions{Resources: map[string][]weir.Limit{name: nil}})
}

// CheckResource returns an error, in the words of the library, where no resource can have that
// name.
func CheckResource(name string) error {
	if reason := checkResource(name); reason != "" {
		return errors.New(reason)
	}
	return nil
}

func reasonOf(d *weir.Definitions) string {
	_, err := d.Normalize()
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e.Reason
	}
	return ""
}
