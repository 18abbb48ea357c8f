package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// python runs the Python library on the table, and decodes what it prints.
func (w *world) python(do string, answer any) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	local := testkit.DynamoDB(w)
	spec, err := json.Marshal(map[string]any{
		"do": do, "endpoint": local.Endpoint(), "table": w.table.Name, "namespace": schema.DefaultNamespace,
		"now_ms": w.clock.now().UnixMilli(),
	})
	if err != nil {
		w.Fatal(err)
	}
	cmd := testkit.ZAE(w).Command(ctx, "python", "testdata/python.py", string(spec))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(slices.Concat(cmd.Env, local.Environment()), "HOME="+os.TempDir())
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("python: %v\n%s", err, stderr.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n")) // its aggregator logs to stdout too
	if err := json.Unmarshal(lines[len(lines)-1], answer); err != nil {
		w.Fatalf("python: %v: %s", err, out)
	}
}

// TestPythonLoad checks that what the Python library uses is counted too, beside weir's own use, and
// that the library's reader shows the same hours, days and months.
func TestPythonLoad(t *testing.T) {
	t.Parallel()
	testkit.ZAE(t)
	w := newWorld(t)
	w.limits("rpm", "tpm")
	o := &load{rng: rand.New(rand.NewPCG(soak.Seed(t), 0))}
	for i := range 2 {
		w.at(start.Add(time.Duration(i) * 12 * time.Minute))
		o.run(w, 10)
		var used map[string]int64
		w.python("load", &used)
		for key, n := range used {
			entity, limit, _ := strings.Cut(key, " ")
			w.add(entity, limit, n)
		}
		o.run(w, 10)
	}
	w.count()
	w.judge(hours(w.usage()), hours(w.tally))
	var shown map[string]int64
	w.python("usage", &shown)
	w.judge(only(shown, ""), hours(w.tally))
	w.at(start.Add(26 * time.Minute))
	w.count()
	w.python("usage", &shown)
	end := start.Add(10 * time.Minute)
	w.judge(only(shown, ""), totals(w.tally, end, end))
}

// TestPythonAggregator checks that the Python library's aggregator counts what weir writes: all but
// the writes that create an item, which it leaves out.
func TestPythonAggregator(t *testing.T) {
	t.Parallel()
	testkit.ZAE(t)
	w := newWorld(t)
	w.limits("rpm", "tpm")
	o := &load{rng: rand.New(rand.NewPCG(soak.Seed(t), 0))}
	o.run(w, 30)
	var answer struct {
		Errors    []string
		Snapshots int
		Created   map[string]int64
	}
	w.python("process", &answer)
	if len(answer.Errors) > 0 || answer.Snapshots == 0 {
		t.Errorf("got %+v", answer)
	}
	got, want := make(map[string]int64), make(map[string]int64)
	for key, milli := range answer.Created {
		got[key] += milli / 1000
	}
	for key, n := range w.usage() {
		part := strings.Fields(key)
		got[part[2]+" "+part[3]] += n
	}
	for key, n := range w.tally {
		part := strings.Fields(key)
		want[part[2]+" "+part[3]] += n
	}
	w.judge(got, want)
}
