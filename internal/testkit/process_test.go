package testkit

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"testing"
	"time"
)

// listening is the line that a child prints when it listens.
var listening = regexp.MustCompile(`^listening on (\S+)$`)

// childVariable makes the test binary act as a child process.
const childVariable = "WEIR_TESTKIT_CHILD"

// TestChild is not a test: it is the process that the other tests start.
func TestChild(t *testing.T) {
	switch os.Getenv(childVariable) {
	case "":
		t.Skip("is started by the other tests")
	case "listen":
		var config net.ListenConfig
		listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		fmt.Printf("warming up\nlistening on %s\n", listener.Addr())
		<-interrupted
		fmt.Println("goodbye")
	case "deaf":
		signal.Ignore(os.Interrupt)
		fmt.Println("cannot hear")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	case "guardian":
		p, err := launchGuarded(child(t.Context(), "listen"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.WaitLine(bounded(t), listening)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(m[0])
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	case "fail":
		fmt.Println("out of luck")
		os.Exit(3)
	}
}

func child(ctx context.Context, part string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"="+part)
	return cmd
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestProcess(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	p := Start(t, child(ctx, "listen"))
	m, err := p.WaitLine(ctx, listening)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitPort(ctx, m[1]); err != nil {
		t.Fatal(err)
	}
	if again, err := p.WaitLine(ctx, regexp.MustCompile(`warming`)); err != nil || again[0] != "warming" {
		t.Errorf("got %q, %v, want a line from before", again, err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.WaitLine(short, regexp.MustCompile(`goodbye`)); err == nil {
		t.Error("got no error, want the context's")
	}
	if err := p.Wait(short); err == nil {
		t.Error("got no error, want the context's")
	}
	p.Stop()
	if err := p.Wait(ctx); err != nil {
		t.Errorf("got %v, want a clean end: %s", err, p.Output())
	}
	if !strings.Contains(p.Output(), "goodbye\n") {
		t.Errorf("got %q, want it to end by itself when asked", p.Output())
	}
	if err := p.WaitPort(ctx, m[1]); err == nil {
		t.Error("the port is still open")
	}
	p.Stop() // a second time, like the cleanup
}

func TestProcessKilled(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	cmd := child(ctx, "deaf")
	stdin, err := cmd.StdinPipe() // it stays open, so that the child waits
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	p := Start(t, cmd)
	if _, err := p.WaitLine(ctx, regexp.MustCompile(`cannot hear`)); err != nil {
		t.Fatal(err)
	}
	p.grace = 50 * time.Millisecond
	p.Stop()
	if err := p.Wait(ctx); err == nil {
		t.Error("got a clean end, want a kill")
	}
}

// The end of the process ends a wait with an error that has its output.
func TestProcessEnded(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	p := Start(t, child(ctx, "fail"))
	_, err := p.WaitLine(ctx, regexp.MustCompile(`listening`))
	for _, want := range []string{"exit status 3", "out of luck", "listening"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if m, err := p.WaitLine(ctx, regexp.MustCompile(`out of (.*)`)); err != nil || m[1] != "luck" {
		t.Errorf("got %q, %v, want what it said before its end", m, err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	if got := Run(t, exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.v")); !strings.Contains(got, "SKIP") {
		t.Errorf("got %q, want what the child wrote", got)
	}
	if _, err := output(child(ctx, "fail")); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v, want what the child wrote", err)
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	if got := last(" short \n"); got != "short" {
		t.Errorf("got %q", got)
	}
	got := last(strings.Repeat("ä", lastBytes))
	if len(got) > lastBytes+len("… ") || !strings.HasPrefix(got, "… ä") || !strings.HasSuffix(got, "ä") {
		t.Errorf("got %d bytes that begin with %q", len(got), got[:8])
	}
}
