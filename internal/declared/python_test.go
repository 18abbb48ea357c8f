package declared_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/testkit"
)

// step is a step of testdata/steps.py.
type step struct {
	name string
	with map[string]any
}

func (s step) MarshalJSON() ([]byte, error) {
	if s.with == nil {
		s.with = map[string]any{}
	}
	return json.Marshal([]any{s.name, s.with})
}

// rpm returns a limit for the Python library.
func rpm(capacity int) map[string]any {
	return map[string]any{
		"name": "rpm", "capacity": capacity, "refill_amount": capacity, "refill_period_seconds": 60,
	}
}

// setResource sets the limits of a resource.
func setResource(resource string, limits ...any) step {
	return step{"set_resource_defaults", map[string]any{"resource": resource, "limits": limits}}
}

// setLimits sets the limits of an entity on a resource.
func setLimits(entity, resource string, limits ...any) step {
	return step{"set_limits", map[string]any{
		"entity_id": entity, "resource": resource, "limits": limits,
	}}
}

// acquire takes one unit.
func acquire(entity, resource string) step {
	return step{"acquire", map[string]any{
		"entity_id": entity, "resource": resource, "consume": map[string]any{"rpm": 1},
	}}
}

// python runs steps on the world's table, and returns the results.
func (w *world) python(steps ...step) []json.RawMessage {
	w.Helper()
	ctx, cancel := within(w.T)
	defer cancel()
	local := testkit.DynamoDB(w.T)
	spec, err := json.Marshal(map[string]string{"endpoint": local.Endpoint(), "table": w.table.Name})
	if err != nil {
		w.Fatal(err)
	}
	in, err := json.Marshal(steps)
	if err != nil {
		w.Fatal(err)
	}
	cmd := testkit.ZAE(w.T).Command(ctx, "python", "testdata/steps.py", string(spec))
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	cmd.Env = append(slices.Concat(cmd.Env, local.Environment()), "HOME="+os.TempDir())
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("python: %v\n%s", err, stderr.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n")) // the provisioner may log to stdout
	var answers []json.RawMessage
	if err := json.Unmarshal(lines[len(lines)-1], &answers); err != nil {
		w.Fatalf("python said %s: %v", out, err)
	}
	return answers
}

// acquired returns how many of n units the Python library is admitted, one at a time.
func (w *world) acquired(entity, resource string, n int) int {
	w.Helper()
	steps := make([]step, n)
	for i := range steps {
		steps[i] = acquire(entity, resource)
	}
	admitted := 0
	for _, answer := range w.python(steps...) {
		if strings.Contains(string(answer), `"allowed": true`) {
			admitted++
		}
	}
	return admitted
}

// TestDrift lets the Python library and an administrator change what a file has declared. The
// plan shows both values of each, and an apply puts them right, with the audit of what it has
// changed.
func TestDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.follow()
	a := w.open("ann")
	a.apply(first)
	w.python(
		setResource("gpt-4o", rpm(501)),
		setLimits("acme-bot", "gpt-4o", rpm(101)),
		step{"delete_limits", map[string]any{"entity_id": "acme-bot"}},
		setLimits("other", "gpt-4o", rpm(9)),
	)
	w.follow()
	other := w.open("olga")
	raised := []weir.Limit{{Name: "rpm", Capacity: 601}}
	if err := other.SetLimits(t.Context(), weir.Subject{}, raised); err != nil {
		t.Fatal(err)
	}
	if err := other.SetEntity(t.Context(), "acme-bot", "acme", false); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"update system.limits.rpm rpm:601>rpm:600",
		"update resources.gpt-4o.limits.rpm rpm:501>rpm:500",
		"create resources.gpt-4o.limits.tpm >tpm:1000/min:2000",
		"update entities.acme-bot.cascade false>true",
		"create entities.acme-bot.resources._default_.limits.rpm >rpm:10",
		"update entities.acme-bot.resources.gpt-4o.limits.rpm rpm:101>rpm:100",
	}
	p := a.plan(first)
	w.wantLines("drift", p.Changes, want...)
	unmanaged := []string{
		"create entities.other", "create entities.other.resources.gpt-4o.limits.rpm >rpm:9",
	}
	w.wantLines("unmanaged", p.Unmanaged, unmanaged...)
	w.advance(time.Second) // so that its events are after olga's
	w.wantLines("put right", a.apply(first).Changes, want...)
	p = a.plan(first)
	w.wantLines("after it", p.Changes)
	w.wantLines("still unmanaged", p.Unmanaged, unmanaged...)

	page, err := a.Audit(t.Context(), &weir.AuditQuery{At: weir.Subject{Entity: "acme-bot"}})
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, e := range page.Events[:3] {
		events = append(events, e.Action+" "+e.Resource+" "+e.Principal)
	}
	slices.Sort(events)
	if got, want := fmt.Sprint(events),
		"[entity_parent_changed  ann limits_set _default_ ann limits_set gpt-4o ann]"; got != want {
		t.Errorf("the audit of acme-bot: got %s, want %s", got, want)
	}
}

