package provision_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is a row of calls.txt, and a call that it stands for.
type row struct {
	verb, action, resource, partition, attributes string
}

func callRows(t *testing.T) (rows []row) {
	t.Helper()
	text, err := os.ReadFile("calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			fields = append(fields, "", "")
			rows = append(rows, row{fields[0], fields[1], fields[2], fields[3], fields[4]})
		}
	}
	return rows
}

const (
	ownNamespace     = "AAAAAAAAAAA"
	foreignNamespace = "-BBBBBBBBB_"
	registryKey      = "_/SYSTEM#"
	tableARN         = "arn:aws:dynamodb:eu-central-1:123456789012:table/limits"
	namespaceTag     = "aws:PrincipalTag/zael_namespace_id"
)

// anyAttributes are those of an ordinary write.
var anyAttributes = []string{"PK", "SK", "l_rpm_cp"}

// call returns the request of a row, by a principal that is tagged with its namespace, on a
// partition of the given namespace.
func (r row) call(namespace string) *request {
	q := &request{
		action: "dynamodb:" + r.action, resource: tableARN,
		context: map[string][]string{namespaceTag: {ownNamespace}, "dynamodb:Attributes": anyAttributes},
	}
	if r.resource != "table" {
		q.resource += "/index/" + r.resource
	}
	if r.attributes != "" {
		q.context["dynamodb:Attributes"] = strings.Split(r.attributes, ",")
	}
	if r.partition != "" {
		key := strings.Replace(r.partition, "{ns}", namespace, 1)
		q.context["dynamodb:LeadingKeys"] = []string{strings.Replace(key, "*", "acme#gpt-4o#0", 1)}
	}
	return q
}

// policyCase is a policy of the template, and what it is for.
type policyCase struct {
	id       string
	verbs    []string
	tenant   bool
	document map[string]any
}

func policyCases(t *testing.T) []policyCase {
	t.Helper()
	cases := []policyCase{
		{id: "AcquireOnlyPolicy", verbs: []string{"use"}},
		{id: "ReadOnlyPolicy", verbs: []string{"read", "inspect"}},
		{id: "FullAccessPolicy", verbs: []string{"use", "read", "inspect", "administer", "namespaces"}},
		{id: "AggregatorRole", verbs: []string{"aggregate"}},
		{id: "NamespaceAcquirePolicy", verbs: []string{"use"}, tenant: true},
		{id: "NamespaceReadOnlyPolicy", verbs: []string{"read"}, tenant: true},
		{id: "NamespaceFullAccessPolicy", verbs: []string{"use", "read", "administer"}, tenant: true},
	}
	resources := parse(t, &template{Table: "limits"}).Resources
	for i, c := range cases {
		properties := resources[c.id].Properties
		if c.id == "AggregatorRole" {
			properties, _ = list(properties["Policies"])[0].(map[string]any)
		}
		cases[i].document, _ = rendered(properties["PolicyDocument"]).(map[string]any)
		if cases[i].document == nil {
			t.Fatalf("no policy in %s", c.id)
		}
	}
	return cases
}

var attributeVariable = regexp.MustCompile(`\$\{(\w+)\.Arn\}`)

