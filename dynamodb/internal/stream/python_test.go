package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// python runs the Python library on the table, and decodes what it prints.
func (w *world) python(do string, answer any) {
	w.Helper()
	w.pythonAfter(do, 0, answer)
}

// pythonAfter does so without the first records of the stream.
func (w *world) pythonAfter(do string, skip int, answer any) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	local := testkit.DynamoDB(w)
	spec, err := json.Marshal(map[string]any{
		"do": do, "endpoint": local.Endpoint(), "table": w.table.Name, "namespace": schema.DefaultNamespace,
		"now_ms": w.clock.now().UnixMilli(), "skip": skip,
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
	created := make(map[string]int64)
	w.pythonCounts(0, created)
	w.judgeSums(created)
}

// pythonCounts lets the Python library's aggregator count the stream without its first records, and
// returns how many records the stream has. It adds to created the units of the writes that this
// aggregator leaves out, because they create an item.
func (w *world) pythonCounts(skip int, created map[string]int64) (read int) {
	w.Helper()
	var answer struct {
		Errors    []string
		Snapshots int
		Read      int
		Created   map[string]int64
	}
	w.pythonAfter("process", skip, &answer)
	if len(answer.Errors) > 0 || answer.Snapshots == 0 {
		w.Errorf("got %+v", answer)
	}
	for key, milli := range answer.Created {
		created[key] += milli / 1000
	}
	return answer.Read
}

// judgeSums compares the tally with the usage of all hours and what the Python library's aggregator
// has left out. That aggregator books by the time of the last refill, so the hours are not compared.
func (w *world) judgeSums(created map[string]int64) {
	w.Helper()
	got, want := maps.Clone(created), make(map[string]int64)
	for key, n := range w.usage() {
		if part := strings.Fields(key); part[0] == string(weir.Hourly) {
			got[part[2]+" "+part[3]] += n
		}
	}
	for key, n := range w.tally {
		part := strings.Fields(key)
		want[part[2]+" "+part[3]] += n
	}
	w.judge(got, want)
}

// TestHandOver lets the Python library's aggregator count, then weir's, which takes the table over,
// and then the library's again, to which it is handed back: all that was used counts once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	testkit.ZAE(t)
	w := newWorld(t)
	w.limits("rpm", "tpm")
	table := &tables.Table{Client: w.c}
	if err := table.SetFunction(t.Context(), "0.17.0"); err != nil {
		t.Fatal(err)
	}
	created := make(map[string]int64)
	o := &load{rng: rand.New(rand.NewPCG(soak.Seed(t), 0))}
	o.run(w, 20)
	w.pythonCounts(0, created)
	w.judgeSums(created)

	w.at(start.Add(5 * time.Minute))
	o.run(w, 20)
	waits := 0
	w.count(func(o *stream.Options) {
		o.TakeOver = true
		o.Now = func() time.Time { return w.clock.now().Add(time.Duration(waits) * 10 * time.Second) }
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			waits++
			return ctx.Err()
		}
	})
	if err := table.SetFunction(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	w.at(start.Add(8 * time.Minute))
	o.run(w, 20)
	w.count()
	w.judgeSums(created)

	var before struct{ Read int }
	w.python("count", &before)
	if err := errors.Join(table.SetFunction(t.Context(), "0.17.0"), table.EndCounting(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.at(start.Add(12 * time.Minute))
	o.run(w, 20)
	if read := w.pythonCounts(before.Read, created); read <= before.Read {
		t.Errorf("the stream has %d records, and had %d before the last load", read, before.Read)
	}
	w.judgeSums(created)
	if err := w.reader().Run(t.Context()); !errors.Is(err, weir.Conflict) {
		t.Errorf("weir counts again: got %v, want a conflict", err)
	}
}
