package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// settlementTable returns the rows of the table in docs/server.md, with the header first.
func settlementTable(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "upstream":
			rows = [][]string{cells}
		case rows != nil && !strings.HasPrefix(line, "|"):
			return rows
		case rows != nil && cells[0] != "---":
			rows = append(rows, cells)
		}
	}
	t.Fatal("docs/server.md has no such table")
	return nil
}

// settlementOptions returns the options by the header of their column.
func settlementOptions() map[string]httpapi.TransportOptions {
	always := func(s httpapi.Settlement) func(httpapi.Answer) httpapi.Settlement {
		return func(httpapi.Answer) httpapi.Settlement { return s }
	}
	return map[string]httpapi.TransportOptions{
		"by default":              {},
		"with `Actuals`":          {Actuals: tpmOfLine},
		"`Requests: rpm`":         {Requests: []string{"rpm"}},
		"always `SettleReserved`": {Settle: always(httpapi.SettleReserved), Actuals: tpmOfLine},
		"always `SettleGiveBack`": {Settle: always(httpapi.SettleGiveBack), Actuals: tpmOfLine},
	}
}

// tpmOfLine reads the used tokens from a body, if they have arrived.
func tpmOfLine(_ *http.Response, tail []byte) ([]weir.Costs, bool) {
	var n int64
	if _, err := fmt.Sscanf(string(tail), "used %d\n", &n); err != nil {
		return nil, false
	}
	return []weir.Costs{{"tpm": n}}, true
}

// settlementUpstreams returns the upstreams by the name of their row.
func settlementUpstreams() map[string]http.HandlerFunc {
	status := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "used 30\n")
		}
	}
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { cut(w, text) }
	}
	const header = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
	return map[string]http.HandlerFunc{
		"429":                   status(429),
		"400":                   status(400),
		"500":                   status(500),
		"200":                   status(200),
		"no connection":         nil,
		"cut before the status": raw(""),
		"cut after the header, before the first byte": raw(header),
		"cut after some bytes":                        raw(header + "used 30\n"),
		"the caller leaves before the status": func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		},
		"the caller leaves after some bytes": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "used 30\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	}
}

// TestSettlementTable plays every cell of the table in docs/server.md through a proxy, behind the
// middleware and with the transport.
func TestSettlementTable(t *testing.T) {
	t.Parallel()
	rows, options, upstreams := settlementTable(t), settlementOptions(), settlementUpstreams()
	if len(rows[0]) != len(options)+1 || len(rows) != len(upstreams)+1 {
		t.Fatalf("got %d columns and %d rows, want %d and %d", len(rows[0]), len(rows),
			len(options)+1, len(upstreams)+1)
	}
	for _, row := range rows[1:] {
		upstream, ok := upstreams[row[0]]
		if !ok {
			t.Fatalf("no upstream for the row %q", row[0])
		}
		for i, column := range rows[0][1:] {
			o, ok := options[column]
			if !ok {
				t.Fatalf("no options for the column %q", column)
			}
			transport, middleware, both := strings.Cut(row[i+1], "; middleware: ")
			if !both {
				middleware = transport
			}
			t.Run(row[0]+"/"+column+"/transport", func(t *testing.T) {
				t.Parallel()
				playSettlement(t, &o, upstream, row[0], false).expect(t, transport)
			})
			if column != "with `Actuals`" { // the middleware has none
				t.Run(row[0]+"/"+column+"/middleware", func(t *testing.T) {
					t.Parallel()
					playSettlement(t, &o, upstream, row[0], true).expect(t, middleware)
				})
			}
		}
	}
}

// settled is what is in use after an exchange.
type settled map[string]int64

func (s settled) expect(t *testing.T, cell string) {
	t.Helper()
	want, ok := map[string]settled{
		"nothing":     {"rpm": 0, "tpm": 0, "parallel": 0},
		"the request": {"rpm": 1, "tpm": 0, "parallel": 0},
		"the report":  {"rpm": 1, "tpm": 30, "parallel": 0},
		"all":         {"rpm": 1, "tpm": 100, "parallel": 0},
	}[cell]
	if !ok {
		t.Fatalf("the cell says %q", cell)
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("charged %v, want %v (%s)", s, want, cell)
	}
}

