package dynamodb

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestPythonDoublingCreatesCapacity checks what the docs say about buckets that the Python library
// splits: each new shard begins with a whole share that is not taken from the others. If the
// library changes that, the docs have to follow.
func TestPythonDoublingCreatesCapacity(t *testing.T) {
	soak.Only(t)
	t.Parallel()
	s := withPython(t)
	const capacity int64 = 6400 // above the 1,000 writes after which a bucket is split
	at := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	s.mustSet(t, at, weir.Limit{
		Name: "n", Kind: weir.Bucket, Capacity: capacity, RefillAmount: 1, RefillPeriod: 24 * time.Hour,
	})
	local := testkit.DynamoDB(t)
	spec, err := json.Marshal(map[string]any{
		"endpoint": local.Endpoint(), "table": s.client.TableName, "namespace": s.options.Namespace,
		"entity": at.Entity, "resource": at.Resource, "limit": "n", "callers": 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := testkit.ZAE(t).Command(ctx, "python", "testdata/drain.py", string(spec))
	cmd.Env, cmd.Stderr = append(slices.Concat(cmd.Env, local.Environment()), "HOME="+os.TempDir()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python: %v", err)
	}
	var answer struct {
		Admitted int64 `json:"admitted"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("python said %s: %v", out, err)
	}
	t.Logf("the Python library alone admitted %d of %d", answer.Admitted, capacity)
	if answer.Admitted <= capacity {
		t.Errorf("the Python library alone admitted %d of %d: docs/dynamodb.md says that it admits more",
			answer.Admitted, capacity)
	}
}
