package manifest

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
)

// join appends a name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// quote returns a malformed name in a form that is readable in the path of a message.
func quote(name string) string {
	plain := name != "" && len(name) <= 64
	for _, r := range name {
		plain = plain && (r == '_' || r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			r >= '0' && r <= '9')
	}
	if plain {
		return name
	}
	return strconv.Quote(clip.Text(name))
}

// The functions below return what is wrong with a name, or "". The rules are those of package weir:
// each function normalizes the smallest configuration that has the name.
func entityFault(name string) string {
	return reasonOf(&weir.Definitions{Entities: map[string]weir.EntityDefinition{name: {}}})
}

func resourceFault(name string) string {
	if name == weir.DefaultResource {
		return "is allowed only below an entity: limits for every resource belong to system.limits"
	}
	return reasonOf(&weir.Definitions{Resources: map[string][]weir.Limit{name: nil}})
}

func entityResourceFault(name string) string {
	if name == weir.DefaultResource {
		return ""
	}
	return resourceFault(name)
}

func limitFault(name string) string {
	return reasonOf(&weir.Definitions{System: []weir.Limit{{Name: name, Capacity: 1}}})
}

func policyFault(policy string) string {
	if policy == "" {
		policy = " " // empty would be the default, but in a file it is a mistake
	}
	return reasonOf(&weir.Definitions{OnUnavailable: weir.Policy(policy)})
}

func namespaceFault(name string) string {
	if strings.Contains(name, "/") {
		return "must not contain '/'"
	}
	return entityFault(name)
}

func reasonOf(d *weir.Definitions) string {
	_, err := d.Normalize()
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e.Reason
	}
	return ""
}
