package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const (
	// startTimeout bounds the start, on a busy machine.
	startTimeout = 2 * time.Minute
	// stopTimeout bounds the end of a server whose start has failed or was interrupted.
	stopTimeout = 30 * time.Second
	// askTimeout bounds the question whether a server answers.
	askTimeout = 2 * time.Second

	// DefaultPort is the port in most examples of DynamoDB Local.
	DefaultPort = 8000
	// DefaultTable is the name of the table.
	DefaultTable = "limits"
)

// Server is the DynamoDB Local of one folder. All methods may be called concurrently, also by
// several processes.
type Server struct {
	// Folder has the files, the log and the state.
	Folder string
	// Env returns a variable of the environment.
	Env func(name string) string
	// KeepLog is the command that keeps a log; the name of the log's file is added to it. It calls
	// [KeepLog] with its standard input. Its first element is a path. Required to start.
	KeepLog []string
	// Wait is the command that waits before it becomes Java, so that the state names the process
	// before the server begins; the path and the arguments of Java are added to it. It calls
	// [Wait] with [ToldPipe]. Its first element is a path. Default: Java is started without it,
	// and is not known to weir if this process is killed at that moment. Windows never uses it.
	Wait []string
	// Repository is the address of the Maven repository to fetch from. Default: see
	// [FindRepository].
	Repository string
	// Progress is called during a download. Default: it is not called.
	Progress func(p Progress)
	// Messages gets what a container engine says while it fetches the image. Default: nobody reads
	// it unless it fails.
	Messages io.Writer
}

// Wanted are settings of which some are left open: nil takes the setting of the server that runs, or
// else the default.
type Wanted struct {
	// Port is the TCP port on 127.0.0.1; 0 is any free one. Default: 8000.
	Port *int
	// Table is the name of the table. Default: "limits".
	Table *string
	// Lean is set for an index by resource with keys only. Default: false.
	Lean *bool
	// Data is the absolute path of the folder with the data. Default: in memory.
	Data *string
	// Engine is "java", "docker", "podman" or "nerdctl". Default: Java, or else the first container
	// engine that answers.
	Engine *string
}

// maxPort is the highest TCP port.
const maxPort = 65535

// tableName matches the names that DynamoDB allows for a table.
var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// Check returns the mistakes in the settings.
func (w *Wanted) Check() error {
	var errs []error
	if w.Port != nil && (*w.Port < 0 || *w.Port > maxPort) {
		errs = append(errs, fmt.Errorf("port %d: must be from 1 to %d, or 0 for any free one", *w.Port, maxPort))
	}
	if w.Table != nil && !tableName.MatchString(*w.Table) {
		errs = append(errs, fmt.Errorf("table %q: must have 3 to 255 letters, digits, '_', '-' and '.'", *w.Table))
	}
	return errors.Join(errs...)
}

// settings fills in the defaults.
func (w *Wanted) settings() Settings {
	s := Settings{Port: DefaultPort, Table: DefaultTable}
	if w.Port != nil {
		s.Port = *w.Port
	}
	if w.Table != nil {
		s.Table = *w.Table
	}
	s.Lean, s.Data, s.Engine = deref(w.Lean), deref(w.Data), deref(w.Engine)
	return s
}

// Up starts a server, unless it runs, and waits until it answers. Then it calls prepare, which makes
// the table. It reports whether it has started one. If a server with other settings runs, that is an
// error. If anything fails, a server that it has started is ended.
func (l *Server) Up(
	ctx context.Context, want *Wanted, prepare func(ctx context.Context, s *State) error,
) (s *State, started bool, err error) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	s, err = l.running(ctx)
	if err != nil {
		return nil, false, err
	}
	if s != nil {
		if differs := s.differences(want); differs != "" {
			return nil, false, fmt.Errorf("DynamoDB Local runs already, %s, and not with %s: "+
				"end it with weir local down first", s.Settings.String(), differs)
		}
	} else {
		if s, err = l.start(ctx, want.settings()); err != nil {
			return nil, false, err
		}
		started = true
	}
	if err = l.ready(ctx, s); err == nil {
		err = prepare(ctx, s)
	}
	if err != nil && started {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return nil, false, errors.Join(err, l.stop(ctx, s))
	}
	return s, started, err
}

