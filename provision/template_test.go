package provision_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/function"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/provision"
)

const (
	topicARN    = "arn:aws:sns:eu-central-1:123456789012:alarms"
	roleARN     = "arn:aws:iam::123456789012:role/limits-function"
	boundaryARN = "arn:aws:iam::123456789012:policy/team/boundary"
)

type template = provision.Template

// full has every option that adds something.
func full() *template {
	return &template{
		Stack: "limits", Table: "team.limits", Lean: true, Protected: true, Recovery: true,
		RetentionDays: 400, Refill: true, LogDays: 7, Tracing: true, ArchiveDays: 30,
		AlarmTopic: topicARN, PermissionBoundary: boundaryARN, RoleNameFormat: "Team-{}",
		PolicyNameFormat: "Team-{}-policy", Tags: map[string]string{"team": "search", "cost": "4711"},
	}
}

func templateJSON(t *testing.T, of *template) []byte {
	t.Helper()
	text, err := of.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// parsed is a template as CloudFormation reads it.
type parsed struct {
	Parameters map[string]struct{ Default any }
	Resources  map[string]struct {
		Type       string
		Properties map[string]any
	}
	Outputs map[string]any
}

func parse(t *testing.T, of *template) *parsed {
	t.Helper()
	p := &parsed{}
	if err := json.Unmarshal(templateJSON(t, of), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGolden compares the templates with those in testdata. With WEIR_UPDATE_GOLDEN=1 it writes
// them, to be reviewed before they are committed.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]*template{"default": {}, "full": full()} {
		file := filepath.Join("testdata", name+".json")
		got := templateJSON(t, of)
		if os.Getenv("WEIR_UPDATE_GOLDEN") == "1" {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the template is not that of %s; see the comment of TestGolden", file)
		}
		if again := templateJSON(t, of); !bytes.Equal(got, again) {
			t.Error("the same options made two templates")
		}
	}
}

// combinations has each combination of the options that add or leave out something.
func combinations() []*template {
	switches := []func(*template){
		func(t *template) { t.Lean, t.Protected, t.Recovery = true, true, true },
		func(t *template) { t.Table = "team.limits" },
		func(t *template) {
			t.Existing, t.Table = true, "old_limits"
			t.Lean, t.Protected, t.Recovery = false, false, false
		},
		func(t *template) { t.NoAggregator = true },
		func(t *template) { t.Refill, t.Tracing = !t.NoAggregator, !t.NoAggregator },
		func(t *template) { t.NoArchive = true },
		func(t *template) { t.NoAlarms = true },
		func(t *template) {
			if !t.NoAlarms {
				t.AlarmTopic = topicARN
			}
		},
		func(t *template) { t.NoPolicies = true },
		func(t *template) {
			if !t.NoAggregator {
				t.FunctionRole = roleARN
			}
		},
		func(t *template) {
			t.RoleNameFormat, t.PolicyNameFormat = "A-{}", "{}.p"
			if !t.NoAggregator && t.FunctionRole == "" {
				t.PermissionBoundary = boundaryARN
			}
		},
		func(t *template) { t.Tags = map[string]string{"team": "search"} },
	}
	var all []*template
	for mask := range 1 << len(switches) {
		t := &template{}
		for i, set := range switches {
			if mask&(1<<i) != 0 {
				set(t)
			}
		}
		all = append(all, t)
	}
	return all
}

// TestLint makes the templates of all combinations, and runs cfn-lint on those of one option, of all
// but one, and of a few in which each two options are both on, both off, and only one of them on. In
// a long run it does so on those of two options and of all but two.
func TestLint(t *testing.T) {
	t.Parallel()
	python := testkit.ZAE(t)
	dir := t.TempDir()
	known := make(map[string]bool)
	var files []string
	for mask, of := range combinations() {
		text, err := of.JSON()
		if err != nil {
			if of.Existing && of.NoAggregator && of.NoAlarms && of.NoPolicies {
				continue // Nothing is left.
			}
			t.Fatalf("%+v: %v", of, err)
		}
		_, digest, _ := strings.Cut(string(text), `"digest"`)
		digest, _, _ = strings.Cut(digest, "\n") // of all but the options
		if known[digest] || !linted(mask) {
			continue
		}
		known[digest] = true
		file := filepath.Join(dir, fmt.Sprintf("%04d.json", mask))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	args := []string{"--include-checks", "I", "--regions", "us-east-1", "eu-central-1", "--"}
	args = append(args, files...)
	if found, err := python.Command(t.Context(), "cfn-lint", args...).CombinedOutput(); err != nil {
		t.Errorf("cfn-lint: %v\n%s", err, found)
	}
	t.Logf("cfn-lint read %d templates", len(files))
}

// linted reports whether cfn-lint reads the template of a combination.
func linted(mask int) bool {
	const options = 12
	if n := bits.OnesCount(uint(mask)); n <= 1 || n >= options-1 || soak.On() && (n == 2 || n == options-2) {
		return true
	}
	// A row has the options whose number has a certain bit, or those whose number does not have it.
	for bit := range bits.Len(options - 1) {
		row := 0
		for option := range options {
			row |= (option >> bit & 1) << option
		}
		if mask == row || mask == row^(1<<options-1) {
			return true
		}
	}
	return false
}

// TestLintFinds shows that the linter is not silent about everything.
func TestLintFinds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "wrong.json")
	text := templateJSON(t, full())
	wrong := bytes.Replace(text, []byte(`"TRIM_HORIZON"`), []byte(`"SOMEWHERE"`), 1)
	if err := os.WriteFile(file, wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := testkit.ZAE(t).Command(t.Context(), "cfn-lint", "--", file).CombinedOutput()
	if err == nil || !strings.Contains(string(found), "SOMEWHERE") {
		t.Errorf("got %v, %s, want an error for SOMEWHERE", err, found)
	}
}

// TestTags checks that every resource that can be tagged has the tags.
func TestTags(t *testing.T) {
	t.Parallel()
	want := []any{
		map[string]any{"Key": "ManagedBy", "Value": "weir"},
		map[string]any{"Key": "cost", "Value": "4711"},
		map[string]any{"Key": "team", "Value": "search"},
	}
	for id, r := range parse(t, full()).Resources {
		if r.Type == "AWS::IAM::ManagedPolicy" || r.Type == "AWS::Lambda::Permission" {
			continue
		}
		if got := fmt.Sprint(r.Properties["Tags"]); got != fmt.Sprint(want) {
			t.Errorf("%s has the tags %s, want %v", id, got, want)
		}
	}
}

// TestEnvironment checks that the function can start with the environment that the stack gives it.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	f := parse(t, full()).Resources["AggregatorFunction"].Properties
	environment, _ := f["Environment"].(map[string]any)
	variables, _ := environment["Variables"].(map[string]any)
	var got []string
	for name := range variables {
		got = append(got, name)
	}
	slices.Sort(got)
	want := []string{
		function.ArchiveEnv, function.RefillEnv, function.RetentionEnv, function.StoreEnv,
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got the variables %q, want %q", got, want)
	}
	if got := variables[function.StoreEnv]; got != "dynamodb://team.limits" {
		t.Errorf("got the store %v, want dynamodb://team.limits", got)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300)
	for _, c := range []struct {
		of           template
		field, value string
		reason       string
	}{
		{template{Stack: "1limits"}, "stack", "1limits", "must be a letter, and then"},
		{template{Stack: "my_limits"}, "stack", "my_limits", "must be a letter, and then"},
		{template{Stack: "grenzwerté"}, "stack", "grenzwerté", "must be a letter, and then"},
		{template{Stack: long[:129]}, "stack", long[:63] + "…", "at most 128"},
		{template{Stack: long[:54]}, "stack", long[:54], "is too long: its function"},
		{template{Stack: "ab"}, "stack", "ab", "has at least 3 characters"},
		{template{Table: "ab"}, "table", "ab", "3 to 255"},
		{template{Table: "a b c"}, "table", "a b c", "3 to 255"},
		{template{Table: long[:256], NoPolicies: true}, "table", long[:63] + "…", "3 to 255"},
		{template{RetentionDays: -1}, "retention_days", "-1", "from 1 to 3650"},
		{template{RetentionDays: 3651}, "retention_days", "3651", "from 1 to 3650"},
		{template{ArchiveDays: 3651}, "archive_days", "3651", "from 1 to 3650"},
		{template{LogDays: 8}, "log_days", "8", "one of [1 3 5 7 14 30"},
		{template{AlarmTopic: "alarms"}, "alarm_topic", "alarms", "ARN of an SNS topic"},
		{template{AlarmTopic: roleARN}, "alarm_topic", roleARN, "ARN of an SNS topic"},
		{
			template{AlarmTopic: "arn:aws:sns::123456789012:a"}, "alarm_topic",
			"arn:aws:sns::123456789012:a", "ARN of an SNS topic",
		},
		{template{FunctionRole: boundaryARN}, "function_role", boundaryARN, "ARN of a role"},
		{
			template{PermissionBoundary: "arn:aws:iam::12:policy/x"}, "permission_boundary",
			"arn:aws:iam::12:policy/x", "ARN of a policy",
		},
		{template{RoleNameFormat: "Team"}, "role_name_format", "Team", "must contain {}"},
		{template{RoleNameFormat: "{}{}"}, "role_name_format", "{}{}", "besides one {}"},
		{template{RoleNameFormat: "a/{}"}, "role_name_format", "a/{}", "besides one {}"},
		{
			template{RoleNameFormat: "{}" + long[:59]}, "role_name_format",
			"{}" + long[:59], "at most 64",
		},
		{
			template{Stack: long[:40], RoleNameFormat: "{}" + long[:20]}, "role_name_format",
			"{}" + long[:20], "is too long for the stack",
		},
		{template{PolicyNameFormat: "x{}y{}"}, "policy_name_format", "x{}y{}", "besides one {}"},
		{template{Existing: true}, "existing", "true", "needs the name"},
		{template{Existing: true, Table: "old", Lean: true}, "lean", "true", "that exists"},
		{
			template{Existing: true, Table: "old", NoAggregator: true, NoAlarms: true, NoPolicies: true},
			"existing", "true", "leaves nothing",
		},
		{template{NoAlarms: true, AlarmTopic: topicARN}, "alarm_topic", topicARN, "without alarms"},
		{template{NoAggregator: true, Tracing: true}, "tracing", "true", "without the function"},
		{template{Tags: map[string]string{"aws:x": "y"}}, "tags", "aws:x", "AWS's own"},
		{template{Tags: map[string]string{"ManagedBy": "y"}}, "tags", "ManagedBy", "weir's own"},
		{template{Tags: map[string]string{"": "y"}}, "tags", "", "1 to 128"},
		{template{Tags: map[string]string{"a": "y;"}}, "tags.a", "y;", "must have only"},
		{template{Tags: map[string]string{"a": long}}, "tags.a", long[:63] + "…", "at most 256"},
	} {
		_, err := c.of.JSON()
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != weir.Invalid || e.Field != c.field || e.Value != c.value ||
			!strings.Contains(e.Reason, c.reason) {
			t.Errorf("%+v: got %v, want %s %q: …%s…", c.of, err, c.field, c.value, c.reason)
		}
	}
	_, err := (&template{Stack: "1", Table: "x", LogDays: 2}).JSON()
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; n != 3 {
		t.Errorf("got %d mistakes, want all three: %v", n, err)
	}
}