// rendered returns a part of the template as CloudFormation passes it on: functions are replaced.
func rendered(part any) any {
	switch v := part.(type) {
	case map[string]any:
		if text, ok := v["Fn::Sub"].(string); ok {
			text = attributeVariable.ReplaceAllString(text, "arn:$1")
			return strings.NewReplacer("${AWS::Partition}", "aws", "${AWS::Region}", "eu-central-1",
				"${AWS::AccountId}", "123456789012", "${AWS::StackName}", "limits").Replace(text)
		}
		if of, ok := v["Fn::GetAtt"].([]any); ok {
			return fmt.Sprint("arn:", of[0])
		}
		out := make(map[string]any)
		for key, value := range v {
			out[key] = rendered(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = rendered(value)
		}
		return out
	}
	return part
}

// permitted reports whether a policy is to allow a row. That of one namespace leaves out what
// concerns all namespaces: calls about the table, and of the registry all but getting items. The
// partition SYSTEM# is of a table without namespaces.
func (c *policyCase) permitted(r row) bool {
	gets := r.action == "GetItem" || r.action == "BatchGetItem"
	return slices.Contains(c.verbs, r.verb) &&
		(!c.tenant || r.partition != "" && r.partition != "SYSTEM#" && (r.partition != registryKey || gets))
}

func (c *policyCase) simulator(t *testing.T) *simulator {
	return &simulator{t, []map[string]any{c.document}}
}

// TestPoliciesAllowRecordedCalls checks that each policy allows all calls that it is for, batches
// with all their keys at once.
func TestPoliciesAllowRecordedCalls(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range policyCases(t) {
		s := c.simulator(t)
		whole := make(map[string]*request)
		for _, r := range callRows(t) {
			if !c.permitted(r) {
				continue
			}
			n++
			q := r.call(ownNamespace)
			if got := s.decide(q); got != allowed {
				t.Errorf("%s: %v is %s", c.id, r, got)
			}
			if b := whole[r.action]; b != nil {
				b.context["dynamodb:LeadingKeys"] = append(b.context["dynamodb:LeadingKeys"],
					q.context["dynamodb:LeadingKeys"]...)
			} else if strings.HasPrefix(r.action, "Batch") {
				whole[r.action] = q
			}
		}
		for action, q := range whole {
			n++
			if got := s.decide(q); got != allowed {
				t.Errorf("%s: %s with %q is %s", c.id, action, q.context["dynamodb:LeadingKeys"], got)
			}
		}
	}
	t.Logf("%d calls", n)
}

// everyCall returns each combination of an action, a resource and a form of a partition: those that
// weir makes and others, so that nothing more than the recorded calls is allowed.
func everyCall(t *testing.T) (all []row) {
	t.Helper()
	actions := map[string]bool{
		"TransactGetItems": true, "PartiQLSelect": true, "PartiQLUpdate": true, "PartiQLInsert": true,
		"PartiQLDelete": true, "ExportTableToPointInTime": true, "PutResourcePolicy": true,
		"UpdateContinuousBackups": true, "RestoreTableFromBackup": true,
	}
	resources := map[string]bool{"GSI1": true, "GSI2": true, "GSI3": true, "GSI4": true, "LSI1": true}
	partitions := map[string]bool{"": true, "{ns}/OTHER#*": true, "_": true, "_/OTHER#": true}
	keyless := make(map[string]bool)
	for _, r := range callRows(t) {
		actions[r.action], resources[r.resource], partitions[r.partition] = true, true, true
		keyless[r.action] = r.partition == ""
	}
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		for _, resource := range slices.Sorted(maps.Keys(resources)) {
			for _, partition := range slices.Sorted(maps.Keys(partitions)) {
				if partition == "" || !keyless[action] {
					all = append(all, row{action: action, resource: resource, partition: partition})
				}
			}
		}
	}
	return all
}

// TestPoliciesRefuseOtherCalls checks that each policy refuses every other call: those of other
// verbs, of the indexes that it does not need, without a key, and of other namespaces.
func TestPoliciesRefuseOtherCalls(t *testing.T) {
	t.Parallel()
	rows, every := callRows(t), everyCall(t)
	refused := 0
	for _, c := range policyCases(t) {
		s := c.simulator(t)
		check := func(r row, namespace string, want bool) {
			if !want {
				refused++
			}
			if got := s.decide(r.call(namespace)) == allowed; got != want {
				t.Errorf("%s: %v of namespace %s is allowed: %t, want %t", c.id, r, namespace, got, want)
			}
		}
		may := func(r row) bool {
			return slices.ContainsFunc(rows, func(known row) bool {
				mine := c.permitted(known)
				known.verb = ""
				return mine && known == r
			})
		}
		for _, r := range every {
			want := may(r)
			if r.resource == "GSI4" && len(r.partition) > 1 && !c.tenant {
				// The key of this index is an ID alone, so the pattern for any ID is one for any key.
				bare := r
				bare.partition = "{ns}"
				want = may(bare)
			}
			check(r, ownNamespace, want)
			check(r, foreignNamespace, want && (!c.tenant || r.partition == registryKey))
		}
	}
	t.Logf("%d calls are refused", refused)
}

