package loadtest_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestClientUnknownOutcomes checks that no lease is left at the end of a run if a server makes some leases
// and settles some without an answer.
func TestClientUnknownOutcomes(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "parallel", Kind: weir.Concurrency, Capacity: 1000, Timeout: time.Hour},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := httphandler.New(lim, nil)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := requests.Add(1); r.Method == http.MethodPost && r.URL.Path != "/v1/cancel" && n%7 == 0 {
			handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the connection breaks
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	client, err := httpapi.NewClient(server.URL, &httpapi.ClientOptions{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // It only drops connections.
	r, err := loadtest.New(client, mixOf(t, "acme-{1..3} llm"), &loadtest.Options{
		Duration: 500 * time.Millisecond, Rate: 400, Concurrency: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost, unsettled := report.Count(loadtest.Reserve, loadtest.Failed), report.Count(loadtest.Complete, loadtest.Failed)
	if report.Planned != 200 || report.Started != 200 || report.Left != 0 || lost == 0 || unsettled == 0 ||
		report.Count(loadtest.Reserve, loadtest.Admitted) != 200-lost {
		t.Errorf("got %+v, want 200 calls, some of them without an answer, and nothing left", report)
	}
	for _, who := range []string{"acme-1", "acme-2", "acme-3"} {
		status, err := lim.Status(t.Context(), who, "llm")
		if err != nil || len(status) != 1 || status[0].Available != 1000 {
			t.Errorf("%s: got %+v and %v, want every slot free", who, status, err)
		}
	}
	t.Logf("%d reservations and %d completions without an answer, all found again", lost, unsettled)
}
