package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// stopGrace is the time between asking a process to end and killing it.
	stopGrace = 5 * time.Second
	// pollEvery is the time between two checks whether a server answers.
	pollEvery = 20 * time.Millisecond
	// lastBytes is the length of the end of an output that an error shows.
	lastBytes = 4096
)

// Run runs a command to its end and returns what it wrote. If it fails, so does the test, with the
// end of the output.
func Run(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// output runs a command and returns what it wrote to both of its streams.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", cmd.Path, err, last(string(out)))
	}
	return string(out), nil
}

func last(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > lastBytes {
		s = "… " + strings.ToValidUTF8(s[len(s)-lastBytes:], "")
	}
	return s
}

// Process is a child process that runs beside a test. Its methods may be called concurrently.
type Process struct {
	cmd   *exec.Cmd
	grace time.Duration // from being asked to end to being killed
	input io.Closer     // ends a guarded process when it is closed; nil for any other
	done  chan struct{} // closed when the process has ended and err is set
	err   error

	mu     sync.Mutex
	out    bytes.Buffer
	change chan struct{} // closed and replaced by each write
}

// Start starts a command and collects both of its streams. When the test ends, the process is asked
// to end, and then killed. The command's streams must not be set. A command made with the test's
// context is killed at once, because that context ends first.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// launch starts a command without registering its end: the caller calls [Process.Stop], unless the
// command ends with this process anyway.
func launch(cmd *exec.Cmd) (*Process, error) {
	p := &Process{
		cmd: cmd, grace: stopGrace, done: make(chan struct{}), change: make(chan struct{}),
	}
	cmd.Stdout, cmd.Stderr = (*processOutput)(p), (*processOutput)(p)
	cmd.WaitDelay = stopGrace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// processOutput is the writer for both streams of a process.
type processOutput Process

func (o *processOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.change)
	o.change = make(chan struct{})
	return o.out.Write(b)
}

// Output returns what the process has written so far.
func (p *Process) Output() string {
	s, _ := p.output()
	return s
}

// output also returns a channel that is closed when there is more.
func (p *Process) output() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String(), p.change
}

// WaitLine waits for the first complete line that matches, and returns the match and its groups. It
// fails if the process or the context ends first.
func (p *Process) WaitLine(ctx context.Context, line *regexp.Regexp) ([]string, error) {
	for {
		ended := false
		select {
		case <-p.done:
			ended = true // the whole output has been read
		default:
		}
		out, more := p.output()
		for l := range strings.Lines(out) {
			if text, whole := strings.CutSuffix(l, "\n"); whole || ended {
				if m := line.FindStringSubmatch(strings.TrimSuffix(text, "\r")); m != nil {
					return m, nil
				}
			}
		}
		if ended {
			return nil, fmt.Errorf("%s ended (%w) without a line like %q: %s",
				p.cmd.Path, p.ending(), line, last(out))
		}
		select {
		case <-more:
		case <-p.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: no line like %q: %w: %s", p.cmd.Path, line, ctx.Err(), last(out))
		}
	}
}

// errEndedWell is the cause if the process ended with exit status 0.
var errEndedWell = errors.New("exit status 0")

func (p *Process) ending() error {
	if p.err == nil {
		return errEndedWell
	}
	return p.err
}

// WaitPort waits until a TCP address accepts connections. It fails if the process or the context
// ends first.
func (p *Process) WaitPort(ctx context.Context, address string) error {
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended (%w): %s", p.cmd.Path, p.ending(), last(p.Output()))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", p.cmd.Path, ctx.Err(), err)
		case <-time.After(pollEvery):
		}
	}
}

// Wait waits for the process to end. It returns nil for exit status 0.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop asks the process to end, kills it if it does not, and waits until it is gone.
func (p *Process) Stop() {
	if p.input != nil {
		_ = p.input.Close() // it may be closed already
		<-p.done
		return
	}
	if p.cmd.Process.Signal(os.Interrupt) != nil { // not every system has this signal
		_ = p.cmd.Process.Kill()
	}
	select {
	case <-p.done:
		return
	case <-time.After(p.grace):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}