// TestPoliciesNeedEachStatement takes away each statement, and finds a recorded call that is denied
// then.
func TestPoliciesNeedEachStatement(t *testing.T) {
	t.Parallel()
	rows := callRows(t)
	for _, c := range policyCases(t) {
		all := list(c.document["Statement"])
		n := 0
		for i, each := range all {
			text := fmt.Sprint(each)
			if !strings.Contains(text, tableARN) || strings.Contains(text, "/stream/") {
				continue // Lambda's, and what is not DynamoDB's
			}
			n++
			rest := slices.Delete(slices.Clone(all), i, i+1)
			s := &simulator{t, []map[string]any{{"Statement": rest}}}
			if !slices.ContainsFunc(rows, func(r row) bool {
				return c.permitted(r) && s.decide(r.call(ownNamespace)) == implicitDenial
			}) {
				t.Errorf("%s needs no %v", c.id, each)
			}
		}
		t.Logf("%s: %d statements on the table, %d in all", c.id, n, len(all))
	}
}

// TestPoliciesOfOneNamespace checks what keeps a tenant in its namespace besides the keys of single
// calls.
func TestPoliciesOfOneNamespace(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range policyCases(t) {
		if !c.tenant {
			continue
		}
		s := c.simulator(t)
		refuse := func(what string, r row, q *request) {
			n++
			if got := s.decide(q); got == allowed {
				t.Errorf("%s: %v with %s is allowed", c.id, r, what)
			}
		}
		for _, r := range callRows(t) {
			if !c.permitted(r) || r.partition == registryKey {
				continue
			}
			untagged := r.call(ownNamespace)
			delete(untagged.context, namespaceTag)
			refuse("no tag", r, untagged)
			empty := r.call(foreignNamespace)
			empty.context[namespaceTag] = []string{""}
			refuse("an empty tag", r, empty)
			keyless := r.call(ownNamespace)
			delete(keyless.context, "dynamodb:LeadingKeys")
			refuse("no key", r, keyless)
			mixed := r.call(ownNamespace)
			mixed.context["dynamodb:LeadingKeys"] = append(mixed.context["dynamodb:LeadingKeys"],
				r.call(foreignNamespace).context["dynamodb:LeadingKeys"]...)
			refuse("a key of another namespace among its own", r, mixed)
		}
		for _, action := range []string{
			"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem", "Query",
		} {
			r := row{action: action, resource: "table", partition: registryKey}
			refuse("the registry", r, r.call(ownNamespace))
		}
	}
	t.Logf("%d calls are refused", n)
}

// TestPoliciesLimitAttributes checks that a caller that only limits calls can write nothing of a
// namespace's own items but the register of leases.
func TestPoliciesLimitAttributes(t *testing.T) {
	t.Parallel()
	r := row{action: "UpdateItem", resource: "table", partition: "{ns}/SYSTEM#"}
	for _, c := range policyCases(t) {
		for want, attributes := range map[decision][][]string{
			allowed:        {{"PK", "SK", "slices"}, {"GSI4PK", "GSI4SK", "PK", "SK", "slices"}},
			implicitDenial: {nil, {"PK", "SK", "l_rpm_cp"}, {"PK", "SK", "slices", "on_unavailable"}},
		} {
			switch c.id {
			case "AcquireOnlyPolicy", "NamespaceAcquirePolicy":
			case "FullAccessPolicy", "NamespaceFullAccessPolicy":
				want = allowed
			default:
				want = implicitDenial
			}
			for _, names := range attributes {
				q := r.call(ownNamespace)
				q.context["dynamodb:Attributes"] = names
				if got := c.simulator(t).decide(q); got != want {
					t.Errorf("%s: an update of %q is %s, want %s", c.id, names, got, want)
				}
			}
		}
	}
}

// TestPoliciesFit checks the sizes with the longest names: AWS counts the characters of a policy
// without white space, at most 6,144 of a managed policy and 10,240 of those in a role.
func TestPoliciesFit(t *testing.T) {
	t.Parallel()
	for _, c := range policyCases(t) {
		text, err := json.Marshal(c.document)
		if err != nil {
			t.Fatal(err)
		}
		long := strings.NewReplacer("table/limits", "table/"+strings.Repeat("l", 128), "arn:aws:",
			"arn:aws-us-gov:", "eu-central-1", "ap-southeast-1").Replace(string(text))
		most := 6144
		if c.id == "AggregatorRole" {
			most = 10240
		}
		if len(long) > most {
			t.Errorf("%s has %d characters, want at most %d", c.id, len(long), most)
		}
		t.Logf("%s: %d characters, %d with long names", c.id, len(text), len(long))
	}
}
