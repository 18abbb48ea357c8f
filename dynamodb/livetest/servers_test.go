package livetest

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/testkit"
)

// buildWeir builds the weir command from this module and returns its path.
func buildWeir(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", name,
		"github.com/weir-limiter/weir/cmd/weir")
	testkit.Run(t, build)
	return name
}

// servers are several `weir serve` on one table, behind a proxy.
type servers struct {
	program string
	store   string // the URL
	environ []string
	proxy   *proxy
	running []*server
	lives   []int // how often each was started
}

// server is one `weir serve` in a process of its own.
type server struct {
	url     string
	cmd     *exec.Cmd
	process *testkit.Process
}

// startServer starts a server and waits until it listens.
func (s *servers) startServer(ctx context.Context, t testing.TB) (*server, error) {
	cmd := exec.CommandContext(ctx, s.program, "serve",
		"--store", s.store, "--listen", "127.0.0.1:0", "--store-timeout", childTimeout.String())
	cmd.Env = append(cmd.Environ(), s.environ...)
	one := &server{cmd: cmd, process: testkit.Start(t, cmd)}
	line, err := one.process.WaitLine(ctx, regexp.MustCompile(`^weir: listening on (\S+)$`))
	if err != nil {
		return nil, err
	}
	one.url = line[1]
	return one, nil
}

// start starts a server behind the proxy.
func (s *servers) start(ctx context.Context, t testing.TB, i int) error {
	one, err := s.startServer(ctx, t)
	if err != nil {
		return err
	}
	s.running[i] = one
	s.proxy.servers[i].Store(&target{one.url, s.lives[i]})
	s.lives[i]++
	return nil
}

// kill kills a server with SIGKILL and waits until it is gone. The proxy notices that by its
// connections.
func (s *servers) kill(ctx context.Context, i int) error {
	one := s.running[i]
	if err := one.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = one.process.Wait(ctx) // the error says that it was killed
	s.proxy.servers[i].Store(nil)
	s.proxy.stopped(i, s.lives[i]-1)
	return ctx.Err()
}

// killAtRandom kills random servers at random times, and starts each one again a moment later. If
// the servers are to be spared, it only waits.
func (s *servers) killAtRandom(ctx context.Context, t testing.TB, o *outage, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 2))
	upTo := func(d time.Duration) int64 { return micros() + random.Int64N(d.Microseconds()) }
	for range o.kills {
		if err := until(ctx, upTo(killEvery)); err != nil {
			return err
		}
		if o.spare {
			continue
		}
		i := random.IntN(len(s.running))
		if err := s.kill(ctx, i); err != nil {
			return err
		}
		if err := until(ctx, upTo(mostDelay)); err != nil {
			return err
		}
		if err := s.start(ctx, t, i); err != nil {
			return err
		}
	}
	return nil
}

// killEvery is the longest time between two kills.
const killEvery = 2 * time.Second

// client returns a client of one address.
func client(t testing.TB, url string) *httpapi.Client {
	t.Helper()
	c, err := httpapi.NewClient(url, &httpapi.ClientOptions{Timeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// callTimeout bounds one attempt of a call. It is longer than any server waits for the table.
const callTimeout = 30 * time.Second
