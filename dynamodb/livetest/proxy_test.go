package livetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxyFault is what the proxy does to a request.
type proxyFault string

// The faults of the proxy. A request without a fault is sent to the next server, and its answer is
// returned.
const (
	noFault    proxyFault = ""
	cutBefore  proxyFault = "cut before"  // the connection is closed and nothing is sent
	cutAfter   proxyFault = "cut after"   // the connection is closed instead of the answer
	cutLate    proxyFault = "cut late"    // the connection is closed, and the request is sent later
	slow       proxyFault = "slow"        // the request is sent later
	slowAnswer proxyFault = "slow answer" // the answer is returned later
	together   proxyFault = "together"    // another server gets the request at the same time
	again      proxyFault = "again"       // another server gets the request later
)

// proxyFaults are the faults, each as likely as any other.
var proxyFaults = []proxyFault{cutBefore, cutAfter, cutLate, slow, slowAnswer, together, again}

const (
	// faultyOneIn is n if one in n requests has a fault.
	faultyOneIn = 4
	// mostDelay is the longest delay of a request or an answer.
	mostDelay = 300 * time.Millisecond
)

// exchange is a request that the proxy sent to a server, and the answer.
type exchange struct {
	verb, lease  string
	server, life int // which server, and how often it had been started before
	fault        proxyFault
	began, ended int64 // Unix microseconds
	// status is the status of the answer; 0 if there was none, because the server was killed.
	status int
	// doubt is set if the answer does not say whether all writes of the request were made.
	doubt bool
	// inVain is set for a reservation that the server did not make, although it may have taken units:
	// another server had made it already, or one of several items had too little.
	inVain bool
}

func (e *exchange) String() string {
	return fmt.Sprintf("%d to %d: server %d.%d: %s %s: %d %s",
		e.began, e.ended, e.server, e.life, e.verb, e.fault, e.status, e.lease)
}

// proxy sends requests to servers in turn, whether or not they run. By a seed it cuts connections,
// delays requests and answers, and sends requests to two servers. It never hangs up on a server, so
// a request without an answer was under way when its server was killed.
type proxy struct {
	servers []atomic.Pointer[target]
	client  *http.Client
	next    atomic.Uint64
	sending sync.WaitGroup
	// cascades is set if a reservation charges several items.
	cascades bool

	mu        sync.Mutex
	random    *rand.Rand
	exchanges []exchange
	kills     map[[2]int]int64 // when a server was killed in a life, in Unix microseconds
}

// target is the address of a running server.
type target struct {
	url  string
	life int
}

// startProxy starts a proxy before a number of servers, none of which runs.
func startProxy(t testing.TB, servers int, seed uint64) (p *proxy, url string) {
	t.Helper()
	p = &proxy{
		servers: make([]atomic.Pointer[target], servers), random: rand.New(rand.NewPCG(seed, 1)),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
	front := httptest.NewServer(p)
	t.Cleanup(func() {
		front.Close()
		p.client.CloseIdleConnections()
	})
	return p, front.URL
}

// draw returns the fault of the next request, and its delay.
func (p *proxy) draw() (proxyFault, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.random.IntN(faultyOneIn) > 0 {
		return noFault, 0
	}
	return proxyFaults[p.random.IntN(len(proxyFaults))], time.Duration(p.random.Int64N(int64(mostDelay)))
}

// ServeHTTP serves one request of a caller.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has left
	}
	q := &proxied{
		proxy: p, ctx: context.WithoutCancel(r.Context()), method: r.Method, path: r.URL.Path, body: body,
	}
	fault, delay := p.draw()
	q.fault = fault
	server := int(p.next.Add(1)) % len(p.servers)
	other := (server + 1) % len(p.servers)
	switch fault {
	case cutBefore:
		panic(http.ErrAbortHandler)
	case cutLate:
		p.sending.Go(func() { q.sendAfter(delay, server) })
		panic(http.ErrAbortHandler)
	case slow:
		wait(delay)
	case together:
		p.sending.Go(func() { q.sendAfter(0, other) })
	case again:
		p.sending.Go(func() { q.sendAfter(delay, other) })
	}
	got := q.send(server)
	switch fault {
	case cutAfter:
		panic(http.ErrAbortHandler)
	case slowAnswer:
		wait(delay)
	}
	got.write(w)
}

