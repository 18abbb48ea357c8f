package provision_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// simulator decides requests by the documents of identity-based policies, by the rules of AWS's pages
// "How AWS enforcement code logic evaluates requests to allow or deny access", "The difference
// between explicit and implicit denies", "Multivalued context key examples", "IAM policy elements:
// Variables and tags" and "IAM JSON policy elements: Condition operators". The quotes below are from
// them. Of the elements of a statement it knows those that the template uses, and fails on others.
type simulator struct {
	t        *testing.T
	policies []map[string]any
}

// request is what AWS knows about a call.
type request struct {
	action, resource string
	// context has the values of each condition key.
	context map[string][]string
}

// decision is the result of an evaluation.
type decision string

const (
	allowed        decision = "allowed"
	explicitDenial decision = "denied by a statement"
	implicitDenial decision = "denied by default"
)

// decide evaluates a request.
//
// "By default, all requests are implicitly denied with the exception of the AWS account root user,
// which has full access. Requests must be explicitly allowed by a policy or set of policies […] An
// explicit deny overrides an explicit allow."
//
// "An implicit denial occurs when there is no applicable Deny statement but also no applicable Allow
// statement."
func (s *simulator) decide(r *request) decision {
	s.t.Helper()
	result := implicitDenial
	for _, p := range s.policies {
		for _, each := range list(p["Statement"]) {
			statement, ok := each.(map[string]any)
			if !ok || !s.applies(statement, r) {
				continue
			}
			switch statement["Effect"] {
			case "Deny":
				return explicitDenial
			case "Allow":
				result = allowed
			default:
				s.t.Fatalf("an unknown effect: %v", statement)
			}
		}
	}
	return result
}

// applies reports whether the action, the resource and all conditions of a statement match.
func (s *simulator) applies(statement map[string]any, r *request) bool {
	s.t.Helper()
	for element := range statement {
		if !slices.Contains([]string{"Sid", "Effect", "Action", "Resource", "Condition"}, element) {
			s.t.Fatalf("an element that the simulator does not know: %s", element)
		}
	}
	action := slices.ContainsFunc(list(statement["Action"]), func(pattern any) bool {
		// "Actions are case insensitive."
		return like(strings.ToLower(fmt.Sprint(pattern)), strings.ToLower(r.action))
	})
	resource := slices.ContainsFunc(list(statement["Resource"]), func(pattern any) bool {
		value, ok := r.resolve(fmt.Sprint(pattern))
		return ok && like(value, r.resource)
	})
	if !action || !resource {
		return false
	}
	conditions, _ := statement["Condition"].(map[string]any)
	for operator, keys := range conditions {
		byKey, _ := keys.(map[string]any)
		for key, values := range byKey {
			if !s.holds(operator, key, list(values), r) {
				return false
			}
		}
	}
	return true
}

// holds reports whether one condition is true: one of its values is enough, and the set operators
// say which values of the request have to match one.
//
// ForAllValues: "every value in the request context must match at least one value in the policy. […]
// The ForAllValues set operator also returns true if there are no context keys in the request."
//
// ForAnyValue: "at least one of the context key values in the request matches at least one of the
// context key values in your policy condition".
//
// Null: "true" if the key is not in the request, "false" if it is and has a value.
func (s *simulator) holds(operator, key string, values []any, r *request) bool {
	s.t.Helper()
	asked := r.context[key]
	if operator == "Null" {
		return (fmt.Sprint(values[0]) == "true") == (len(asked) == 0)
	}
	set, compare, ok := strings.Cut(operator, ":")
	if !ok {
		set, compare = "", operator
	}
	matches := func(value string) bool {
		return slices.ContainsFunc(values, func(pattern any) bool {
			wanted, ok := r.resolve(fmt.Sprint(pattern))
			switch compare {
			case "StringEquals":
				return ok && wanted == value
			case "StringLike":
				return ok && like(wanted, value)
			}
			s.t.Fatalf("an operator that the simulator does not know: %s", operator)
			return false
		})
	}
	switch set {
	case "ForAllValues":
		return !slices.ContainsFunc(asked, func(value string) bool { return !matches(value) })
	case "ForAnyValue":
		return slices.ContainsFunc(asked, matches)
	case "":
		return len(asked) == 1 && matches(asked[0])
	}
	s.t.Fatalf("a set operator that the simulator does not know: %s", operator)
	return false
}

var policyVariable = regexp.MustCompile(`\$\{[^}]*\}`)

// resolve replaces the variables of a value: "policy variables are replaced with values that come
// from the conditional context of the request itself". "If AWS cannot resolve a variable this might
// cause the entire statement to be invalid": then the value matches nothing. What replaces a variable
// is no pattern.
func (r *request) resolve(value string) (resolved string, ok bool) {
	ok = true
	resolved = policyVariable.ReplaceAllStringFunc(value, func(variable string) string {
		values := r.context[strings.Trim(variable, "${}")]
		if len(values) != 1 || strings.ContainsAny(values[0], "*?") {
			ok = false
			return ""
		}
		return values[0]
	})
	return resolved, ok
}

