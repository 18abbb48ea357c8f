package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/local"
	"github.com/weir-limiter/weir/internal/testkit"
)

// leave writes the state of a server that was started.
func leave(t *testing.T, s *local.State) *local.Server {
	t.Helper()
	l := &local.Server{Folder: t.TempDir(), Env: os.Getenv}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.Folder, "state.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestStale checks that a state that is left over, such as after a reboot, is noticed, and that the
// process that has the number now is not touched.
func TestStale(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(sleep, "600") //nolint:noctx // The test ends it.
	other := testkit.Start(t, cmd)
	for name, s := range map[string]*local.State{
		"the number of another process": {PID: cmd.Process.Pid, Born: "before the reboot"},
		"no process":                    {PID: 1 << 30, Born: "before"},
	} {
		s.Engine, s.Port = "java", 8000
		l := leave(t, s)
		if got, err := l.Status(t.Context()); got != nil || err != nil {
			t.Errorf("%s: status: got %v, %v, want nothing", name, got, err)
		}
		if got, err := l.Down(t.Context()); got != nil || err != nil {
			t.Errorf("%s: down: got %v, %v, want nothing", name, got, err)
		}
		if _, err := os.Stat(filepath.Join(l.Folder, "state.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v, want the state removed", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the other process has ended: %v", err)
	}
}

// TestBrokenState checks that a state that cannot be read is an error that names the file.
func TestBrokenState(t *testing.T) {
	t.Parallel()
	l := leave(t, &local.State{})
	name := filepath.Join(l.Folder, "state.json")
	if err := os.WriteFile(name, []byte(`{"port": 80`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Down(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

// TestLock checks that a lock is held by one at a time, and that a wait ends with its context.
func TestLock(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := local.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := local.Lock(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, though it is held", err)
	}
	second := make(chan error, 1)
	go func() {
		unlock, err := local.Lock(t.Context(), name)
		if err == nil {
			unlock()
		}
		second <- err
	}()
	unlock()
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// TestCheckPort checks that a port is taken on 127.0.0.1, or taken on every address, or free. Any
// other process may take a port as soon as it is free, so the check is of one of several ports.
func TestCheckPort(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		const ports = 20
		var err error
		for range ports {
			if err = checkFreed(t, address); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("after the end of each of %d listeners on %s: got %v", ports, address, err)
		}
	}
}

// checkFreed checks a port while it is taken, and returns the error of the check after its end.
func checkFreed(t *testing.T, address string) error {
	t.Helper()
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	err = local.CheckPort(t.Context(), port)
	if err == nil || !strings.Contains(err.Error(), "is in use by another program") {
		t.Errorf("%s: got %v", taken.Addr(), err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	return local.CheckPort(t.Context(), port)
}