// wait waits for a delay of the proxy.
func wait(d time.Duration) { <-time.After(d) }

// proxied is a caller's request.
type proxied struct {
	*proxy

	ctx    context.Context
	method string
	path   string
	body   []byte
	fault  proxyFault
}

// answer is the answer of a server, or of the proxy if the server does not run.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// write returns the answer to the caller.
func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		if name != "Content-Length" && name != "Connection" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the caller may have left
}

// sendAfter sends the request after a delay, and drops the answer.
func (q *proxied) sendAfter(delay time.Duration, server int) {
	wait(delay)
	q.send(server)
}

// send sends the request to a server, and records it unless it was certainly not sent.
func (q *proxied) send(server int) *answer {
	badGateway := &answer{status: http.StatusBadGateway, body: []byte("the server did not answer")}
	to := q.servers[server].Load()
	if to == nil {
		return badGateway
	}
	e := exchange{
		verb: path.Base(q.path), lease: leaseIn(q.body), server: server, life: to.life, fault: q.fault,
		began: micros(),
	}
	got, err := q.exchange(to.url)
	e.ended = micros()
	if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "dial" {
		return badGateway
	}
	e.doubt = err != nil || got.inDoubt()
	if err == nil {
		e.status = got.status
		e.inVain = e.verb == "reserve" && (e.status == http.StatusConflict ||
			e.status == http.StatusTooManyRequests && q.cascades ||
			bytes.Contains(got.body, []byte(`"replay":true`)))
	}
	q.mu.Lock()
	q.exchanges = append(q.exchanges, e)
	q.mu.Unlock()
	if err != nil {
		return badGateway
	}
	return got
}

// exchange sends the request to a URL and reads the whole answer.
func (q *proxied) exchange(url string) (*answer, error) {
	r, err := http.NewRequestWithContext(q.ctx, q.method, url+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := q.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	return &answer{got.StatusCode, got.Header, body}, err
}

// inDoubt reports whether the answer says that a write of the request may or may not have been
// made.
func (a *answer) inDoubt() bool {
	return a.status == http.StatusServiceUnavailable || bytes.Contains(a.body, []byte(`"refund_in_doubt":true`))
}

// leaseIn returns the lease ID in the body of a request.
func leaseIn(body []byte) string {
	var b struct {
		LeaseID string `json:"lease_id"`
	}
	_ = json.Unmarshal(body, &b) // the server says what is wrong with it
	return b.LeaseID
}

// trace returns the requests of a lease in the order in which they were sent.
func (p *proxy) trace(lease string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(p.exchanges)
	slices.SortFunc(all, func(a, b exchange) int { return int(a.began - b.began) })
	var b strings.Builder
	for i := range all {
		if all[i].lease == lease {
			fmt.Fprintf(&b, "\n  %s", &all[i])
		}
	}
	return b.String()
}

// stopped records that a server was killed.
func (p *proxy) stopped(server, life int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kills == nil {
		p.kills = make(map[[2]int]int64)
	}
	p.kills[[2]int{server, life}] = micros()
}

// backWithin is the longest time from the answer to a reservation that was in vain until the server
// has given back what it took. It does that with its next write.
const backWithin = 100 * time.Millisecond

// inDoubt returns the requests whose writes may have been made in part, by lease, and how many of
// them were under way when a server was killed.
func (p *proxy) inDoubt() (byLease map[string][]exchange, killed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byLease = make(map[string][]exchange)
	for _, e := range p.exchanges {
		at, ended := p.kills[[2]int{e.server, e.life}]
		late := ended && e.inVain && e.ended > at-backWithin.Microseconds()
		if e.status == 0 {
			killed++
		}
		if e.doubt || late {
			byLease[e.lease] = append(byLease[e.lease], e)
		}
	}
	return byLease, killed
}
