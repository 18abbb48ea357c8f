package testkit

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"testing"
	"time"
)

// gone waits until no process listens at an address.
func gone(ctx context.Context, address string) error {
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return ctx.Err()
		}
		if err := conn.Close(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// A guarded process ends with the process that started it, even if that one is killed.
func TestGuardKilled(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	cmd := child(ctx, "guardian")
	stdin, err := cmd.StdinPipe() // it stays open, so that the child waits
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	p := Start(t, cmd)
	m, err := p.WaitLine(ctx, listening)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitPort(ctx, m[1]); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := gone(ctx, m[1]); err != nil {
		t.Errorf("%s still listens: %v", m[1], err)
	}
}

// A guarded process ends when it is stopped, and the guard ends when its command does.
func TestGuardEnds(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	p, err := launchGuarded(child(context.Background(), "listen"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.WaitLine(ctx, listening)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitPort(ctx, m[1]); err != nil {
		t.Error(err)
	}
	p.Stop()
	p.Stop()
	if err := gone(ctx, m[1]); err != nil {
		t.Errorf("%s still listens: %v", m[1], err)
	}

	failing, err := launchGuarded(child(context.Background(), "fail"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(failing.Stop)
	err = failing.Wait(ctx)
	if status, ok := errors.AsType[*exec.ExitError](err); !ok || status.ExitCode() != 3 {
		t.Errorf("got %v, want the command's own exit status 3", err)
	}
}
