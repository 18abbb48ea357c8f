package function_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/testkit"
)

// runtime is the interface by which Lambda gives events to a program and takes its answers.
type runtime struct {
	events  chan []byte
	answers chan answer
}

type answer struct{ path, body string }

func (r *runtime) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	if in.Method == http.MethodGet {
		select {
		case event := <-r.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "id")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", "4102444800000")
			w.Write(event) //nolint:errcheck // The program would not answer.
		case <-in.Context().Done():
		}
		return
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		body = []byte(err.Error())
	}
	w.WriteHeader(http.StatusAccepted)
	r.answers <- answer{in.URL.Path, string(body)}
}

// TestProgram checks the program itself under Lambda's runtime interface: what it counts, its answer
// to a batch, and that it goes on after an event that it refuses.
func TestProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "bootstrap")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/weir-aggregator")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := newWorld(t)
	w.use(40, "acme", "globex")
	if _, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true}); err != nil {
		t.Fatal(err)
	}
	want := w.usage()
	w.forget()

	r := &runtime{make(chan []byte), make(chan answer)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close) // after the program has ended, which has a request open
	local := testkit.DynamoDB(t)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(local.Environment(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"),
		"WEIR_STORE=dynamodb://"+w.table.Name+"?region=eu-central-1&endpoint="+local.Endpoint())
	p := testkit.Start(t, cmd)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	send := func(event []byte) answer {
		select {
		case r.events <- event:
		case <-ctx.Done():
		}
		select {
		case a := <-r.answers:
			return a
		case <-ctx.Done():
			return answer{}
		}
	}
	a := send([]byte(`{}`))
	if !strings.HasSuffix(a.path, "/error") || !strings.Contains(a.body, "neither a batch") {
		t.Errorf("got %+v, want an error", a)
	}
	shards, records := w.record()
	for _, shard := range shards {
		event, err := json.Marshal(map[string]any{"Records": records[shard], "shardId": shard})
		if err != nil {
			t.Fatal(err)
		}
		a := send(event)
		if !strings.HasSuffix(a.path, "/response") ||
			!strings.HasPrefix(a.body, `{"state":{"writes":`) || !strings.HasSuffix(a.body, `"batchItemFailures":[]}`) {
			t.Errorf("got %+v, want an answer without failures", a)
		}
	}
	w.equal(w.usage(), want)
	if out := p.Output(); !strings.Contains(out, `"CloudWatchMetrics"`) {
		t.Errorf("the program wrote %s, want metrics", out)
	}
}
