package lab

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit/liveserver"
	"github.com/weir-limiter/weir/limiter"
)

// TestMain puts a program with the lab's commands into the PATH, for tests that need a process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir": func() {
			s := console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
			os.Exit(runE(context.Background(), os.Args[1:], s, os.Getenv))
		},
	})
}

// runE runs a command line of the lab, as the program does.
func runE(ctx context.Context, args []string, s console.Streams, env func(string) string) int {
	a := &console.App{Streams: s, Env: env}
	root := &cobra.Command{Use: "weir", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(console.FlagError)
	root.AddCommand(ReplayCommand(a), LoadtestCommand(a), DemoCommand(a))
	return a.Execute(ctx, root, args)
}

// result is the result of a run of the program.
type result struct {
	code     int
	out, err string
}

// runWeir runs the program in this process, with an empty standard input.
func runWeir(t *testing.T, args ...string) result {
	t.Helper()
	return runIn(t.Context(), os.Getenv, args...)
}

// runIn runs the program in this process, with an empty standard input and an environment.
func runIn(ctx context.Context, env func(string) string, args ...string) result {
	var out, errs bytes.Buffer
	streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	code := runE(ctx, args, streams, env)
	return result{code, out.String(), errs.String()}
}

// startAnd starts a server that calls a function after its tenth reservation.
func startAnd(t *testing.T, do func()) (url string, l *limiter.Limiter) {
	t.Helper()
	var reserved atomic.Int64
	return liveserver.Start(t, nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			if r.URL.Path == "/v1/reserve" && reserved.Add(1) == 10 {
				do()
			}
		})
	})
}

// tokenCase is a way to give a bearer token to a command, or to give none.
type tokenCase struct {
	name string
	env  map[string]string
	args []string
	code int
	want string // the beginning of what the command prints to standard error
}

// testToken runs a command with and without the bearer token of a server. No output may have the
// token, and there must be a report only if the server took it. If serverEnv is true, the command
// finds the server in the environment too.
func testToken(t *testing.T, serverEnv bool, command ...string) {
	t.Helper()
	const token = "a-bearer-token-of-the-test"
	authenticate := func(given string) (httphandler.Identity, bool) {
		return httphandler.Identity{Name: "t", Role: httphandler.RoleCall}, given == token
	}
	url, _ := liveserver.Start(t, &httphandler.Options{Authenticate: authenticate}, nil)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := []string{"--server", url}
	fromEnv := tokenCase{
		"from the environment", map[string]string{connect.TokenEnv: token}, server, console.ExitDone, "",
	}
	if serverEnv {
		fromEnv.env[connect.ServerEnv], fromEnv.args = url, nil
	}
	for _, c := range []tokenCase{
		{"none", nil, server, console.ExitFailed, "weir: permission denied"},
		{
			"a wrong one", map[string]string{connect.TokenEnv: "another-bearer-token"}, server,
			console.ExitFailed, "weir: permission denied",
		},
		fromEnv,
		{"from a file", nil, append(server, "--token-file", file), console.ExitDone, ""},
	} {
		r := runIn(t.Context(), func(name string) string { return c.env[name] }, slices.Concat(command, c.args)...)
		if r.code != c.code || !strings.HasPrefix(r.err, c.want) || c.want == "" && r.err != "" {
			t.Errorf("%s: got exit code %d and %q, want %d and %q", c.name, r.code, r.err, c.code, c.want)
		}
		if (r.out != "") != (c.code == console.ExitDone) || strings.Contains(r.err+r.out, token) {
			t.Errorf("%s: got %q, want a report only if it ran, and no bearer token", c.name, r.out)
		}
	}
}

// runBad runs a command and returns its exit code and the errors that it printed.
func runBad(t *testing.T, args ...string) (exit int, message string) {
	t.Helper()
	r := runIn(t.Context(), noEnv, args...)
	if strings.Contains(r.out, "admitted") {
		t.Errorf("%v: printed %q, as if it had been done", args, r.out)
	}
	return r.code, r.err
}
