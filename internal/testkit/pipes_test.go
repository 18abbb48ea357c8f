package testkit

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

func TestListenPipes(t *testing.T) {
	t.Parallel()
	l := ListenPipes("here")
	if got := l.Addr().String(); got != "here" {
		t.Errorf("got the address %q, want %q", got, "here")
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "hello")
			_ = c.Close()
		}
	}()
	c, err := l.DialContext(t.Context(), "tcp", "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := l.DialContext(gone, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v without anybody who accepts, want %v", err, context.Canceled)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Errorf("close twice: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: got %v, want %v", err, net.ErrClosed)
	}
	if _, err := l.DialContext(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial: got %v, want %v", err, net.ErrClosed)
	}
}
