package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	denied := fmt.Errorf("reserve: %w", &weir.DeniedError{RetryAfter: time.Second})
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{failed(nil), exitDone},
		{failed(errors.New("boom")), exitFailed},
		{failed(fmt.Errorf("x: %w", context.Canceled)), exitFailed},
		{misused(&cobra.Command{Use: "x"}, "boom"), exitMisused},
		{failed(misused(&cobra.Command{Use: "x"}, "boom")), exitMisused},
		{errors.New("an error of cobra's"), exitMisused},
		{failed(denied), exitDenied},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}

// TestComplaints: each mistake is one line, and the program's name is in front once.
func TestComplaints(t *testing.T) {
	t.Parallel()
	bad := &weir.Error{Code: weir.Invalid, Field: "costs.tpm", Value: "-1", Reason: "must not be negative"}
	for _, c := range []struct {
		err  error
		want []string
	}{
		{nil, nil},
		{errors.New("boom"), []string{"boom"}},
		{bad, []string{`invalid: costs.tpm "-1": must not be negative`}},
		{
			failed(fmt.Errorf("t.csv:3: reserve: %w", bad)),
			[]string{`t.csv:3: reserve: invalid: costs.tpm "-1": must not be negative`},
		},
		{errors.Join(errors.New("one"), errors.Join(bad, nil, errors.New("three"))), []string{
			"one", `invalid: costs.tpm "-1": must not be negative`, "three",
		}},
		{errors.Join(errors.New("x"), context.Canceled), []string{"interrupted"}},
	} {
		if got := complaints(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

// TestInterrupted: whoever waits for standard input is woken up, and an interrupted replay leaves
// no log behind.
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
		code := Run(stop, []string{"limits", "check", "-"}, Streams{never, &out, &errs}, os.Getenv)
		if code != exitFailed || errs.String() != "weir: interrupted\n" || ctx.Err() != nil {
			t.Errorf("got exit code %d and %q, want 1 and an interruption", code, errs.String())
		}
	})

	dir := t.TempDir()
	gone := &fading{Context: t.Context(), left: 200} // of about 600 looks
	a := &app{streams: Streams{Err: io.Discard}, env: noEnv}
	f := &replayFlags{limits: "../../examples/limits.yaml", decisions: filepath.Join(dir, "log.jsonl")}
	if _, err := a.replay(gone, liveTrace(t, 300), f); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an interruption", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v, want an empty folder", left, err)
	}
}

// fading is a context that ends when it has been looked at so often.
type fading struct {
	context.Context

	left int
}

func (f *fading) Err() error {
	if f.left--; f.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestFullDisk: a result that cannot be written is a failure.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"limits", "check", "../../examples/limits.yaml"}} {
		var errs bytes.Buffer
		full, close := io.Pipe()
		full.CloseWithError(errors.New("no space left"))
		code := Run(t.Context(), args, Streams{strings.NewReader(""), close, &errs}, os.Getenv)
		if code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: got exit code %d and %q, want 1 and the reason", args, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	broken := iotest.ErrReader(errors.New("input is gone"))
	code := Run(t.Context(), []string{"limits", "check", "-"}, Streams{broken, &out, &errs}, os.Getenv)
	if code != exitFailed || errs.String() != "weir: stdin: input is gone\n" {
		t.Errorf("got exit code %d and %q, want 1 and the reason", code, errs.String())
	}
}

// TestLargeLimits: what is read of a limits file is bounded, from a stream too.
func TestLargeLimits(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	large := strings.NewReader(strings.Repeat("#", maxLimitsBytes+1))
	code := Run(t.Context(), []string{"limits", "check", "-"}, Streams{large, &out, &errs}, os.Getenv)
	if want := "weir: stdin: is larger than 8,388,608 bytes\n"; code != exitFailed || errs.String() != want {
		t.Errorf("got exit code %d and %q, want 1 and %q", code, errs.String(), want)
	}
}
