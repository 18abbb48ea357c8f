package calls

import (
	"fmt"
	"runtime"
	"strings"
	"unicode"
)

// The verbs: what a caller may be permitted to do.
const (
	// Use limits calls, and looks at the limits of one entity.
	Use = "use"
	// Read reads and lists what is in one namespace.
	Read = "read"
	// Administer changes what is in one namespace.
	Administer = "administer"
	// Inspect describes the table and lists its namespaces.
	Inspect = "inspect"
	// Namespaces registers, deletes, recovers and purges namespaces.
	Namespaces = "namespaces"
	// Table creates, changes, migrates, takes over and deletes the table. No policy allows it.
	Table = "table"
	// Aggregate counts usage, in a program or in the function.
	Aggregate = "aggregate"
)

// module is the path of the packages whose calls are recorded.
const module = "github.com/weir-limiter/weir/dynamodb"

// verbsOf returns the verbs that a function is for, by its name alone: the methods of dynamodb.Store
// and dynamodb.Table have the names of those below them. It returns nil for one that only others
// call.
func verbsOf(name string) []string {
	switch name {
	case "Open", "ReadConfig", "Status", "Resources", "Ready":
		return []string{Use, Read}
	case "Reserve", "ReserveUnplanned", "KeepUnplanned", "Update", "RecoverLease", "VoidLease",
		"AdoptLease", "FollowConfig", "LiveSubjects":
		return []string{Use}
	case "ReadRetention", "ConfiguredResources", "EntityConfigResources", "ReadEntity", "ReadPlace",
		"ListResources", "ListEntities", "Entities", "ReadAudit", "ReadUsage",
		"UsageGaps", "ReadDefinitions", "ReadDeclared", "filterDeclared", "readEntities":
		return []string{Read}
	case "WriteLimits", "WritePolicy", "WriteRetention", "WriteEntity", "DeleteEntity",
		"ChangeLimits", "ChangeEntity", "RemoveEntity", "WriteDeclared", "DeleteUsage",
		"restamp", "deleteGroup", "planRemove":
		return []string{Administer}
	case "Describe", "Namespace", "Namespaces", "OrphanNamespaces":
		return []string{Inspect}
	case "RegisterNamespace", "DeleteNamespace", "RecoverNamespace", "PurgeNamespace":
		return []string{Namespaces}
	case "Create", "EnableStream", "Delete", "Migrate", "TakeOver", "HandBack", "Unjudged":
		return []string{Table}
	case "Aggregate", "Count", "Run":
		return []string{Aggregate}
	}
	return nil
}

// backgroundVerb returns the verb of what a package does in goroutines of its own.
func backgroundVerb(function string) string {
	name := strings.TrimPrefix(function, module)
	switch {
	case strings.HasPrefix(name, "."), strings.HasPrefix(name, "/internal/bucketitem."),
		strings.HasPrefix(name, "/internal/leaserecord."):
		return Use
	case strings.HasPrefix(name, "/internal/stream."):
		return Aggregate
	}
	return ""
}

// verbsBy returns the verbs of a call by the functions that made it, the innermost first: those of
// the outermost function that has some. A call that a test makes itself, or with a function that
// callers of package dynamodb do not have, may have none.
func verbsBy(frames *runtime.Frames) (verbs []string, err error) {
	var outermost string
	test := false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case !strings.HasPrefix(f.Function, module),
			strings.HasPrefix(f.Function, module+"/internal/client."): // It makes the calls of all others.
		case strings.HasSuffix(f.File, "_test.go"):
			if outermost == "" {
				return nil, nil
			}
			test = true
		default:
			outermost = f.Function
			if v := verbsOf(methodOf(f.Function)); v != nil {
				verbs = v
			}
		}
	}
	if verbs != nil || test && !isMethod(outermost) {
		return verbs, nil
	}
	if verb := backgroundVerb(outermost); verb != "" && !test {
		return []string{verb}, nil
	}
	return nil, fmt.Errorf("calls: no verb for %s: see verbsOf", outermost)
}

// isMethod reports whether a function is a method that callers of package dynamodb have.
func isMethod(function string) bool {
	name := methodOf(function)
	return strings.HasPrefix(function, module+".(") && unicode.IsUpper(rune(name[0]))
}

// methodOf returns the name of the method or function in the full name of it or of a closure in it.
func methodOf(function string) string {
	name := function[strings.LastIndex(function, "/")+1:]
	for _, part := range strings.Split(name, ".")[1:] {
		if !strings.HasPrefix(part, "(") {
			part, _, _ = strings.Cut(part, "-") // The body of a range over a function has its own name.
			return part
		}
	}
	return ""
}
