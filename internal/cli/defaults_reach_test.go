package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// TestChangedDefaultsReachEveryProcess changes and removes the limits of the system, of a resource
// and of entities' _default_ with the command line, the library and the Python library. It counts
// the units that processes admit after the cache time: processes that were busy meanwhile, that
// were idle, that have just started, and that make one call and end. It prints one table, and wants
// each of its figures between 99 % and 100 % of what the changed definition admits. A plain run
// changes each place in each way once; a long one has every combination with caches and with the
// program that makes the change.
func TestChangedDefaultsReachEveryProcess(t *testing.T) {
	t.Parallel()
	local := testkit.DynamoDB(t)
	cfg := local.Config()
	table := &dynamodb.Table{
		Name: "weir-" + rand.Text()[:16], NoStream: true,
		Options: &dynamodb.Options{Config: &cfg, Endpoint: local.Endpoint(), Principal: "test"},
	}
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := table.Delete(ctx); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	var rows []string
	t.Run("each", func(t *testing.T) {
		for p, place := range []string{"system", "resource", weir.DefaultResource} {
			for c, change := range []string{"lowered", "raised", "removed"} {
				for i, cache := range []time.Duration{0, time.Second, time.Minute} {
					for j, by := range []string{"command line", "library", "Python"} {
						// A plain run combines each cache, and each program that makes the change,
						// with each place and each change.
						if !soak.On() && (i != (p+c)%3 || j != (p+2*c)%3) {
							continue
						}
						w := &reachWorld{
							local: local, table: table, place: place, change: change, by: by, cache: cache,
						}
						t.Run(w.name(), func(t *testing.T) {
							t.Parallel()
							row := w.play(t)
							mu.Lock()
							defer mu.Unlock()
							rows = append(rows, row)
						})
					}
				}
			}
		}
	})
	slices.Sort(rows)
	t.Logf("units admitted after the cache time, of those that the changed definition admits:\n"+
		"| limits of | change | by | cache | busy | idle | started since | one-shot |\n"+
		"|---|---|---|---|--:|--:|--:|--:|\n%s", strings.Join(rows, ""))
}

// reachWorld is one change on a namespace of its own.
type reachWorld struct {
	local             *testkit.DynamoDBLocal
	table             *dynamodb.Table
	place, change, by string
	cache             time.Duration
	space             string

	mu  sync.Mutex
	now time.Time
}

const reachResource = "gpt-4o"

// reachEntities are the entities of the processes, in the order of the table.
var reachEntities = []string{"busy", "idle", "started", "oneshot"}

func (w *reachWorld) name() string {
	return fmt.Sprintf("%s %s by the %s, cache %v", w.place, w.change, w.by, w.cache)
}

func (w *reachWorld) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *reachWorld) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// limits returns the limits before and after the change, and the units that the changed ones admit
// in the end.
func (w *reachWorld) limits() (before, after []weir.Limit, want int64) {
	bucket := func(capacity int64, period time.Duration) []weir.Limit {
		return []weir.Limit{{Name: "n", Capacity: capacity, RefillAmount: capacity, RefillPeriod: period}}
	}
	const day = 24 * time.Hour
	switch w.change {
	case "lowered":
		return bucket(1000, day), bucket(100, day), 100
	case "raised":
		return bucket(100, day), bucket(1000, 10*time.Second), 1000
	}
	return bucket(1000, day), nil, 0
}

