//go:build unix

package lab

import (
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit/liveserver"
)

// hangupsIgnored reports whether hangups were ignored when the tests began, as under nohup. Then
// the processes that the tests start ignore them too, even while a server in another test catches
// them in this process.
var hangupsIgnored = signal.Ignored(syscall.SIGHUP)

// TestReplayHangup checks that a replay whose terminal is closed settles all live leases, as after
// an interrupt.
func TestReplayHangup(t *testing.T) {
	t.Parallel()
	if hangupsIgnored {
		t.Skip("hangups are ignored here")
	}
	enough := make(chan struct{})
	url, limiter := startAnd(t, func() { close(enough) })
	// Each call lasts a minute, so none ends by itself before the hangup.
	cmd := exec.CommandContext(t.Context(), "weir", "replay", liveTrace(t, 10_000), "--server", url,
		"--speed", "100", "--latency", "59m", "--entities", "2")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-enough:
	case err := <-ended:
		t.Fatalf("the replay ended by itself: %v", err)
	}
	if liveserver.SlotsFree(t, limiter) {
		t.Error("got no slot in use, want some before the hangup")
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	if code := cmd.ProcessState.ExitCode(); code != console.ExitFailed || !liveserver.SlotsFree(t, limiter) {
		t.Errorf("got exit code %d, %v, want 1 and all leases settled", code, err)
	}
}
