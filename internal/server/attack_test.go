package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

const (
	otherToken = "other-token-0123456789"
	// attackEnv is the variable with the task of a child process, as JSON.
	attackEnv = "WEIR_TEST_ATTACK"
	// attackRate is how many connections an attacker opens in a second, some 8 Mbit/s of packets.
	// Without a bound an attacker would take all processor time of the machine, which the test
	// shares with it.
	attackRate = 2000
)

// attackChild is the task of a process: to attack a server, or to make the calls of a good caller.
type attackChild struct {
	Does string // "hold", "fill" or "good"
	URL  string

	// Connections to hold, and the text to send on each.
	Connections int
	Text        string
	Rate        int

	// Lease IDs that fill the memory, how far ahead of the clock, and whether they are cancelled.
	IDs     int
	Ahead   time.Duration
	Cancels bool

	// Calls of the good caller, or requests for a path.
	Calls int
	Path  string
}

// start starts the process.
func (c attackChild) start(t *testing.T) *testkit.Process {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestAttackChild$")
	cmd.Env = append(os.Environ(), attackEnv+"="+string(text))
	return testkit.Start(t, cmd)
}

// waitChange waits for a line of the process and returns its first group.
func await(t *testing.T, p *testkit.Process, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	got, err := p.WaitLine(ctx, regexp.MustCompile(line))
	if err != nil {
		t.Fatal(err)
	}
	return got[len(got)-1]
}

// TestAttackChild is a process of [TestGoodCallerUnderAttack].
func TestAttackChild(t *testing.T) {
	text := os.Getenv(attackEnv)
	if text == "" {
		t.Skip("a process of TestGoodCallerUnderAttack")
	}
	var c attackChild
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	switch c.Does {
	case "hold":
		c.hold(t.Context())
	case "fill":
		c.fill(t)
	default:
		fmt.Println("good:", c.good(t))
	}
}

// hold opens connections and opens them again when they are closed, until the process is ended.
func (c *attackChild) hold(ctx context.Context) {
	var open atomic.Int64
	turns := time.NewTicker(10 * time.Millisecond)
	due := make(chan struct{}, c.Connections)
	for range c.Connections {
		go func() {
			for range due {
				var d net.Dialer
				conn, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(c.URL, "http://"))
				if err != nil {
					continue
				}
				if _, err := io.WriteString(conn, c.Text); err == nil && open.Add(1) == int64(c.Connections) {
					fmt.Println("ready")
				}
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
		}()
	}
	for range turns.C {
		for range c.Rate / 100 {
			select {
			case due <- struct{}{}:
			default: // all are open
			}
		}
	}
}

// fill reserves with IDs ahead of the clock until it has made their number, and then continues
// slowly until the process is ended. The requests are pipelined, because there may be millions.
func (c *attackChild) fill(t *testing.T) {
	const batch, workers = 64, 4
	var made atomic.Int64
	var all sync.WaitGroup
	for range workers {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(c.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for {
				var text []byte
				n := 0
				for range batch {
					id := weir.NewLeaseID(time.Now().Add(c.Ahead)).String()
					n++
					text = appendRequest(text, "/v1/reserve",
						`{"lease_id":"`+id+`","entity":"acme","resource":"llm","costs":{"rpm":0}}`)
					if c.Cancels {
						n++
						text = appendRequest(text, "/v1/cancel", `{"lease_id":"`+id+`"}`)
					}
				}
				if _, err := conn.Write(text); err != nil {
					t.Error(err)
					return
				}
				if err := skipAnswers(conn, n); err != nil {
					t.Error(err)
					return
				}
				switch before := made.Add(batch); {
				case before-batch >= int64(c.IDs):
					<-time.After(50 * time.Millisecond)
				case before >= int64(c.IDs):
					fmt.Println("ready")
				}
			}
		})
	}
	all.Wait()
}

// appendRequest appends a request of the attacker.
func appendRequest(text []byte, path, body string) []byte {
	return fmt.Appendf(text, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path, otherToken, len(body), body)
}

// skipAnswers reads n answers, of any status.
func skipAnswers(from io.Reader, n int) error {
	const begin = "HTTP/1.1 "
	text := make([]byte, 1<<16)
	kept := 0
	for n > 0 {
		read, err := from.Read(text[kept:])
		if err != nil {
			return err
		}
		n -= bytes.Count(text[:kept+read], []byte(begin))
		kept = copy(text, text[max(0, kept+read-len(begin)+1):kept+read]) // an answer may begin there
	}
	return nil
}

// answerTimes are how long a caller waits for its answers.
type answerTimes []time.Duration

