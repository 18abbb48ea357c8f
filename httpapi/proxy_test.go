package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// callHeader counts the client's calls, so that the proxy can tell an attempt of the call under way
// from one of a call that has been given up.
const callHeader = "Test-Call"

// attemptHeader counts the client's attempts, so that the proxy can make the client give one up.
const attemptHeader = "Test-Attempt"

// proxy is a proxy between a client and a server that delays, repeats, drops and changes requests
// and answers, as networks and real proxies do.
type proxy struct {
	server *httptest.Server
	target string
	sender *http.Transport

	// givenUp has, by the number of an attempt, the function that makes the client give it up: a
	// func().
	givenUp sync.Map

	mu     sync.Mutex
	rng    *rand.Rand
	counts map[string]int // the number of faults by name
	late   []sending      // answered with 200; the proxy may send them again later

	// call is the client's call that may reach the server. The forward method holds a read lock, so
	// that a call ends only when all its requests have arrived.
	flow sync.RWMutex
	call int
}

// sending is a request that can be sent again.
type sending struct {
	method, uri string
	header      http.Header
	body        []byte
}

// received is a complete answer.
type received struct {
	status int
	header http.Header
	body   []byte
}

// proxiedRequest is a request in the proxy.
type proxiedRequest struct {
	*proxy

	w http.ResponseWriter
	r *http.Request
	s *sending
}

// on passes the request on to the server.
func (p *proxiedRequest) on() *received { return p.forward(p.s) }

// proxyFault is an action of the proxy in place of passing on a request and its answer.
type proxyFault struct {
	name   string
	weight int // in a thousand
	do     func(p *proxiedRequest)
}

func proxyFaults() []proxyFault {
	faults := []proxyFault{
		{"cut before the request was passed on", 50, func(p *proxiedRequest) { cut(p.w, "") }},
		{"cut after the request was passed on", 50, func(p *proxiedRequest) {
			p.on()
			cut(p.w, "")
		}},
		{"cut in the middle of the answer", 50, func(p *proxiedRequest) {
			a := p.on()
			text := a.raw()
			cut(p.w, text[:len(text)-len(a.body)+p.below(len(a.body))])
		}},
		{"cut in the headers of the answer", 20, func(p *proxiedRequest) {
			a := p.on()
			text := a.raw()
			cut(p.w, text[:p.below(len(text)-len(a.body))])
		}},
		{"passed on twice", 40, func(p *proxiedRequest) {
			p.on()
			p.on().write(p.w)
		}},
		{"passed on twice at once", 30, func(p *proxiedRequest) {
			var other sync.WaitGroup
			other.Go(func() { p.on() })
			p.on().write(p.w)
			other.Wait()
		}},
		{"passed on after the sender had given up", 2, func(p *proxiedRequest) {
			giveUp, _ := p.givenUp.Load(p.r.Header.Get(attemptHeader))
			giveUp.(func())()
			<-p.r.Context().Done()
			p.on()
		}},
		{"an older request passed on once more", 40, func(p *proxiedRequest) {
			p.again()
			p.on().write(p.w)
		}},
	}
	return append(faults, answerFaults()...)
}