// lock keeps other processes from starting or ending the server.
func (l *Server) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(l.Folder, 0o700); err != nil {
		return nil, err
	}
	return Lock(ctx, filepath.Join(l.Folder, "lock"))
}

// running returns the server that runs. What is left of one that has ended by itself is removed.
func (l *Server) running(ctx context.Context) (*State, error) {
	s, err := l.readState()
	if s == nil || err != nil {
		return nil, err
	}
	runs, err := l.engineOf(s).runs(ctx, s)
	if runs || err != nil {
		return s, err
	}
	return nil, l.stop(ctx, s)
}

// stop ends a server, if it still runs, and forgets it.
func (l *Server) stop(ctx context.Context, s *State) error {
	if err := l.engineOf(s).stop(ctx, s); err != nil {
		return err
	}
	return l.removeState()
}

// start starts a server. Its state is written before the server begins, as far as the engine allows
// that, so that it can be ended if this process is killed.
func (l *Server) start(ctx context.Context, want Settings) (*State, error) {
	if want.Port == 0 {
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		want.Port = port
	} else if err := CheckPort(ctx, want.Port); err != nil {
		return nil, err
	}
	e, err := l.chooseEngine(ctx, want.Engine)
	if err != nil {
		return nil, err
	}
	want.Engine = e.name()
	if want.Data != "" {
		if err := os.MkdirAll(want.Data, 0o700); err != nil {
			return nil, err
		}
	}
	s := &State{Settings: want, Started: time.Now().UTC().Truncate(time.Second)}
	begin, err := e.start(ctx, s)
	if err != nil {
		return nil, err
	}
	err = l.writeState(s)
	if err := errors.Join(err, begin(err == nil)); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return nil, errors.Join(err, l.stop(ctx, s))
	}
	return s, nil
}

// ready waits until a server answers, and makes sure that it is the one that was started.
func (l *Server) ready(ctx context.Context, s *State) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	e := l.engineOf(s)
	for {
		answers := Answers(ctx, s.Endpoint())
		runs, err := e.runs(ctx, s)
		switch {
		case err != nil:
			return err
		case !runs:
			return fmt.Errorf("DynamoDB Local on port %d ended: %s", s.Port, e.lastWords(ctx, s))
		case answers:
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("DynamoDB Local on port %d does not answer: %w", s.Port, err)
		}
	}
}

// Answers reports whether a server answers at an endpoint, if only with an error.
func Answers(ctx context.Context, endpoint string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

// Down ends the server, and returns what ran; nil if nothing did.
func (l *Server) Down(ctx context.Context) (*State, error) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := l.running(ctx)
	if s == nil || err != nil {
		return nil, err
	}
	return s, l.stop(ctx, s)
}

// Status returns what runs; nil if nothing does. It changes nothing.
func (l *Server) Status(ctx context.Context) (*State, error) {
	s, err := l.readState()
	if s == nil || err != nil {
		return nil, err
	}
	runs, err := l.engineOf(s).runs(ctx, s)
	if !runs || err != nil {
		return nil, err
	}
	return s, nil
}

// CheckPort fails if another process has a TCP port of 127.0.0.1, so that it is not mistaken for the
// server.
func CheckPort(ctx context.Context, port int) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	inUse := fmt.Errorf("port %d is in use by another program: end that, or choose another port with "+
		"--port", port)
	// On some systems a port can be had on 127.0.0.1 though another process has it on every address.
	var dialer net.Dialer
	if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
		return errors.Join(inUse, conn.Close())
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return listener.Close()
	case addressInUse(err):
		return inUse
	}
	return fmt.Errorf("port %d cannot be used: %w: choose another with --port", port, err)
}

// freePort returns a free TCP port of 127.0.0.1.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