// pythonFile is the export of the table of TestPythonTable.
const pythonFile = `version: 1
namespace: default
system:
  on_unavailable: allow
  limits:
    rpm: {capacity: 600}
resources:
  gpt-4o:
    limits:
      rpm: {capacity: 500}
entities:
  acme: {}
  acme-bot:
    parent: acme
    cascade: true
    resources:
      gpt-4o:
        limits:
          rpm: {capacity: 100}
  bare:
    resources:
      _default_:
        limits:
          rpm: {capacity: 10}
`

// TestPythonTable takes over a table that the Python library has made and filled: the export has
// everything, is equal to the table, and a change of it is seen by both libraries.
func TestPythonTable(t *testing.T) {
	t.Parallel()
	w := unmadeWorld(t)
	w.python(
		step{"make_table", nil},
		step{"set_system_defaults", map[string]any{
			"limits": []any{rpm(600)}, "on_unavailable": "allow",
		}},
		setResource("gpt-4o", rpm(500)),
		step{"create_entity", map[string]any{"entity_id": "acme"}},
		step{"create_entity", map[string]any{
			"entity_id": "acme-bot", "parent_id": "acme", "cascade": true,
		}},
		setLimits("acme-bot", "gpt-4o", rpm(100)),
		step{"set_limits", map[string]any{"entity_id": "bare", "limits": []any{rpm(10)}}},
		acquire("bare", "gpt-4o"),
	)
	a := w.open("ann")
	e, err := a.ExportLimits(t.Context())
	if err != nil || len(e.Foreign) > 0 {
		t.Fatalf("export: got %+v, %v", e, err)
	}
	if e.Text != pythonFile {
		t.Fatalf("export: got\n%s\nwant\n%s", e.Text, pythonFile)
	}
	p := a.plan(e.Text)
	if len(p.Changes)+len(p.Unmanaged) > 0 || !p.Record {
		t.Errorf("the export is not what is stored: %+v", p)
	}
	w.wantLines("apply of the export", a.apply(e.Text).Changes)

	changed := strings.NewReplacer("capacity: 10}", "capacity: 4}", "capacity: 500", "capacity: 5").
		Replace(e.Text)
	p = a.plan(changed)
	w.wantLines("plan", p.Changes, "update resources.gpt-4o.limits.rpm rpm:500>rpm:5",
		"update entities.bare.resources._default_.limits.rpm rpm:10>rpm:4")
	if live := p.Changes[1].Live; live == nil || live.Count != 1 || live.Names[0] != "bare" {
		t.Errorf("reaches %+v, want bare", live)
	}
	if live := p.Changes[0].Live; live == nil || live.Count != 0 {
		t.Errorf("the change of the resource reaches %+v: bare has limits of its own", live)
	}
	a.apply(changed)
	if err := a.reserveUntilDenied("new", "gpt-4o"); err != 5 {
		t.Errorf("weir was admitted %d units, want 5", err)
	}
	if n := w.acquired("another", "gpt-4o", 8); n != 5 {
		t.Errorf("the Python library was admitted %d units, want 5", n)
	}
}