// open starts a process.
func (w *reachWorld) open(t *testing.T) *limiter.Limiter {
	t.Helper()
	o := *w.table.Options
	o.Namespace, o.WriteTimeout = w.space, 30*time.Second
	store, err := dynamodb.Open(t.Context(), w.table.Name, &o)
	if err != nil {
		t.Fatal(err)
	}
	ttl := w.cache
	if ttl == 0 {
		ttl = -1
	}
	l, err := limiter.New(store, &limiter.Options{Now: w.clock, CacheTTL: ttl, StoreTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// ask reserves and returns the units admitted. It fails the test at any error other than a denial
// or the one that the changed limits give.
func (w *reachWorld) ask(t *testing.T, l *limiter.Limiter, entity string, units int64) int64 {
	t.Helper()
	_, err := l.Reserve(t.Context(), &weir.Request{
		Entity: entity, Resource: reachResource, Costs: weir.Costs{"n": units},
	})
	if err == nil {
		return units
	}
	_, denied := errors.AsType[*weir.DeniedError](err)
	removed := w.change == "removed" && errors.Is(err, weir.NoLimits)
	if !denied && !removed && !errors.Is(err, weir.NeverSatisfiable) {
		t.Fatalf("%s: %d units: %v", entity, units, err)
	}
	return 0
}

// drain reserves until nothing is admitted any more.
func (w *reachWorld) drain(t *testing.T, entity string, open func() *limiter.Limiter) int64 {
	t.Helper()
	var sum int64
	for _, units := range []int64{50, 1} {
		for sum < 3000 {
			n := w.ask(t, open(), entity, units)
			if n == 0 {
				break
			}
			sum += n
		}
	}
	return sum
}

// play makes the change and returns its line of the table.
func (w *reachWorld) play(t *testing.T) string {
	t.Helper()
	w.space, w.now = "n"+strings.ToLower(rand.Text()[:16]), time.Now()
	if _, _, err := w.table.RegisterNamespace(t.Context(), w.space); err != nil {
		t.Fatal(err)
	}
	before, after, want := w.limits()
	w.byLibrary(t, before)
	busy, idle := w.open(t), w.open(t)
	for _, entity := range reachEntities { // so that the items exist, with units in use
		w.ask(t, busy, entity, 60)
	}
	w.ask(t, idle, "idle", 1)
	switch w.by {
	case "command line":
		w.byCommand(t, after)
	case "library":
		w.byLibrary(t, after)
	default:
		w.byPython(t, after)
	}

	// A request that only the old limits admit, or the first one under the new limits.
	probe := int64(1)
	if w.change == "lowered" {
		probe = 500
	}
	started := w.open(t)
	oneShot := func() *limiter.Limiter { return w.open(t) }
	sums := []int64{0, 0, w.ask(t, started, "started", probe), w.ask(t, oneShot(), "oneshot", probe)}
	var meanwhile int64 // by the old limits, or by the new ones if another process has written them to the item
	for range 4 {
		if w.cache > 0 {
			meanwhile += w.ask(t, busy, "busy", 1)
		}
		w.advance(w.cache / 4)
	}
	w.advance(time.Millisecond)
	sums[0], sums[1] = w.ask(t, busy, "busy", probe), w.ask(t, idle, "idle", probe)
	if w.change == "raised" { // a bucket keeps its balance, and fills at the new rate
		sums = make([]int64, len(sums))
		w.advance(10 * time.Second)
	}
	for i, open := range []func() *limiter.Limiter{
		func() *limiter.Limiter { return busy }, func() *limiter.Limiter { return idle },
		func() *limiter.Limiter { return started }, oneShot,
	} {
		sums[i] += w.drain(t, reachEntities[i], open)
	}
	var line strings.Builder
	fmt.Fprintf(&line, "| %s | %s | %s | %v |", w.place, w.change, w.by, w.cache)
	for i, sum := range sums {
		least := want
		if i == 0 && w.change == "lowered" {
			least -= meanwhile
		}
		if sum > want || sum*100 < least*99 {
			t.Errorf("%s: admitted %d of %d", reachEntities[i], sum, want)
		}
		fmt.Fprintf(&line, " %d of %d |", sum, want)
	}
	return line.String() + "\n"
}

// byLibrary changes the limits with the library, as another process.
func (w *reachWorld) byLibrary(t *testing.T, limits []weir.Limit) {
	t.Helper()
	l := w.open(t)
	at := weir.Subject{}
	if w.place == "resource" {
		at.Resource = reachResource
	}
	if w.place != weir.DefaultResource {
		if err := l.SetLimits(t.Context(), at, limits); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, entity := range reachEntities {
		at := weir.Subject{Entity: entity, Resource: weir.DefaultResource}
		if err := l.SetLimits(t.Context(), at, limits); err != nil {
			t.Fatal(err)
		}
	}
}

// byCommand changes the limits with weir.
func (w *reachWorld) byCommand(t *testing.T, limits []weir.Limit) {
	t.Helper()
	verb := "delete-limits"
	var text []string
	for _, l := range limits {
		verb = "set-limits"
		period := l.RefillPeriod / time.Second
		text = append(text, fmt.Sprintf("%s:%d/%ds:%d", l.Name, l.RefillAmount, period, l.Capacity))
	}
	commands := [][]string{{"system", verb}}
	switch w.place {
	case "resource":
		commands = [][]string{{"resource", verb, reachResource}}
	case weir.DefaultResource:
		commands = nil
		for _, entity := range reachEntities {
			commands = append(commands, []string{"entity", verb, entity})
		}
	}
	url := fmt.Sprintf("dynamodb://%s?region=us-east-1&endpoint=%s&namespace=%s",
		w.table.Name, w.local.Endpoint(), w.space)
	for _, command := range commands {
		var out, errs bytes.Buffer
		args := slices.Concat(command, text, []string{"--store", url})
		s := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
		if code := Run(t.Context(), args, s, func(string) string { return "" }); code != 0 {
			t.Fatalf("weir %s: exit %d: %s", strings.Join(args, " "), code, &errs)
		}
	}
}

// byPython changes the limits with the Python library.
func (w *reachWorld) byPython(t *testing.T, limits []weir.Limit) {
	t.Helper()
	var definitions []map[string]any
	for _, l := range limits {
		definitions = append(definitions, map[string]any{
			"name": l.Name, "capacity": l.Capacity, "refill_amount": l.RefillAmount,
			"refill_period_seconds": int64(l.RefillPeriod / time.Second),
		})
	}
	var steps [][2]any
	step := func(set, remove string, arguments map[string]any) {
		if definitions == nil {
			steps = append(steps, [2]any{remove, arguments})
			return
		}
		arguments["limits"] = definitions
		steps = append(steps, [2]any{set, arguments})
	}
	switch w.place {
	case "system":
		step("set_system_defaults", "delete_system_defaults", map[string]any{})
	case "resource":
		step("set_resource_defaults", "delete_resource_defaults", map[string]any{"resource": reachResource})
	default:
		for _, entity := range reachEntities {
			step("set_limits", "delete_limits", map[string]any{"entity_id": entity})
		}
	}
	spec, err := json.Marshal(map[string]string{
		"endpoint": w.local.Endpoint(), "table": w.table.Name, "namespace": w.space,
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := testkit.ZAE(t).Command(ctx, "python", "../../dynamodb/testdata/config_steps.py", string(spec))
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &errs
	cmd.Env = append(slices.Concat(cmd.Env, w.local.Environment()), "HOME="+os.TempDir())
	out, err := cmd.Output()
	if err != nil || bytes.Contains(out, []byte(`"error"`)) {
		t.Fatalf("python: %v: %s\n%s", err, out, &errs)
	}
}
