package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

// TestInterrupted checks that an interrupt ends the wait for standard input.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never, neverEnds := io.Pipe()
		defer func() { _ = neverEnds.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stop, interrupt := context.WithCancel(ctx)
		time.AfterFunc(time.Second, interrupt)
		var out, errs bytes.Buffer
		code := Run(stop, []string{"limits", "check", "-"}, console.Streams{In: never, Out: &out, Err: &errs}, os.Getenv)
		if code != console.ExitFailed || errs.String() != "weir: interrupted\n" || ctx.Err() != nil {
			t.Errorf("got exit code %d and %q, want 1 and an interruption", code, errs.String())
		}
	})
}

// TestFullDisk checks that a result that cannot be written is a failure.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"limits", "check", "../../examples/limits.yaml"}} {
		var errs bytes.Buffer
		full, close := io.Pipe()
		full.CloseWithError(errors.New("no space left"))
		code := Run(t.Context(), args, console.Streams{In: strings.NewReader(""), Out: close, Err: &errs}, os.Getenv)
		if code != console.ExitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: got exit code %d and %q, want 1 and the reason", args, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	broken := iotest.ErrReader(errors.New("input is gone"))
	code := Run(t.Context(), []string{"limits", "check", "-"}, console.Streams{In: broken, Out: &out, Err: &errs}, os.Getenv)
	if code != console.ExitFailed || errs.String() != "weir: stdin: input is gone\n" {
		t.Errorf("got exit code %d and %q, want 1 and the reason", code, errs.String())
	}
}

// TestLargeLimits checks that the size of a limits file is bounded, from a stream too.
func TestLargeLimits(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	large := strings.NewReader(strings.Repeat("#", connect.MaxLimitsBytes+1))
	code := Run(t.Context(), []string{"limits", "check", "-"}, console.Streams{In: large, Out: &out, Err: &errs}, os.Getenv)
	if want := "weir: stdin: is larger than 8,388,608 bytes\n"; code != console.ExitFailed || errs.String() != want {
		t.Errorf("got exit code %d and %q, want 1 and %q", code, errs.String(), want)
	}
}

// TestDemoLimits checks that the demo's limits file has no mistakes.
func TestDemoLimits(t *testing.T) {
	t.Parallel()
	r := runWeir(t, "limits", "check", "../../examples/demo.yaml")
	if r.code != console.ExitDone || r.err != "" {
		t.Errorf("got exit code %d and %q, want no mistakes", r.code, r.err)
	}
}