func (a answerTimes) String() string {
	slices.Sort(a)
	at := func(q int) time.Duration { return a[(len(a)-1)*q/1000].Round(time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, max %v of %d", at(500), at(990), at(1000), len(a))
}

// repeating sends a request again if its connection was closed: the server may have closed an idle
// connection, or a new one on which no request had arrived by the time its place was needed. Each
// request carries its own lease ID, so it may be repeated.
type repeating struct {
	*http.Transport

	repeats int
}

// maxAttempts is how often one request is sent at most.
const maxAttempts = 10

func (r *repeating) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			var err error
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := r.Transport.RoundTrip(again)
		if err == nil || attempt == maxAttempts || req.Context().Err() != nil {
			return resp, err
		}
		r.repeats++
	}
}

// goodTime is the longest time for which the good caller makes calls.
const goodTime = 90 * time.Second

// good reserves and completes with the caller's own lease IDs, every tenth time on a new
// connection, and fails the test if a call is not answered with 200, after it was sent at most ten
// times.
func (c *attackChild) good(t *testing.T) answerTimes {
	t.Helper()
	transport := &repeating{Transport: &http.Transport{}}
	w := &world{url: c.URL, client: &http.Client{Timeout: patience, Transport: transport}}
	defer func() { t.Logf("%d requests were sent again", transport.repeats) }()
	var times answerTimes
	timed := func(path, body, bearer string) {
		began := time.Now()
		got := w.ask(t, path, body, bearer)
		times = append(times, time.Since(began))
		if got.status != http.StatusOK {
			t.Fatalf("call %d of %s: got %d %s", len(times), path, got.status, got.body)
		}
	}
	for i, start := 0, time.Now(); i < c.Calls && (i < 50 || time.Since(start) < goodTime); i++ {
		if i%10 == 0 {
			w.client.CloseIdleConnections()
		}
		if c.Path != "" {
			timed(c.Path, "", "")
			continue
		}
		id := weir.NewLeaseID(time.Now()).String()
		timed("/v1/reserve", `{"lease_id":"`+id+`","entity":"acme","resource":"llm","costs":{"rpm":1}}`, callToken)
		timed("/v1/complete", `{"lease_id":"`+id+`"}`, callToken)
	}
	return times
}

// TestGoodCallerUnderAttack prints how long a good caller waits for its answers while another one
// attacks the server, beside the time without an attack. Each is a separate process. The test
// requires that every call is answered and none is refused. It does not check the times, because
// machines differ.
func TestGoodCallerUnderAttack(t *testing.T) {
	connections := soak.Amount(256, 8192)
	memorySize := soak.Amount(5_000, 1_000_000)
	const headers = "POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	const length = "Content-Length: 100\r\n\r\n{"
	const body = headers + "Authorization: Bearer " + otherToken + "\r\n" + length
	hold := func(text string) attackChild {
		return attackChild{Does: "hold", Connections: connections, Text: text, Rate: attackRate}
	}
	for _, attack := range []struct {
		name string
		by   attackChild
		path string // what the good caller asks for at the address for probes
	}{
		{name: "none"},
		{name: "none, /healthz", path: "/healthz"},
		{name: "idle connections", by: hold("")},
		{name: "the same, /healthz", by: hold(""), path: "/healthz"},
		{name: "idle after /healthz", by: hold(hello)},
		{name: "slow headers", by: hold(headers)},
		{name: "slow bodies, no token", by: hold(headers + length)},
		{name: "slow bodies", by: hold(body)},
		{name: "slow bodies, /healthz", by: hold(body), path: "/healthz"},
		{name: "IDs 58 seconds ahead", by: attackChild{
			Does: "fill", IDs: memorySize * 12 / 10, Ahead: 58 * time.Second, Cancels: true,
		}},
		{name: "live leases of cost 0", by: attackChild{Does: "fill", IDs: memorySize * 12 / 100}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			tokens := tokensFile("{name: good, role: call, token: '"+callToken+"'}",
				"{name: bad, role: call, token: "+otherToken+"}", "{name: grafana, role: read, token: "+readToken+"}")
			w := start(t, &Options{
				TokensFile: write(t, t.TempDir(), "tokens.yaml", tokens), ProbeListen: "127.0.0.1:0",
				Bounds:  Bounds{MaxConnections: connections, MaxConcurrent: max(16, connections/8)},
				Limiter: &limiter.Options{LeaseMemorySize: memorySize, MaxLeases: memorySize},
			})
			if attack.by.Does != "" {
				attack.by.URL = w.url
				await(t, attack.by.start(t), "(ready)")
			}
			good := attackChild{Does: "good", URL: w.url, Calls: soak.Amount(200, 3000), Path: attack.path}
			if good.Path != "" {
				good.URL = "http://" + w.server.ProbeAddr().String()
			}
			times := await(t, good.start(t), "good: (.*)")
			stats := w.server.limiter.LeaseStats()
			t.Logf("%-24s %v; %d live leases, %d refused, %d connections evicted", attack.name,
				times, stats.Live, stats.Refused, w.server.listener.evicted.Load())
		})
	}
}
