package provision_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/provision"
)

// made is what testdata/stack.py found on moto after it created a stack. moto makes no alarms, and
// has no tags, architecture and tracing of a function, and no lifecycle of a bucket that CloudFormation
// makes.
type made struct {
	Status           string
	Outputs, Exports map[string]string
	Types            map[string]string
	Tags             map[string]map[string]string
	Function         struct {
		Runtime, Handler, Role string
		Timeout, MemorySize    int
		Environment            struct{ Variables map[string]any }
	}
	Policy   struct{ Statement []map[string]any }
	Mappings []struct {
		EventSourceArn, StartingPosition string
		TumblingWindowInSeconds          int
		BatchSize                        int
		BisectBatchOnFunctionError       bool
		MaximumRetryAttempts             *int
		FunctionResponseTypes            []string
		FilterCriteria                   struct{ Filters []struct{ Pattern string } }
		DestinationConfig                struct{ OnFailure struct{ Destination string } }
	}
	LogDays int `json:"log_days"`
	Rule    struct{ ScheduleExpression, State, Arn string }
	Targets []struct{ Arn string }
	Role    struct {
		RoleName            string
		PermissionsBoundary struct{ PermissionsBoundaryArn string }
	}
	RolePolicy string `json:"role_policy"`
	Encryption []map[string]any
	Policies   map[string]struct{ Statement []map[string]any }
}

// create creates the stack of a template on moto, and checks that its resources and outputs are
// there, except alarms.
func create(t *testing.T, endpoint string, of *provision.Template, more map[string]string) *made {
	t.Helper()
	file := filepath.Join(t.TempDir(), "template.json")
	if err := os.WriteFile(file, templateJSON(t, of), 0o600); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	if !of.NoAggregator {
		values["CodeBucket"], values["CodeKey"] = "code", "weir-aggregator.zip"
	}
	maps.Copy(values, more)
	parameters, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	cmd := testkit.ZAE(t).Command(t.Context(), "python", "testdata/stack.py", endpoint, file, of.Stack,
		string(parameters))
	m := &made{}
	if err := json.Unmarshal([]byte(testkit.Run(t, cmd)), m); err != nil {
		t.Fatal(err)
	}
	if m.Status != "CREATE_COMPLETE" {
		t.Errorf("the stack is %s, want CREATE_COMPLETE", m.Status)
	}
	want := parse(t, of)
	for id, r := range want.Resources {
		if m.Types[id] != r.Type && r.Type != "AWS::CloudWatch::Alarm" {
			t.Errorf("the stack has %q as %s, want %s", m.Types[id], id, r.Type)
		}
	}
	for id := range want.Outputs {
		if m.Outputs[id] == "" && !strings.Contains(id, "Alarm") {
			t.Errorf("the stack has no output %s", id)
		}
	}
	if len(m.Exports) != len(want.Outputs) {
		t.Errorf("got the exports %v, want one for each of the %d outputs", m.Exports, len(want.Outputs))
	}
	return m
}

