package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// tableServer is a server in this process on a separate table, with a clock that only the test
// moves and a switch that disconnects the server from the table.
type tableServer struct {
	url    string
	client *http.Client
	table  *dynamodb.Table
	ahead  atomic.Int64 // nanoseconds by which the clock is ahead
	cut    atomic.Bool
	probes atomic.Int64 // reads of single items that the server has sent
}

// startTableServer serves the default namespace, which has one limit, of a million requests a
// minute.
func startTableServer(t *testing.T, lim *limiter.Options) *tableServer {
	t.Helper()
	local := testkit.DynamoDB(t)
	config, endpoint := local.Config(), local.Endpoint()
	s := &tableServer{
		client: &http.Client{Timeout: time.Minute},
		table: &dynamodb.Table{
			Name: "cli." + rand.Text()[:16], Options: &dynamodb.Options{Config: &config, Endpoint: endpoint},
		},
	}
	if _, err := s.table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	now := func() time.Time { return began.Add(time.Duration(s.ahead.Load())) }
	faults := testkit.NewFaults(&testkit.FaultOptions{Rules: []testkit.FaultRule{{
		Fault: testkit.NoConnection, PerMille: 1000,
		Match: func(r *testkit.FaultRequest) bool {
			if r.Operation == "GetItem" {
				s.probes.Add(1)
			}
			return s.cut.Load()
		},
	}}})
	store, err := dynamodb.Open(t.Context(), s.table.Name, &dynamodb.Options{
		Config: &config, Endpoint: endpoint, Now: now, WriteTimeout: time.Minute, Principal: "tester",
		HTTP: &http.Client{Transport: undated{faults}},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := weir.Subject{}
	limits := []weir.Limit{{
		Name: "rpm", Kind: weir.Bucket, Capacity: 1_000_000, RefillAmount: 1_000_000,
		RefillPeriod: time.Minute,
	}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		_ = s.table.Delete(ctx) // one test has deleted it already
	})
	if err := store.WriteLimits(t.Context(), now(), at, limits); err != nil {
		t.Fatal(err)
	}
	options := limiter.Options{StoreTimeout: time.Minute}
	if lim != nil {
		options = *lim
	}
	options.Now = now
	srv, err := server.New(t.Context(), store, &server.Options{Limiter: &options, Listen: "127.0.0.1:0",
		Bounds: server.Bounds{ShutdownDelay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	s.url = srv.URL()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return s
}

// undated removes the date from answers, so that the table's clock does not correct the test's.
type undated struct{ base http.RoundTripper }

func (u undated) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := u.base.RoundTrip(r)
	if err == nil {
		answer.Header.Del("Date")
	}
	return answer, err
}

func (s *tableServer) advance(d time.Duration) { s.ahead.Add(int64(d)) }

// send sends a request to the server, and returns the status and the answer.
func (s *tableServer) send(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// wantReady checks the status and the text of /readyz.
func (s *tableServer) wantReady(t *testing.T, when string, status int, says string) {
	t.Helper()
	got, body := s.send(t, http.MethodGet, "/readyz", "")
	if got != status || !strings.Contains(body, says) {
		t.Errorf("%s: /readyz: got %d %s, want %d with %q", when, got, body, status, says)
	}
}

const askRequest = `{"entity":"acme","resource":"llm","costs":{"rpm":1}}`

// reserve asks for one request, and returns the status, the lease and the answer.
func (s *tableServer) reserve(t *testing.T) (status int, lease, answer string) {
	t.Helper()
	status, answer = s.send(t, http.MethodPost, "/v1/reserve", askRequest)
	var body struct {
		LeaseID string `json:"lease_id"`
	}
	if err := json.Unmarshal([]byte(answer), &body); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return status, body.LeaseID, answer
}

// TestReadyzAsksTheTable checks that a server on DynamoDB is ready only while its table answers
// and has its namespace, and that any number of probes are one read in ten seconds.
func TestReadyzAsksTheTable(t *testing.T) {
	t.Parallel()
	s := startTableServer(t, nil)
	const every = 10 * time.Second
	s.wantReady(t, "at first", http.StatusOK, "ok")

	s.advance(every)
	before := s.probes.Load()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { s.wantReady(t, "many at once", http.StatusOK, "ok") })
	}
	wg.Wait()
	s.advance(every - time.Millisecond)
	s.wantReady(t, "within ten seconds", http.StatusOK, "ok")
	if n := s.probes.Load() - before; n != 1 {
		t.Errorf("51 probes within ten seconds: got %d reads, want 1", n)
	}
	_, text := s.send(t, http.MethodGet, "/metrics", "")
	if !strings.Contains(text, "weir_store_probes_total 1\n") {
		t.Errorf("the metrics do not count one probe")
	}

	s.cut.Store(true)
	s.advance(every)
	s.wantReady(t, "cut off", http.StatusServiceUnavailable, "the table did not answer")
	s.cut.Store(false)
	s.wantReady(t, "reconnected, within ten seconds", http.StatusServiceUnavailable, "the table did not answer")
	s.advance(every)
	s.wantReady(t, "reconnected", http.StatusOK, "ok")

	n, err := s.table.DeleteNamespace(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	s.advance(every)
	s.wantReady(t, "namespace deleted", http.StatusServiceUnavailable, "weir namespace recover "+n.ID)
	if _, err := s.table.RecoverNamespace(t.Context(), n.ID); err != nil {
		t.Fatal(err)
	}
	s.advance(every)
	s.wantReady(t, "namespace recovered", http.StatusOK, "ok")

	if err := s.table.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.advance(every)
	s.wantReady(t, "table deleted", http.StatusServiceUnavailable, "the table does not exist")
}

// TestNamespaceDeletedUnderServer checks that a server whose namespace was deleted refuses once
// its cached configuration has expired, whatever the policy for an unavailable store; that what
// was reserved before can still be settled; and that it admits again once the namespace is
// recovered.
func TestNamespaceDeletedUnderServer(t *testing.T) {
	t.Parallel()
	for _, policy := range []weir.Policy{weir.Block, weir.Allow} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			const cached = time.Minute
			s := startTableServer(t, &limiter.Options{
				CacheTTL: cached, OnUnavailable: policy, StoreTimeout: time.Minute,
			})
			status, lease, answer := s.reserve(t)
			if status != http.StatusOK {
				t.Fatalf("at first: got %d %s", status, answer)
			}
			_, overrun, _ := s.reserve(t)
			n, err := s.table.DeleteNamespace(t.Context(), "default")
			if err != nil {
				t.Fatal(err)
			}
			s.advance(cached + time.Second)
			s.wantRefused(t, "deleted", "weir namespace recover "+n.ID)
			status, body := s.send(t, http.MethodPost, "/v1/cancel", `{"lease_id":"`+lease+`"}`)
			if status != http.StatusOK {
				t.Errorf("cancel: got %d %s", status, body)
			}
			if status, body := s.send(t, http.MethodPost, "/v1/complete",
				`{"lease_id":"`+overrun+`","actuals":{"rpm":5}}`); status != http.StatusOK {
				t.Errorf("complete: got %d %s", status, body)
			}
			if _, err := s.table.RecoverNamespace(t.Context(), n.ID); err != nil {
				t.Fatal(err)
			}
			if status, _, answer := s.reserve(t); status != http.StatusOK {
				t.Errorf("recovered: got %d %s", status, answer)
			}

			if _, err := s.table.DeleteNamespace(t.Context(), "default"); err != nil {
				t.Fatal(err)
			}
			other, _, err := s.table.RegisterNamespace(t.Context(), "default")
			if err != nil {
				t.Fatal(err)
			}
			s.advance(cached + time.Second)
			s.wantRefused(t, "registered again", "registered again as "+other.ID)
		})
	}
}

// wantRefused checks that reservations are refused because the namespace is gone.
func (s *tableServer) wantRefused(t *testing.T, when, says string) {
	t.Helper()
	for range 1000 { // the first ones are judged while the configuration is read
		if status, _, _ := s.reserve(t); status != http.StatusOK {
			break
		}
	}
	for range 3 {
		status, _, answer := s.reserve(t)
		if status != http.StatusNotFound || !strings.Contains(answer, says) {
			t.Errorf("%s: got %d %s, want 404 with %q", when, status, answer, says)
		}
	}
}