// reserveUntilDenied returns how many units are admitted, one at a time.
func (a *admin) reserveUntilDenied(entity, resource string) int {
	a.w.Helper()
	for n := range 1000 {
		r := &weir.Request{Entity: entity, Resource: resource, Costs: weir.Costs{"rpm": 1}}
		_, err := a.Reserve(a.w.Context(), r)
		if _, denied := errors.AsType[*weir.DeniedError](err); denied {
			return n
		}
		if err != nil {
			a.w.Fatal(err)
		}
	}
	return 1000
}

// TestLiveBuckets lowers limits of buckets that are in use, at each level. The new limits apply
// on weir's side and on the Python library's, which caches nothing here.
func TestLiveBuckets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.follow()
	a := w.open("ann")
	const slow = ", refill_amount: 1, refill_period: 3600}}" // what comes back does not matter
	const file = "version: 1\n" +
		"system: {limits: {rpm: {capacity: %d" + slow + "}\n" +
		"resources: {r: {limits: {rpm: {capacity: %d" + slow + "}}\n" +
		"entities:\n" +
		"  e: {resources: {r: {limits: {rpm: {capacity: %d" + slow + "}, " +
		"_default_: {limits: {rpm: {capacity: %d" + slow + "}}}\n"
	a.apply(fmt.Sprintf(file, 1000, 1000, 1000, 1000))
	places := [][2]string{{"s", "other"}, {"x", "r"}, {"e", "r"}, {"e", "other"}}
	for _, p := range places {
		a.use(p[0], p[1])
		if n := w.acquired(p[0], p[1], 2); n != 2 {
			t.Fatalf("%v: Python was admitted %d of 2", p, n)
		}
	}
	p := a.plan(fmt.Sprintf(file, 5, 6, 7, 8))
	for i, want := range []string{"s", "x", "e", "e"} {
		if live := p.Changes[i].Live; live == nil || fmt.Sprint(live.Names) != "["+want+"]" {
			t.Errorf("%s reaches %+v, want %s", p.Changes[i].Path, live, want)
		}
	}
	a.apply(fmt.Sprintf(file, 5, 6, 7, 8))
	for i, p := range places {
		most := []int{5, 6, 7, 8}[i]
		if n := w.acquired(p[0], p[1], most+5); n > most || n == 0 {
			t.Errorf("%v: the Python library was admitted %d units, want at most %d", p, n, most)
		}
		if n := a.reserveUntilDenied(p[0], p[1]); n > most {
			t.Errorf("%v: weir was admitted %d units, want at most %d", p, n, most)
		}
	}
}

// follow makes the world's clock that of the machine, which the Python library reads.
func (w *world) follow() { w.ahead.Store(int64(time.Since(start))) }