// described returns what DynamoDB says of a table, without what is of one table only.
func described(t *testing.T, endpoint, table string) map[string]any {
	t.Helper()
	client := ddb.NewFromConfig(testkit.LocalConfig(endpoint))
	d, err := client.DescribeTable(t.Context(), &ddb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	live, err := client.DescribeTimeToLive(t.Context(), &ddb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.DescribeContinuousBackups(t.Context(),
		&ddb.DescribeContinuousBackupsInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	restore := answer.ContinuousBackupsDescription.PointInTimeRecoveryDescription
	byName := func(a, b types.AttributeDefinition) int {
		return strings.Compare(*a.AttributeName, *b.AttributeName)
	}
	slices.SortFunc(d.Table.AttributeDefinitions, byName)
	for i := range d.Table.GlobalSecondaryIndexes {
		d.Table.GlobalSecondaryIndexes[i].IndexArn = nil
	}
	for i := range d.Table.LocalSecondaryIndexes {
		d.Table.LocalSecondaryIndexes[i].IndexArn = nil
	}
	found := map[string]any{
		"keys": d.Table.KeySchema, "attributes": d.Table.AttributeDefinitions,
		"global": d.Table.GlobalSecondaryIndexes, "local": d.Table.LocalSecondaryIndexes,
		"stream": d.Table.StreamSpecification, "billing": d.Table.BillingModeSummary.BillingMode,
		"protected": aws.ToBool(d.Table.DeletionProtectionEnabled),
		timeToLive:  live.TimeToLiveDescription,
		recovery:    restore.PointInTimeRecoveryStatus,
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]any{}
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// The parts of a description that moto leaves out of a table that CloudFormation makes.
const (
	timeToLive = "time to live"
	recovery   = "recovery"
)

// ofProperties returns these parts from the template, as DynamoDB describes them.
func ofProperties(properties map[string]any) (live, recovery any) {
	l, _ := properties["TimeToLiveSpecification"].(map[string]any)
	r, _ := properties["PointInTimeRecoverySpecification"].(map[string]any)
	status := map[any]string{true: "ENABLED", false: "DISABLED"}
	return map[string]any{
		"AttributeName": l["AttributeName"], "TimeToLiveStatus": status[l["Enabled"]],
	}, status[r["PointInTimeRecoveryEnabled"]]
}

// TestTable compares the table of a stack with the one that weir table create makes, which then also
// prepares that of the stack.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprintf("options=%t", on), func(t *testing.T) {
			t.Parallel()
			endpoint := testkit.Moto(t)
			of := &template{
				Stack: "limits", Lean: on, Protected: on, Recovery: on, NoAggregator: true, NoAlarms: true,
			}
			create(t, endpoint, of, nil)
			got := described(t, endpoint, "limits")
			config := testkit.LocalConfig(endpoint)
			table := func(name string) *dynamodb.Table {
				return &dynamodb.Table{
					Name: name, Lean: on, Protected: on, Recovery: on,
					Options: &dynamodb.Options{Config: &config, Endpoint: endpoint},
				}
			}
			if _, err := table("other").Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := described(t, endpoint, "other")
			properties := parse(t, of).Resources["RateLimitsTable"].Properties
			got[timeToLive], got[recovery] = ofProperties(properties)
			for part := range want {
				if !reflect.DeepEqual(got[part], want[part]) {
					t.Errorf("%s: got %v, want %v", part, got[part], want[part])
				}
			}
			// Its namespace and its version record are not in a template.
			if changed, err := table("limits").Create(t.Context()); err != nil || !changed {
				t.Fatalf("prepare the table of the stack: got %t, %v, want true", changed, err)
			}
			info, err := table("limits").Describe(t.Context())
			if err != nil || info.Refused != nil {
				t.Errorf("got %v, %v, want a table that weir uses", info, err)
			}
		})
	}
}

// TestStack creates stacks on moto and checks what the function and its neighbours got.
func TestStack(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]*template{"default": {Stack: "limits"}, "full": full()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := create(t, testkit.Moto(t), of, map[string]string{
				"SnapshotRetentionDays": "45", "LambdaTimeout": "300",
			})
			table, role, retention := "limits", "limits-aggr", 30
			if of.Table != "" {
				table, role, retention = of.Table, "Team-limits-aggr", of.LogDays
			}
			checkFunction(t, m, table, role)
			checkMapping(t, m)
			if m.Role.RoleName != role || m.LogDays != retention {
				t.Errorf("got the role %s and logs for %d days, want %s and %d",
					m.Role.RoleName, m.LogDays, role, retention)
			}
			bound := m.Role.PermissionsBoundary.PermissionsBoundaryArn
			if bound != of.PermissionBoundary {
				t.Errorf("the role is bounded by %q, want %q", bound, of.PermissionBoundary)
			}
			if m.Rule.ScheduleExpression != "rate(1 hour)" || m.Rule.State != "ENABLED" ||
				len(m.Targets) != 1 || m.Targets[0].Arn != m.Outputs["AggregatorFunctionArn"] {
				t.Errorf("got the rule %+v for %+v, want the function once an hour", m.Rule, m.Targets)
			}
			if s := fmt.Sprint(m.Policy.Statement); len(m.Policy.Statement) != 1 ||
				!strings.Contains(s, "events.amazonaws.com") || !strings.Contains(s, m.Rule.Arn) {
				t.Errorf("got %s, want the rule alone to invoke the function", s)
			}
			for _, has := range []string{"table", "queue", "role", "bucket"} {
				if got := m.Tags[has]; got["ManagedBy"] != "weir" || got["team"] != of.Tags["team"] {
					t.Errorf("the %s has the tags %v", has, got)
				}
			}
			checkPolicies(t, m)
		})
	}
}

