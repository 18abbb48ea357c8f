package manifest

import (
	"errors"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
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

// The functions below return what is wrong with a name, or "".

func resourceFault(name string) string {
	if name == weir.DefaultResource {
		return "is allowed only below an entity: limits for every resource belong to system.limits"
	}
	return identifier.CheckResource(name)
}

func entityResourceFault(name string) string {
	if name == weir.DefaultResource {
		return ""
	}
	return resourceFault(name)
}

func policyFault(policy string) string {
	if policy == "" {
		policy = " " // empty would be the default, but in a file it is a mistake
	}
	return reasonOf(&weir.Definitions{OnUnavailable: weir.Policy(policy)})
}

// reasonOf returns why a configuration cannot be normalized, or "".
func reasonOf(d *weir.Definitions) string {
	_, err := d.Normalize()
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e.Reason
	}
	return ""
}