// TestForeignSettings exports a table that has what a limits file cannot say.
func TestForeignSettings(t *testing.T) {
	t.Parallel()
	w := unmadeWorld(t)
	soft := rpm(5)
	soft["soft"] = true
	scheduled := rpm(6)
	scheduled["schedule"] = []any{map[string]any{"cron": "* 9-17 * * *", "tz": "UTC", "scale": 0.5}}
	window := map[string]any{
		"name": "day", "capacity": 7, "refill_amount": 0, "refill_period_seconds": 60,
		"reset_after": 3600,
	}
	w.python(
		step{"make_table", nil},
		setResource("plain", rpm(1)),
		setResource("soft", soft),
		setResource("scheduled", scheduled),
		setResource("window", rpm(2), window),
		step{"disable_resource", map[string]any{"resource": "off"}},
		step{"bypass_resource", map[string]any{"resource": "bypassed"}},
		step{"set_limits", map[string]any{
			"entity_id": "e", "resource": "r", "limits": []any{rpm(3)}, "cascade": false,
		}},
	)
	a := w.open("ann")
	e, err := a.ExportLimits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range e.Foreign {
		got = append(got, n.Path+" "+n.Attribute)
	}
	want := []string{
		"resources.bypassed disabled", "resources.off disabled",
		"resources.scheduled.limits.rpm l_rpm_sched", "resources.soft.limits.rpm l_rpm_soft",
		"resources.window.limits.day w_day", "entities.e.resources.r cascade",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list is %q, want %q", got, want)
	}
	for _, one := range []string{"plain", "window:", "e:"} {
		if !strings.Contains(e.Text, one) {
			t.Errorf("the file lacks %q:\n%s", one, e.Text)
		}
	}
	if strings.Contains(e.Text, "soft:") {
		t.Errorf("the file has a limit that it cannot say:\n%s", e.Text)
	}
	// A file that sets the limits of such a place says what is lost.
	p := a.plan("version: 1\nresources:\n" +
		"  soft: {limits: {rpm: {capacity: 5}}}\n  off: {limits: {rpm: {capacity: 5}}}\n")
	if len(p.Lost) != 1 || p.Lost[0].Path != "resources.soft.limits.rpm" {
		t.Errorf("lost: got %+v, want the soft limit", p.Lost)
	}
}

// TestPythonProvisioner refuses to apply where the Python library's provisioner manages limits,
// and takes over what it manages if asked.
func TestPythonProvisioner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.python(step{"provision", map[string]any{"manifest": map[string]any{
		"namespace": "default",
		"system":    map[string]any{"limits": map[string]any{"rpm": map[string]any{"capacity": 600}}},
		"resources": map[string]any{
			"a": map[string]any{"limits": map[string]any{"rpm": map[string]any{"capacity": 1}}},
			"b": map[string]any{"limits": map[string]any{"rpm": map[string]any{"capacity": 2}}},
		},
		"entities": map[string]any{"e": map[string]any{"resources": map[string]any{
			"a": map[string]any{"limits": map[string]any{"rpm": map[string]any{"capacity": 3}}},
		}}},
	}}})
	a := w.open("ann")
	const file = "version: 1\nsystem: {limits: {rpm: {capacity: 600}}}\n" +
		"resources: {a: {limits: {rpm: {capacity: 1}}}}\n"
	want := []string{
		"delete resources.b.limits.rpm rpm:2>", "delete entities.e.resources.a.limits.rpm rpm:3>",
	}
	p := a.plan(file)
	w.wantLines("plan", p.Changes, want...)
	_, err := a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: file, Yes: true})
	for _, part := range []string{"Python library's provisioner", "2 resources (a, b)", "--adopt"} {
		if !errors.Is(err, weir.Conflict) || !strings.Contains(err.Error(), part) {
			t.Errorf("apply: got %v, want a conflict with %q", err, part)
		}
	}
	w.wantLines("after the refusal", a.plan(file).Changes, want...)
	p, err = a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: file, Yes: true, Adopt: true})
	if err != nil || p.Failed > 0 {
		t.Fatalf("adopt: got %+v, %v", p, err)
	}
	if p := a.plan(file); !p.Nothing() || len(p.Refusals) > 0 {
		t.Errorf("after the adoption: %+v", p)
	}
	// The library's provisioner goes on: weir sees that the record is no longer its own.
	w.python(step{"provision", map[string]any{"manifest": map[string]any{
		"namespace": "default", "resources": map[string]any{
			"a": map[string]any{"limits": map[string]any{"rpm": map[string]any{"capacity": 9}}},
		},
	}}})
	if p := a.plan(file); len(p.Refusals) != 1 || p.Refusals[0].Allowed != "adopt" {
		t.Errorf("after another apply of the library: %+v", p.Refusals)
	}
}