func checkFunction(t *testing.T, m *made, table, role string) {
	t.Helper()
	f := m.Function
	if f.Runtime != "provided.al2023" || f.Handler != "bootstrap" || f.Timeout != 300 ||
		!strings.HasSuffix(f.Role, ":role/"+role) {
		t.Errorf("got the function %+v", f)
	}
	archive := "s3://" + m.Outputs["AuditArchiveBucketName"]
	for name, want := range map[string]string{
		"WEIR_STORE": "dynamodb://" + table, "WEIR_RETENTION_DAYS": "45", "WEIR_ARCHIVE": archive,
	} {
		if got := fmt.Sprint(f.Environment.Variables[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func checkMapping(t *testing.T, m *made) {
	t.Helper()
	if len(m.Mappings) != 1 {
		t.Fatalf("got %d mappings, want 1", len(m.Mappings))
	}
	x := m.Mappings[0]
	if x.EventSourceArn != m.Outputs["StreamArn"] || x.StartingPosition != "TRIM_HORIZON" ||
		x.TumblingWindowInSeconds != 60 || x.MaximumRetryAttempts != nil ||
		!x.BisectBatchOnFunctionError ||
		!slices.Equal(x.FunctionResponseTypes, []string{"ReportBatchItemFailures"}) ||
		x.DestinationConfig.OnFailure.Destination != m.Outputs["AggregatorDLQArn"] {
		t.Errorf("got the mapping %+v", x)
	}
	var patterns []string
	for _, f := range x.FilterCriteria.Filters {
		patterns = append(patterns, f.Pattern)
	}
	if !slices.Equal(patterns, provision.StreamFilter()) {
		t.Errorf("got the filter %q, want %q", patterns, provision.StreamFilter())
	}
}

// checkPolicies checks that the managed policies allow what their names say, on the table alone.
func checkPolicies(t *testing.T, m *made) {
	t.Helper()
	for output, c := range map[string]struct{ allowed, others []string }{
		"ReadOnlyPolicyArn": {[]string{"GetItem", "Query"}, []string{"PutItem", "UpdateItem", "Scan"}},
		"AcquireOnlyPolicyArn": {
			[]string{"GetItem", "UpdateItem"}, []string{"DeleteItem", "Scan", "BatchWriteItem"},
		},
		"FullAccessPolicyArn": {[]string{"DeleteItem", "Scan"}, []string{"DeleteTable", "CreateTable"}},
		"NamespaceReadOnlyPolicyArn": {
			[]string{"GetItem", "Query"}, []string{"PutItem", "UpdateItem", "Scan", "DescribeTable"},
		},
		"NamespaceAcquirePolicyArn": {
			[]string{"GetItem", "UpdateItem"}, []string{"DeleteItem", "Scan", "DescribeTable"},
		},
		"NamespaceFullAccessPolicyArn": {
			[]string{"DeleteItem", "BatchWriteItem"}, []string{"Scan", "DescribeTable"},
		},
	} {
		p, ok := m.Policies[m.Outputs[output]]
		text := fmt.Sprint(p.Statement) + " "
		if !ok || strings.Contains(text, ":*") || !strings.Contains(text, m.Outputs["TableArn"]) {
			t.Errorf("%s has the policy %s", output, text)
		}
		has := func(action string) bool {
			return strings.Contains(text, "dynamodb:"+action+" ") ||
				strings.Contains(text, "dynamodb:"+action+"]")
		}
		if slices.ContainsFunc(c.others, has) ||
			slices.ContainsFunc(c.allowed, func(action string) bool { return !has(action) }) {
			t.Errorf("%s allows %s, want %v without %v", output, text, c.allowed, c.others)
		}
	}
	if r := m.RolePolicy; !strings.Contains(r, m.Outputs["TableArn"]+"/stream/*") ||
		!strings.Contains(r, m.Outputs["AuditArchiveBucketArn"]+"/audit/*") ||
		!strings.Contains(r, m.Outputs["AggregatorDLQArn"]) || strings.Contains(r, "dynamodb:*") {
		t.Errorf("the function's role has the policy %s", r)
	}
}

// TestExisting creates a stack for a table that another program made.
func TestExisting(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Moto(t)
	config := testkit.LocalConfig(endpoint)
	table := &dynamodb.Table{
		Name: "old_limits", Options: &dynamodb.Options{Config: &config, Endpoint: endpoint},
	}
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := "old_limits"
	d, err := ddb.NewFromConfig(config).DescribeTable(t.Context(), &ddb.DescribeTableInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	m := create(t, endpoint, &template{Stack: "limits", Table: name, Existing: true},
		map[string]string{"StreamArn": *d.Table.LatestStreamArn})
	if got := m.Outputs["TableName"]; got != name || m.Types["RateLimitsTable"] != "" {
		t.Errorf("got the table %s and the resources %v, want no table of the stack", got, m.Types)
	}
	if got := m.Outputs["TableArn"]; got != *d.Table.TableArn {
		t.Errorf("got the ARN %s, want %s", got, *d.Table.TableArn)
	}
	checkMapping(t, m)
}