// playSettlement sends one request through a proxy to an upstream, and returns what is in use when
// the proxy is done. A nil upstream cannot be reached.
func playSettlement(
	t *testing.T, o *httpapi.TransportOptions, upstream http.HandlerFunc, row string, inMiddleware bool,
) settled {
	t.Helper()
	l := settlementLimiter(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	arrived := make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the caller leaves
		close(arrived)
		upstream(w, r)
	}))
	defer back.Close()
	at, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(*http.Request) (*weir.Request, error) {
		return &weir.Request{Entity: "a", Resource: "m", Costs: weir.Costs{"rpm": 1, "tpm": 100}}, nil
	}
	failed := func(_ *http.Request, err error) { t.Errorf("not settled: %v", err) }
	base := &http.Transport{}
	if upstream == nil {
		base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errGone }
	}
	defer base.CloseIdleConnections()
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.Transport, proxy.ErrorLog = base, log.New(io.Discard, "", 0)
	var handler http.Handler = proxy
	if inMiddleware {
		handler = httpapi.Middleware(l, ask, &httpapi.MiddlewareOptions{
			Settle: o.Settle, Requests: o.Requests, SettleFailed: failed,
		})(proxy)
	} else {
		with := *o
		with.Base, with.SettleFailed = base, failed
		proxy.Transport = httpapi.NewTransport(l, ask, &with)
	}
	front := httptest.NewServer(handler)
	if row == "the caller leaves before the status" {
		go func() { <-arrived; leave() }()
	}
	settlementCall(ctx, t, front.URL, row == "the caller leaves after some bytes", leave)
	front.Close() // waits for the proxy
	<-l.settled   // if the caller has left, the transport settles in the background
	return l.used(t, "a")
}

// settlementCall sends the request and reads the answer, or leaves after its first line.
func settlementCall(ctx context.Context, t *testing.T, to string, leaves bool, leave func()) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if leaves {
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Error(err)
		}
		leave()
		return
	}
	_, _ = io.ReadAll(resp.Body)
}

// settlingLimiter is a limiter that tells when a lease is settled.
type settlingLimiter struct {
	*limiter.Limiter

	settled chan struct{} // receives an element for each lease
}

func (l *settlingLimiter) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	lease, err := l.Limiter.Reserve(ctx, r)
	if err != nil {
		return nil, err
	}
	return lease.Bind(l), nil
}

func (l *settlingLimiter) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	defer func() { l.settled <- struct{}{} }()
	return l.Limiter.Complete(ctx, id, actuals)
}

func (l *settlingLimiter) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	defer func() { l.settled <- struct{}{} }()
	return l.Limiter.Cancel(ctx, id)
}

func settlementLimiter(t *testing.T) *settlingLimiter {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "rpm", Kind: weir.Window, Capacity: 10, Window: time.Hour},
		{Name: "tpm", Kind: weir.Window, Capacity: 1_000, Window: time.Hour},
		{Name: "parallel", Kind: weir.Concurrency, Capacity: 2, Timeout: time.Minute},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &settlingLimiter{l, make(chan struct{}, 2)}
}

// used returns what is in use of an entity.
func (l *settlingLimiter) used(t *testing.T, entity string) settled {
	t.Helper()
	statuses, err := l.Status(t.Context(), entity, "m")
	if err != nil {
		t.Fatal(err)
	}
	used := settled{}
	for _, s := range statuses {
		used[s.Limit] = s.Capacity - s.Available
	}
	return used
}

