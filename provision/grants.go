package provision

import (
	_ "embed" // calls.txt
	"maps"
	"slices"
	"strings"
)

// callsText has a row for each call that weir makes to DynamoDB, by what the caller wants: the verb,
// the action that AWS authorises, the resource, the form of the partition key, and for some updates
// the attributes. The tests of package dynamodb record it (docs/stack.md says how).
//
//go:embed calls.txt
var callsText string

// The verbs of the rows that the policies are made of.
const (
	verbUse        = "use"
	verbRead       = "read"
	verbAdminister = "administer"
	verbInspect    = "inspect"
	verbNamespaces = "namespaces"
	verbAggregate  = "aggregate"
)

// recordedCall is a row of calls.txt.
type recordedCall struct {
	verb, action, resource string
	// partition is the form of the partition key; empty for a call that has none.
	partition string
	// attributes are all that the call may name; empty for any.
	attributes string
}

const (
	// onTheTable is the resource of a row that is not an index.
	onTheTable = "table"
	// ofNamespace begins the form of a partition key with the ID of a namespace.
	ofNamespace = "{ns}"
	// registry is the partition with the version record, the names and IDs of all namespaces, and the
	// state of the aggregator.
	registry = "_/SYSTEM#"
)

// recordedCalls returns the rows with one of the verbs, in order.
func recordedCalls(verbs ...string) (rows []recordedCall) {
	for line := range strings.Lines(callsText) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !slices.Contains(verbs, fields[0]) {
			continue
		}
		fields = append(fields, "", "") // A short row has no partition or attributes.
		rows = append(rows, recordedCall{fields[0], fields[1], fields[2], fields[3], fields[4]})
	}
	return rows
}

// anyNamespace matches the ID of each namespace, and not the _ of the registry.
const anyNamespace = "??*"

// namespaceVariable is the tag of a principal that has the ID of its namespace; the name is the
// Python library's.
const namespaceVariable = "${aws:PrincipalTag/zael_namespace_id}"

// within returns the rows that the policy of one namespace can have. A call about the table concerns
// all namespaces, and a table of an older layout has none. A tenant may get items of the registry,
// because opening the store needs its own, but not list them.
func within(rows []recordedCall) []recordedCall {
	return slices.DeleteFunc(rows, func(r recordedCall) bool {
		get := r.action == "GetItem" || r.action == "BatchGetItem"
		return !strings.HasPrefix(r.partition, ofNamespace) && (r.partition != registry || !get)
	})
}

// grant has the actions of one statement, and their resource, partitions and attributes.
type grant struct {
	resource   string
	actions    []string
	partitions []string // forms; none for calls without a partition
	attributes []string // none for any
}

// grants returns the fewest statements without overlap that allow the rows and no other partition of
// an action: those of one resource and action are one statement, because all keys of a batch have
// to match the same statement, and actions with equal partitions share one.
func grants(rows []recordedCall) (all []*grant) {
	byAction := make(map[string]*grant)
	for _, r := range withAttributes(rows) {
		key := r.resource + " " + r.action + " " + r.attributes
		g := byAction[key]
		if g == nil {
			g = &grant{resource: r.resource, actions: []string{"dynamodb:" + r.action}}
			if r.attributes != "" {
				g.attributes = strings.Split(r.attributes, ",")
			}
			byAction[key] = g
		}
		if !slices.Contains(g.partitions, r.partition) {
			g.partitions = append(g.partitions, r.partition)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byAction)) {
		g := byAction[key]
		slices.Sort(g.partitions)
		same := slices.IndexFunc(all, func(other *grant) bool {
			return other.resource == g.resource && slices.Equal(other.partitions, g.partitions) &&
				slices.Equal(other.attributes, g.attributes)
		})
		if same < 0 {
			all = append(all, g)
		} else {
			all[same].actions = append(all[same].actions, g.actions...)
		}
	}
	return all
}

// withAttributes gives all rows of one action on one partition the same attributes: those of all of
// them, or none if one of them may name any.
func withAttributes(rows []recordedCall) []recordedCall {
	of := func(r recordedCall) recordedCall {
		r.verb, r.attributes = "", ""
		return r
	}
	names := make(map[recordedCall]map[string]bool) // nil if one row may name any
	for _, r := range rows {
		if all, known := names[of(r)]; r.attributes == "" || known && all == nil {
			names[of(r)] = nil
			continue
		} else if !known {
			names[of(r)] = make(map[string]bool)
		}
		for name := range strings.SplitSeq(r.attributes, ",") {
			names[of(r)][name] = true
		}
	}
	rows = slices.Clone(rows)
	for i, r := range rows {
		rows[i].attributes = strings.Join(slices.Sorted(maps.Keys(names[of(r)])), ",")
	}
	return rows
}

// statements returns the statements of a policy that allow the rows; namespace stands for the ID in
// a partition key.
func (b *builder) statements(rows []recordedCall, namespace string) (all []any) {
	for _, g := range grants(rows) {
		arn := b.tableARN()
		if g.resource != onTheTable {
			arn += "/index/" + g.resource
		}
		s := statement(sub(arn), g.actions...)
		if g.partitions[0] != "" {
			s["Condition"] = g.condition(namespace)
		}
		all = append(all, s)
	}
	return all
}

// condition returns the condition on the partitions and attributes. ForAllValues is true of a
// request without any key, so Null requires one.
func (g *grant) condition(namespace string) object {
	keys := make([]string, len(g.partitions))
	for i, form := range g.partitions {
		keys[i] = strings.Replace(form, ofNamespace, namespace, 1)
	}
	condition := object{
		"ForAllValues:StringLike": object{"dynamodb:LeadingKeys": keys},
		"Null":                    object{"dynamodb:LeadingKeys": "false"},
	}
	if len(g.attributes) > 0 {
		condition["ForAllValues:StringEquals"] = object{"dynamodb:Attributes": g.attributes}
		condition["Null"] = object{"dynamodb:LeadingKeys": "false", "dynamodb:Attributes": "false"}
	}
	return condition
}
