//go:build !race

// Under the race detector, sync.Pool drops elements at random, so allocations cannot be counted.

package httphandler_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// hotWriter receives an answer, without a network.
type hotWriter struct {
	header http.Header
	status int
	body   []byte
}

func (w *hotWriter) Header() http.Header { return w.header }

func (w *hotWriter) WriteHeader(status int) { w.status = status }

func (w *hotWriter) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return len(p), nil
}

// hotRequest is a request that is sent repeatedly, with the writer of its answer.
type hotRequest struct {
	r    *http.Request
	body *bytes.Reader
	w    hotWriter
}

func newHotRequest(b testing.TB, path string) *hotRequest {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	h := &hotRequest{r: r, body: bytes.NewReader(nil), w: hotWriter{header: http.Header{}}}
	r.Body = io.NopCloser(h.body)
	return h
}

// send sends the request and returns the body of the answer, which the next call overwrites.
func (q *hotRequest) send(b testing.TB, h http.Handler, body []byte, want int) []byte {
	b.Helper()
	q.body.Reset(body)
	q.r.ContentLength = int64(len(body))
	clear(q.w.header)
	q.w.status, q.w.body = 0, q.w.body[:0]
	h.ServeHTTP(&q.w, q.r)
	if q.w.status != want {
		b.Fatalf("status is %d: %s", q.w.status, q.w.body)
	}
	return q.w.body
}

// cannedService returns fixed answers, so that a benchmark measures only the handler.
type cannedService struct {
	serviceFunc

	lease   weir.Lease
	receipt weir.Receipt
	denial  error
	applied []weir.Limit
}

func newCannedService() *cannedService {
	at := time.UnixMilli(1_750_248_000_000)
	limits := []weir.LimitStatus{
		{Limit: "rpm", Capacity: 600, Available: 599, Requested: 1},
		{Limit: "tpm", Capacity: 100_000, Available: 99_500, Requested: 500},
	}
	for i := range limits {
		limits[i].Entity, limits[i].Resource = "acme", "openai/gpt-4o"
		limits[i].Kind, limits[i].Level = weir.Bucket, weir.LevelResource
	}
	id := weir.NewLeaseID(at)
	return &cannedService{
		lease:   weir.Lease{ID: id, ReservedAt: at, Expires: at.Add(time.Hour), Limits: limits},
		receipt: weir.Receipt{LeaseID: id, At: at},
		applied: []weir.Limit{
			{Name: "rpm", Kind: weir.Bucket, Capacity: 600, RefillAmount: 600, RefillPeriod: time.Minute},
			{Name: "tpm", Kind: weir.Bucket, Capacity: 1e5, RefillAmount: 1e5, RefillPeriod: time.Minute},
		},
		denial: &weir.DeniedError{
			LeaseID: id, RetryAfter: 1500 * time.Millisecond, Limits: []weir.LimitStatus{{
				Entity: "acme", Resource: "openai/gpt-4o", Limit: "rpm", Kind: weir.Bucket,
				Level: weir.LevelResource, Capacity: 600, Requested: 1, Exceeded: true,
				RetryAfter: 1500 * time.Millisecond,
			}},
		},
	}
}

func (s *cannedService) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	if r.Costs["rpm"] > 1 {
		return nil, s.denial
	}
	return &s.lease, nil
}

func (s *cannedService) Complete(context.Context, weir.LeaseID, []weir.Costs) (*weir.Receipt, error) {
	return &s.receipt, nil
}

// Applied returns the limits for the RateLimit headers.
func (s *cannedService) Applied(weir.Subject) []weir.Limit { return s.applied }

const (
	hotReserve = `{"entity":"acme","resource":"openai/gpt-4o","costs":{"rpm":1,"tpm":500}}`
	hotDenied  = `{"entity":"acme","resource":"openai/gpt-4o","costs":{"rpm":2,"tpm":500}}`
)

// BenchmarkWire measures the handler without a network and without a limiter.
func BenchmarkWire(b *testing.B) {
	s := newCannedService()
	h := httphandler.New(s, nil)
	complete := `{"lease_id":"` + s.lease.ID.String() + `","actuals":{"tpm":321}}`
	for _, c := range []struct {
		name, path, body string
		want             int
	}{
		{"reserve", "/v1/reserve", hotReserve, http.StatusOK},
		{"denied", "/v1/reserve", hotDenied, http.StatusTooManyRequests},
		{"complete", "/v1/complete", complete, http.StatusOK},
	} {
		b.Run(c.name, func(b *testing.B) {
			q, body := newHotRequest(b, c.path), []byte(c.body)
			b.ReportAllocs()
			for b.Loop() {
				q.send(b, h, body, c.want)
			}
		})
	}
}

// hotPair is a reserve and its complete, at a handler over the memory store and without a network.
type hotPair struct {
	h                 http.Handler
	reserve, complete *hotRequest
	asked, settled    []byte
}

func newHotPair(t testing.TB, o *httphandler.Options) *hotPair {
	t.Helper()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	const plenty = 1 << 40
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: plenty, RefillAmount: plenty, RefillPeriod: time.Minute},
		{Name: "tpm", Kind: weir.Bucket, Capacity: plenty, RefillAmount: plenty, RefillPeriod: time.Minute},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &hotPair{
		h: httphandler.New(l, o), reserve: newHotRequest(t, "/v1/reserve"), complete: newHotRequest(t, "/v1/complete"),
		asked:   []byte(hotReserve),
		settled: []byte(`{"lease_id":"` + string(make([]byte, 26)) + `","actuals":{"tpm":321}}`),
	}
}

func (p *hotPair) send(t testing.TB) {
	t.Helper()
	said := p.reserve.send(t, p.h, p.asked, http.StatusOK)
	_, after, _ := bytes.Cut(said, []byte(`"lease_id":"`))
	copy(p.settled[len(`{"lease_id":"`):], after[:26])
	p.complete.send(t, p.h, p.settled, http.StatusOK)
}

// hotCallers returns a pair for each way to identify callers.
func hotCallers(t testing.TB) map[string]*hotPair {
	t.Helper()
	const bearer = "token-of-a-caller-0123456789"
	tokens := newHotPair(t, &httphandler.Options{Authenticate: func(given string) (httphandler.Identity, bool) {
		return httphandler.Identity{Name: "checkout", Role: httphandler.RoleCall}, given == bearer
	}})
	connections := newHotPair(t, nil)
	for _, r := range []**http.Request{&tokens.reserve.r, &tokens.complete.r} {
		(*r).Header.Set("Authorization", "Bearer "+bearer)
	}
	for _, r := range []**http.Request{&connections.reserve.r, &connections.complete.r} {
		*r = (*r).WithContext(httphandler.ConnContext((*r).Context(), remoteConn{from: "192.0.2.7:1234"}))
	}
	return map[string]*hotPair{"tokens": tokens, "connections": connections}
}

// BenchmarkHandler measures a reserve and its complete, for each way to identify callers.
func BenchmarkHandler(b *testing.B) {
	for name, p := range hotCallers(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.send(b)
			}
		})
	}
}

// TestHandlerAllocations bounds the allocations of a reserve and its complete together.
func TestHandlerAllocations(t *testing.T) {
	for name, most := range map[string]float64{"tokens": 18, "connections": 16} {
		p := hotCallers(t)[name]
		if got := testing.AllocsPerRun(500, func() { p.send(t) }); got > most {
			t.Errorf("%s: got %v allocations, want at most %v", name, got, most)
		}
	}
}