// like compares as StringLike: "a multi-character match wildcard (*) or a single-character match
// wildcard (?) anywhere in the string".
func like(pattern, value string) bool {
	for ; pattern != ""; pattern, value = pattern[1:], value[1:] {
		if pattern[0] == '*' {
			for i := range len(value) + 1 {
				if like(pattern[1:], value[i:]) {
					return true
				}
			}
			return false
		}
		if value == "" || pattern[0] != '?' && pattern[0] != value[0] {
			return false
		}
	}
	return value == ""
}

// list returns an element that may be one value or a list.
func list(value any) []any {
	if all, ok := value.([]any); ok {
		return all
	}
	return []any{value}
}

const leadingKeys = "dynamodb:LeadingKeys"

// simulatorCase is a policy, and what it decides about GetItem on arn:t.
type simulatorCase struct {
	statements []any
	context    map[string][]string
	want       decision
}

// simple returns a statement without a condition.
func simple(effect, action, resource string) map[string]any {
	return map[string]any{"Effect": effect, "Action": action, "Resource": resource}
}

// onKeys returns a statement that allows everything under a condition on the leading keys.
func onKeys(operator string, values ...any) map[string]any {
	s := simple("Allow", "*", "*")
	s["Condition"] = map[string]any{operator: map[string]any{leadingKeys: values}}
	return s
}

// TestSimulator checks the simulator itself, with what weir's policies rely on.
func TestSimulator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]simulatorCase{
		"nothing":          {nil, nil, implicitDenial},
		"the same":         {[]any{simple("Allow", "dynamodb:GetItem", "arn:t")}, nil, allowed},
		"another action":   {[]any{simple("Allow", "dynamodb:Get", "arn:t")}, nil, implicitDenial},
		"another resource": {[]any{simple("Allow", "*", "arn:tt")}, nil, implicitDenial},
		"any of a service": {[]any{simple("Allow", "dynamodb:*", "*")}, nil, allowed},
		"another case":     {[]any{simple("Allow", "DynamoDB:getitem", "arn:?")}, nil, allowed},
		"a deny after an allow": {
			[]any{simple("Allow", "*", "*"), simple("Deny", "*:GetItem", "*")}, nil, explicitDenial,
		},
		"a deny before an allow": {
			[]any{simple("Deny", "*", "*"), simple("Allow", "*", "*")}, nil, explicitDenial,
		},
		"a deny of others": {
			[]any{simple("Deny", "*", "arn:u"), simple("Allow", "*", "*")}, nil, allowed,
		},
	} {
		c.check(t, name)
	}
}

// TestSimulatorConditions checks the conditions.
func TestSimulatorConditions(t *testing.T) {
	t.Parallel()
	const tag = "aws:PrincipalTag/ns"
	const all, one = "ForAllValues:StringLike", "ForAnyValue:StringLike"
	of := func(keys ...string) map[string][]string { return map[string][]string{leadingKeys: keys} }
	tagged := func(value, key string) map[string][]string {
		return map[string][]string{tag: {value}, leadingKeys: {key}}
	}
	present := onKeys(all, "a/*")
	present["Condition"].(map[string]any)["Null"] = map[string]any{leadingKeys: "false"}
	its := onKeys(all, "${"+tag+"}/*")
	for name, c := range map[string]simulatorCase{
		"all keys match":   {[]any{onKeys(all, "a/*", "b")}, of("a/1", "b"), allowed},
		"one key does not": {[]any{onKeys(all, "a/*")}, of("a/1", "b/1"), implicitDenial},
		"a statement for each key": {
			[]any{onKeys(all, "a/*"), onKeys(all, "b/*")}, of("a/1", "b/1"), implicitDenial,
		},
		"all of no keys":                {[]any{onKeys(all, "a/*")}, nil, allowed},
		"no keys, which must be there":  {[]any{present}, nil, implicitDenial},
		"a key, which must be there":    {[]any{present}, of("a/1"), allowed},
		"any key":                       {[]any{onKeys(one, "a/*")}, of("b/1", "a/1"), allowed},
		"any of no keys":                {[]any{onKeys(one, "a/*")}, nil, implicitDenial},
		"a single character":            {[]any{onKeys(all, "??*/1")}, of("a/1"), implicitDenial},
		"two characters":                {[]any{onKeys(all, "??*/1")}, of("ab/1"), allowed},
		"a pattern for an equal value":  {[]any{onKeys("ForAllValues:StringEquals", "a*")}, of("ab"), implicitDenial},
		"its tag":                       {[]any{its}, tagged("x", "x/1"), allowed},
		"another's tag":                 {[]any{its}, tagged("y", "x/1"), implicitDenial},
		"no tag":                        {[]any{its}, of("/1"), implicitDenial},
		"a tag that is a pattern":       {[]any{its}, tagged("*", "x/1"), implicitDenial},
		"the variable, not its value":   {[]any{its}, tagged("x", "${"+tag+"}/1"), implicitDenial},
		"a tag that is a part of an ID": {[]any{its}, tagged("x", "xy/1"), implicitDenial},
	} {
		c.check(t, name)
	}
}

func (c *simulatorCase) check(t *testing.T, name string) {
	t.Helper()
	s := &simulator{t, []map[string]any{{"Statement": c.statements}}}
	r := &request{action: "dynamodb:GetItem", resource: "arn:t", context: c.context}
	if got := s.decide(r); got != c.want {
		t.Errorf("%s: got %s, want %s", name, got, c.want)
	}
}
