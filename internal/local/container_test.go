//go:build unix

package local

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fakeEngine writes its arguments to the file calls, one line for each call. A container has an ID
// until it is removed.
const fakeEngine = `echo "$@" >>"$FAKE/calls"
case $1 in
run) echo 'Pulling fs layer' >&2; echo 0123abcd >"$FAKE/id"; echo 0123abcd ;;
ps)
	[ ! -e "$FAKE/down" ] || exit 1
	[ "$2" = --all ] || [ -z "$ENDED" ] || exit 0 # it is known, and does not run
	cat "$FAKE/id" 2>/dev/null ;;
rm) rm "$FAKE/id" ;;
logs) echo the log of a container ;;
esac
exit 0`

// newFakeEngine puts a container engine on PATH as the only program besides the system's own, and
// returns the folder of its files. No Java is found.
func newFakeEngine(t *testing.T, program string) (dir string, l *Server) {
	t.Helper()
	dir = t.TempDir()
	writeScript(t, filepath.Join(dir, "bin", program), fakeEngine)
	t.Setenv("FAKE", dir)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":/usr/bin:/bin")
	none := func(name string) string { return map[string]string{"JAVA_HOME": dir}[name] }
	return dir, &Server{Folder: filepath.Join(dir, "cache"), Env: none}
}

// calls returns the calls of the engine so far.
func calls(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestContainer starts, finds, reads and ends a container of an engine that only records its
// arguments. The test answers at the port, from the time at which the engine says that it works.
func TestContainer(t *testing.T) {
	for _, program := range containerEngines {
		t.Run(program, func(t *testing.T) {
			dir, l := newFakeEngine(t, program)
			port, err := freePort(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			data, lean := filepath.Join(dir, "data"), true
			want := &Wanted{Port: &port, Data: &data, Lean: &lean}
			l.Messages = writerFunc(func(b []byte) (int, error) {
				answerAt(t, port)
				return len(b), nil
			})
			prepared := 0
			up := func() (*State, bool, error) {
				return l.Up(t.Context(), want, func(context.Context, *State) error { prepared++; return nil })
			}
			s, started, err := up()
			if err != nil || !started || s.Engine != program || s.Container != "0123abcd" || s.PID != 0 {
				t.Fatalf("got %+v, %t, %v", s, started, err)
			}
			got := calls(t, dir)
			for _, words := range []string{
				"run --detach", "--publish 127.0.0.1:" + strconv.Itoa(port) + ":8000",
				"--volume " + data + ":/data", "docker.io/amazon/dynamodb-local:" + Version + " -jar DynamoDBLocal.jar",
				"-sharedDb -disableTelemetry -dbPath /data",
			} {
				if !strings.Contains(got, words) {
					t.Errorf("got %s, want %q in it", got, words)
				}
			}
			if _, started, err = up(); err != nil || started || prepared != 2 {
				t.Errorf("again: got %t, %v, prepared %d times", started, err, prepared)
			}
			var log bytes.Buffer
			if err := l.Logs(t.Context(), &log, true); err != nil || log.String() != "the log of a container\n" {
				t.Errorf("got %q, %v", &log, err)
			}
			if s, err = l.Down(t.Context()); err != nil || s == nil {
				t.Errorf("down: got %v, %v", s, err)
			}
			if got := calls(t, dir); !strings.HasSuffix(got, "stop 0123abcd\nrm --force 0123abcd\n") {
				t.Errorf("got %s, want the container stopped and removed", got)
			}
			if s, err := l.Status(t.Context()); s != nil || err != nil {
				t.Errorf("status: got %v, %v, want nothing", s, err)
			}
		})
	}
}

// TestUpFails checks that a server that ends at once, or whose table cannot be made, leaves nothing
// behind.
func TestUpFails(t *testing.T) {
	errTable := errors.New("the table is of the other kind")
	for name, c := range map[string]struct {
		ends bool // before it answers
		want string
	}{
		"it ends":   {true, "ended: the log of a container"},
		"the table": {false, errTable.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			dir, l := newFakeEngine(t, "docker")
			port, err := freePort(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			prepare := func(context.Context, *State) error { return errTable }
			if c.ends {
				t.Setenv("ENDED", "yes")
			} else {
				l.Messages = writerFunc(func(b []byte) (int, error) {
					answerAt(t, port)
					return len(b), nil
				})
			}
			s, started, err := l.Up(t.Context(), &Wanted{Port: &port}, prepare)
			if s != nil || started || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %t, %v, want %q", s, started, err, c.want)
			}
			if got := calls(t, dir); !strings.HasSuffix(got, "rm --force 0123abcd\n") {
				t.Errorf("got %s, want the container removed", got)
			}
			if s, err := l.readState(); s != nil || err != nil {
				t.Errorf("got the state %v, %v", s, err)
			}
		})
	}
}

// TestContainerEngineIsDown checks that a container whose engine does not answer is not taken for
// one that has ended, and that an engine that does not answer is not chosen.
func TestContainerEngineIsDown(t *testing.T) {
	dir, l := newFakeEngine(t, "podman")
	if err := os.WriteFile(filepath.Join(dir, "down"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := l.Up(t.Context(), &Wanted{Port: new(int)}, nil)
	if err == nil || !strings.Contains(err.Error(), "needs Java 17") ||
		!strings.Contains(err.Error(), "podman does not answer") {
		t.Errorf("got %v, want that neither works", err)
	}
	podman := "podman"
	_, _, err = l.Up(t.Context(), &Wanted{Port: new(int), Engine: &podman}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "podman does not answer: start it") {
		t.Errorf("got %v", err)
	}
	if err := l.writeState(&State{Settings: Settings{Engine: "podman"}, Container: "0123abcd"}); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(context.Context) (*State, error){"status": l.Status, "down": l.Down} {
		if s, err := ask(t.Context()); s != nil || err == nil || !strings.Contains(err.Error(), "start podman") {
			t.Errorf("%s: got %v, %v, want an error", name, s, err)
		}
	}
	if s, err := l.readState(); s == nil || err != nil {
		t.Errorf("got %v, %v, want the state kept", s, err)
	}
}

// answerAt answers requests at a port until the test ends.
func answerAt(t *testing.T, port int) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Error(err)
		return
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
}