// TestSettleSees checks what Settle is told of an answer.
func TestSettleSees(t *testing.T) {
	t.Parallel()
	for row, want := range map[string][2]httpapi.Answer{ // with the transport, behind the middleware
		"429":                   {{Status: 429, Bytes: 8}, {Status: 429, Bytes: 8}},
		"200":                   {{Status: 200, Bytes: 8}, {Status: 200, Bytes: 8}},
		"cut before the status": {{Cut: true}, {Status: 502}},
		"cut after the header, before the first byte": {
			{Status: 200, Cut: true}, {Status: 200, Cut: true},
		},
		"cut after some bytes": {
			{Status: 200, Bytes: 8, Cut: true}, {Status: 200, Bytes: 8, Cut: true},
		},
		"the caller leaves before the status": {
			{Cut: true, Left: true}, {Status: 502, Cut: true, Left: true},
		},
		"the caller leaves after some bytes": {
			{Status: 200, Bytes: 8, Cut: true, Left: true}, {Status: 200, Bytes: 8, Cut: true, Left: true},
		},
	} {
		for i, inMiddleware := range []bool{false, true} {
			var got []httpapi.Answer
			o := &httpapi.TransportOptions{Settle: func(a httpapi.Answer) httpapi.Settlement {
				got = append(got, a)
				return httpapi.SettleByStatus(a)
			}}
			playSettlement(t, o, settlementUpstreams()[row], row, inMiddleware)
			if !slices.Equal(got, []httpapi.Answer{want[i]}) {
				t.Errorf("%s, middleware %v: got %+v, want %+v once", row, inMiddleware, got, want[i])
			}
		}
	}
}

// TestSettlementOfCharges checks that Requests stay charged in requests of each form.
func TestSettlementOfCharges(t *testing.T) {
	t.Parallel()
	costs := weir.Costs{"rpm": 1, "tpm": 100}
	charges := []weir.Charge{{Entity: "a", Resource: "m", Costs: costs}, {Entity: "b", Resource: "m", Costs: costs}}
	for name, test := range map[string]struct {
		asked    *weir.Request
		requests []string
		want     [2]string // of a and b
	}{
		"one":     {&weir.Request{Charges: charges[:1]}, []string{"rpm"}, [2]string{"the request", "nothing"}},
		"several": {&weir.Request{Charges: charges}, []string{"rpm"}, [2]string{"the request", "the request"}},
		"keyed": {
			&weir.Request{Charges: charges, Keyed: true}, []string{"rpm"},
			[2]string{"the request", "the request"},
		},
		"names that were not asked for": {
			&weir.Request{Charges: charges}, []string{"rph"}, [2]string{"nothing", "nothing"},
		},
	} {
		l := settlementLimiter(t)
		w := httptest.NewRecorder()
		httpapi.Middleware(l, func(*http.Request) (*weir.Request, error) { return test.asked, nil },
			&httpapi.MiddlewareOptions{
				Requests:     test.requests,
				SettleFailed: func(_ *http.Request, err error) { t.Errorf("%s: %v", name, err) },
			})(http.NotFoundHandler()).ServeHTTP(w, chat(t, ""))
		for i, entity := range []string{"a", "b"} {
			l.used(t, entity).expect(t, test.want[i])
		}
	}
}

// TestMiddlewareWriter checks that a handler behind the middleware can do what the writer of the
// server can.
func TestMiddlewareWriter(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]http.HandlerFunc{
		"writes":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"reads from": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("hello")) },
		"serves files": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader("hello"))
		},
		"flushes": func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, "hello")
		},
		"hijacks": func(w http.ResponseWriter, _ *http.Request) {
			var conn net.Conn
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
			_ = conn.Close()
		},
	} {
		a := newCountingLimiter(t)
		seen := make(chan httpapi.Answer, 1)
		server := httptest.NewServer(httpapi.Middleware(a, askFour, &httpapi.MiddlewareOptions{
			Settle: func(answer httpapi.Answer) httpapi.Settlement {
				seen <- answer
				return httpapi.SettleReserved
			},
		})(next))
		answer, err := get(t.Context(), server.Client(), server.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(answer)
		_ = answer.Close()
		if err != nil || string(body) != "hello" {
			t.Errorf("%s: got %q, %v", name, body, err)
		}
		server.Close()
		want := httpapi.Answer{Status: 200, Bytes: 5}
		if name == "hijacks" {
			want = httpapi.Answer{Status: 101} // the rest is not seen
		}
		if got := <-seen; got != want {
			t.Errorf("%s: Settle got %+v, want %+v", name, got, want)
		}
	}
}
