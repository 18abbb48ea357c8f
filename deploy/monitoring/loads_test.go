package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
	"github.com/weir-limiter/weir/store"
)

type promSample = promql.Sample

// systemLimits are limits that every store has.
const systemLimits = `"rpm": {"capacity": 1000000}, "tpm": {"capacity": 100000000}, ` +
	`"few": {"capacity": 1, "refill_amount": 1, "refill_period": 86400}`

// newLoad makes a load: each minute five reservations of 100 tokens of which 50 are used, two that
// are denied, and one that names an unknown limit.
func newLoad(t *testing.T, at time.Time, g *target) *load {
	t.Helper()
	g.reserve(1, "acme", "few", 200) // uses it up
	l := &load{scene: newScene(t, at, g), server: g}
	l.minute = func() {
		for range 5 {
			status, body := g.post("/v1/reserve",
				`{"entity":"acme","resource":"llm","costs":{"rpm":1,"tpm":100}}`)
			var lease struct {
				ID string `json:"lease_id"`
			}
			if err := json.Unmarshal(body, &lease); err != nil || status != 200 {
				t.Fatalf("reserve: got %d %s, %v", status, body, err)
			}
			status, body = g.post("/v1/complete",
				fmt.Sprintf(`{"lease_id":%q,"actuals":{"rpm":1,"tpm":50}}`, lease.ID))
			if status != 200 {
				t.Fatalf("complete: got %d %s", status, body)
			}
		}
		g.reserve(2, "acme", "few", 429)
		g.reserve(1, "acme", "unknown", 404)
	}
	return l
}

// patient has the options of a limiter that waits for a store on a busy machine.
func patient() *limiter.Options { return &limiter.Options{StoreTimeout: patience} }

// memoryLoad serves a store in memory with a snapshot file, a limits file and a certificate.
func memoryLoad(t *testing.T) *load {
	t.Helper()
	s, err := memory.OpenSnapshot(filepath.Join(t.TempDir(), "state"), nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	cert, key := certificate(t, now.Add(-time.Hour), now.Add(90*24*time.Hour))
	g := serve(t, s, `{"version": 1, "system": {"limits": {`+systemLimits+
		`, "trial": {"capacity": 1, "enforce": false}}}}`, server.Options{
		CertFile: write(t, "cert.pem", cert), KeyFile: write(t, "key.pem", key),
	})
	g.client.Transport = trusting(t, cert)
	l := newLoad(t, now, g)
	usual := l.minute
	l.minute = func() {
		usual()
		if status, body := g.post("/v1/reserve", `{"entity":"acme","resource":"other","costs":{"trial":1}}`); status != 200 {
			t.Fatalf("trial: got %d %s", status, body)
		}
	}
	return l
}

// dynamoDBLoad serves a table of DynamoDB Local.
func dynamoDBLoad(t *testing.T) *load {
	t.Helper()
	local := testkit.DynamoDB(t)
	at := "dynamodb://monitoring-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) +
		"?region=us-east-1&endpoint=" + url.QueryEscape(local.Endpoint())
	table, err := store.Table(at)
	if err != nil {
		t.Fatal(err)
	}
	table.NoStream = true
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s, err := store.Open(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := serve(t, s, "", server.Options{Limiter: patient()})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, g.server.URL()+"/v1/admin/system/limits",
		strings.NewReader(`{"limits": {`+systemLimits+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if status, body := g.do(r); status != 200 {
		t.Fatalf("limits: got %d %s", status, body)
	}
	return newLoad(t, begin(), g)
}