// answerFaults returns the faults that answer with something else, with or without passing on the
// request.
func answerFaults() []proxyFault {
	html := func(status int, location string) func(*received) bool {
		return func(a *received) bool {
			a.status = status
			a.header = http.Header{"Content-Type": {"text/html"}}
			if location != "" {
				a.header.Set("Location", location)
			}
			a.body = []byte("<html>" + http.StatusText(status) + "</html>")
			return true
		}
	}
	// as changes the status of an answer to that of another outcome, if it differs.
	as := func(is, status int, media string) func(*received) bool {
		return func(a *received) bool {
			was := a.status
			a.status = status
			a.header.Set("Content-Type", media)
			return (was == http.StatusOK) == (is == http.StatusOK)
		}
	}
	var faults []proxyFault
	for name, change := range map[string]func(*received) bool{
		"502 of a proxy":         html(502, ""),
		"503 of a proxy":         html(503, ""),
		"504 of a proxy":         html(504, ""),
		"429 of a proxy":         html(429, ""),
		"404 of a proxy":         html(404, ""),
		"page with 200":          html(200, ""),
		"redirect":               html(307, "/elsewhere"),
		"success said to be 500": as(200, 500, "application/json"),
		"success said to be 429": as(200, 429, "application/problem+json"),
		"success said to be 409": as(200, 409, "application/problem+json"),
		"failure said to be 200": as(400, 200, "application/json"),
		"failure said to be 503": as(400, 503, "application/problem+json"),
		"answer cut to its half": func(a *received) bool {
			a.body = a.body[:len(a.body)/2]
			return true
		},
		"answer emptied": func(a *received) bool {
			a.body = []byte("{}")
			return true
		},
		"answer of another lease": func(a *received) bool {
			before := a.body
			a.body = bytes.ReplaceAll(before, []byte(`"lease_id":"0`), []byte(`"lease_id":"1`))
			return !bytes.Equal(before, a.body)
		},
	} {
		faults = append(faults, proxyFault{name, 10, func(p *proxiedRequest) {
			a := p.on()
			a.header.Del("Retry-After") // a client that cannot parse the denial would wait for this time
			if !change(a) {
				p.count("(did not fit, cut instead)")
				cut(p.w, "")
				return
			}
			a.write(p.w)
		}})
	}
	slices.SortFunc(faults, func(a, b proxyFault) int { return strings.Compare(a.name, b.name) })
	return faults
}

func newProxy(target string, seed uint64, counts map[string]int) *proxy {
	p := &proxy{
		target: target, sender: &http.Transport{MaxIdleConnsPerHost: 8}, counts: counts,
		rng: rand.New(rand.NewPCG(seed, 1)),
	}
	faults := proxyFaults()
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, faults)
	}))
	return p
}

func (p *proxy) close() {
	p.server.Close()
	p.sender.CloseIdleConnections()
}

// over ends the current call. The proxy does not pass on later requests of it.
func (p *proxy) over() {
	p.flow.Lock()
	defer p.flow.Unlock()
	p.call++
}

// current returns the number of the current call.
func (p *proxy) current() string {
	p.flow.RLock()
	defer p.flow.RUnlock()
	return strconv.Itoa(p.call)
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request, faults []proxyFault) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.count("request that did not come whole")
		return
	}
	p.flow.RLock()
	defer p.flow.RUnlock()
	if r.Header.Get(callHeader) != strconv.Itoa(p.call) {
		p.count("request of a call that was over")
		return
	}
	s := &sending{r.Method, r.URL.RequestURI(), r.Header, body}
	n := p.below(1000)
	for _, f := range faults {
		if n -= f.weight; n < 0 {
			p.count(f.name)
			f.do(&proxiedRequest{p, w, r, s})
			return
		}
	}
	p.count("passed on and back")
	a := p.forward(s)
	if a.status == http.StatusOK && s.method == http.MethodPost && s.uri != "/v1/extend" {
		p.mu.Lock()
		p.late = append(p.late, *s)
		p.mu.Unlock()
	}
	a.write(w)
}

// again repeats a request that was answered some time ago. The repeat must change nothing, so it is
// never an extend, which renews the lease at any time.
func (p *proxy) again() {
	p.mu.Lock()
	var s *sending
	if len(p.late) > 0 {
		s = &p.late[p.rng.IntN(len(p.late))]
	}
	p.mu.Unlock()
	if s != nil {
		p.forward(s)
	}
}

// forward passes a request on to the server.
func (p *proxy) forward(s *sending) *received {
	ctx := context.Background() // the request reaches the server even if the client hangs up
	req, err := http.NewRequestWithContext(ctx, s.method, p.target+s.uri, bytes.NewReader(s.body))
	if err != nil {
		panic(err)
	}
	req.Header = s.header.Clone()
	resp, err := p.sender.RoundTrip(req)
	if err != nil {
		panic(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	return &received{resp.StatusCode, resp.Header, body}
}

func (p *proxy) below(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(n)
}

func (p *proxy) count(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[name]++
}

func (a *received) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// raw returns the bytes of the answer on the wire.
func (a *received) raw() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	_ = a.header.Write(&b)
	fmt.Fprintf(&b, "\r\n%s", a.body)
	return b.String()
}

// cut sends a part of an answer and closes the connection.
func cut(w http.ResponseWriter, text string) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = buffer.WriteString(text)
	_ = buffer.Flush()
	_ = conn.Close()
}