// TestLongTable checks that a table whose name would make the policies too long has none.
func TestLongTable(t *testing.T) {
	t.Parallel()
	_, err := (&template{Table: strings.Repeat("a", 129)}).JSON()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Invalid || e.Field != "table" ||
		!strings.Contains(e.Reason, "policies would be too long") {
		t.Errorf("got %v, want that the policies would be too long", err)
	}
}

// TestFits checks that a call can have the template as it is printed, which takes few tags.
func TestFits(t *testing.T) {
	t.Parallel()
	if n := len(templateJSON(t, full())); n > 51_200 {
		t.Errorf("the template has %d bytes, and a call may have 51,200", n)
	}
}

// TestBounds has values at the ends of what is allowed.
func TestBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 255)
	for _, of := range []template{
		{Stack: long[:53]}, {Stack: long[:120], NoAggregator: true},
		{Stack: "a", Table: "abc"}, {Table: long[:128]}, {Table: long, NoPolicies: true},
		{RetentionDays: 1, ArchiveDays: 1, LogDays: 1},
		{RetentionDays: 3650, ArchiveDays: 3650, LogDays: 3653},
		{AlarmTopic: "arn:aws-us-gov:sns:us-gov-west-1:123456789012:a_b-c"},
		{PermissionBoundary: "arn:aws:iam::aws:policy/PowerUserAccess"},
		{Stack: "a", Table: "abc", RoleNameFormat: long[:58] + "{}"},
	} {
		if _, err := of.JSON(); err != nil {
			t.Errorf("%+v: %v", of, err)
		}
	}
}
