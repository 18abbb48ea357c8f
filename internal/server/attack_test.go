package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
)

// attackWorld is a server with two callers: a good one, and one who attacks.
type attackWorld struct {
	*world
	size int // of the attack
}

const otherToken = "other-token-0123456789"

// answerTimes are how long a good caller waits for its answers.
type answerTimes []time.Duration

func (a answerTimes) String() string {
	slices.Sort(a)
	at := func(q int) time.Duration { return a[(len(a)-1)*q/1000].Round(time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, max %v of %d", at(500), at(990), at(1000), len(a))
}

// goodTime is how long the good caller goes on: where each new connection waits behind thousands of
// others, all its calls would take an hour.
const goodTime = 90 * time.Second

// good reserves and completes with the caller's own lease IDs, each tenth time on a new connection,
// and fails the test if a call is not answered with 200.
func (w *attackWorld) good(t *testing.T, calls int) answerTimes {
	t.Helper()
	var times answerTimes
	start := time.Now()
	for i := range calls {
		if i >= 50 && time.Since(start) > goodTime {
			break
		}
		if i%10 == 0 {
			w.client.CloseIdleConnections()
		}
		id := weir.NewLeaseID(time.Now()).String()
		body := `{"lease_id":"` + id + `","entity":"acme","resource":"llm","costs":{"rpm":1}}`
		began := time.Now()
		got := w.ask(t, "/v1/reserve", body, callToken)
		times = append(times, time.Since(began))
		if got.status != http.StatusOK {
			t.Fatalf("call %d: got %d %s", i, got.status, got.body)
		}
		if got := w.ask(t, "/v1/complete", `{"lease_id":"`+id+`"}`, callToken); got.status != http.StatusOK {
			t.Fatalf("complete %d: got %d %s", i, got.status, got.body)
		}
	}
	return times
}

// hold opens connections and opens them again when they are closed, until ctx ends.
func (w *attackWorld) hold(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	var all sync.WaitGroup
	var open atomic.Int64
	for range w.size {
		all.Go(func() {
			for ctx.Err() == nil {
				var d net.Dialer
				conn, err := d.DialContext(ctx, "tcp", w.server.Addr().String())
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				open.Add(1)
				_, _ = io.WriteString(conn, text)
				_, _ = io.Copy(io.Discard, conn)
				stop()
				_ = conn.Close()
			}
		})
	}
	t.Cleanup(all.Wait)
	eventually(t, "the connections are open", func() bool { return open.Load() >= int64(w.size) })
}

// call makes calls as the attacker until n were made or ctx ends.
func (w *attackWorld) call(ctx context.Context, n int, again func(i int)) *sync.WaitGroup {
	var all sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1))
				if i > n {
					return
				}
				again(i)
			}
		})
	}
	return &all
}

// TestGoodCallerUnderAttack prints how long a good caller waits for its answers while another one
// attacks the server, beside the time without an attack. It wants every call answered and none
// refused. The times are not judged, since machines differ.
func TestGoodCallerUnderAttack(t *testing.T) {
	t.Parallel()
	calls := soak.Amount(200, 3000)
	connections := soak.Amount(256, 8192)
	memorySize := soak.Amount(5_000, 1_000_000)
	const headers = "POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	reserve := func(w *attackWorld, id weir.LeaseID) {
		body := `{"lease_id":"` + id.String() + `","entity":"acme","resource":"llm","costs":{"rpm":0}}`
		_, _ = ask(context.Background(), w.client, w.url+"/v1/reserve", body, otherToken)
	}
	for _, attack := range []struct {
		name  string
		begin func(ctx context.Context, t *testing.T, w *attackWorld)
	}{
		{"none", func(context.Context, *testing.T, *attackWorld) {}},
		{"idle connections", func(ctx context.Context, t *testing.T, w *attackWorld) { w.hold(ctx, t, "") }},
		{"idle after /healthz", func(ctx context.Context, t *testing.T, w *attackWorld) { w.hold(ctx, t, hello) }},
		{"slow headers", func(ctx context.Context, t *testing.T, w *attackWorld) { w.hold(ctx, t, headers) }},
		{"slow bodies", func(ctx context.Context, t *testing.T, w *attackWorld) {
			w.hold(ctx, t, headers+"Authorization: Bearer "+otherToken+"\r\nContent-Length: 100\r\n\r\n{")
		}},
		{"IDs 58 seconds ahead", func(ctx context.Context, t *testing.T, w *attackWorld) {
			all := w.call(ctx, 2*memorySize, func(int) {
				id := weir.NewLeaseID(time.Now().Add(58 * time.Second))
				reserve(w, id)
				_, _ = ask(context.Background(), w.client, w.url+"/v1/cancel", `{"lease_id":"`+id.String()+`"}`, otherToken)
			})
			all.Wait() // the memory is full
		}},
		{"live leases of cost 0", func(ctx context.Context, t *testing.T, w *attackWorld) {
			w.call(ctx, memorySize, func(int) { reserve(w, weir.NewLeaseID(time.Now())) }).Wait()
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			tokens := tokensFile("{name: good, role: call, token: '"+callToken+"'}",
				"{name: bad, role: call, token: "+otherToken+"}", "{name: grafana, role: read, token: "+readToken+"}")
			w := &attackWorld{start(t, &Options{
				TokensFile: write(t, t.TempDir(), "tokens.yaml", tokens),
				Bounds:     Bounds{MaxConnections: connections, MaxConcurrent: max(16, connections/8)},
				Limiter:    &weir.Options{LeaseMemorySize: memorySize, MaxLeases: memorySize},
			}), connections}
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			attack.begin(ctx, t, w)
			times := w.good(t, calls)
			stats := w.server.limiter.LeaseStats()
			t.Logf("%-24s %v; %d live leases, %d refused, %d connections evicted", strings.TrimSpace(attack.name),
				times, stats.Live, stats.Refused, w.server.listener.evicted.Load())
		})
	}
}
