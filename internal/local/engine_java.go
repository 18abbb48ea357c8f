package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	// endTimeout is the time in which a server ends in order, before it is killed.
	endTimeout = 10 * time.Second
	// logFile is the name of the log in the folder of a [Server].
	logFile = "server.log"
)

// java runs DynamoDB Local with Java.
type java struct {
	server *Server
	path   string // of Java
}

func (*java) name() string { return javaEngine }

// files is the folder with the jars.
func (l *Server) files() string { return filepath.Join(l.Folder, "dynamodb-local-"+Version) }

// log is the log's file.
func (l *Server) log() string { return filepath.Join(l.Folder, logFile) }

// start fetches what is missing, and starts Java in the background. Its output goes through another
// process into the log, which keeps it small.
func (j *java) start(ctx context.Context, s *State) (begin func(bool) error, err error) {
	args, err := j.arguments(ctx, s)
	if err != nil {
		return nil, err
	}
	output, err := j.server.keepLog()
	if err != nil {
		return nil, err
	}
	// If it cannot be written, starting Java fails too.
	_, _ = fmt.Fprintf(output, "%s weir local up: port %d, %s\n", s.Started.Format(time.RFC3339), s.Port, j.path)
	cmd := exec.Command(j.path, args...) //nolint:gosec,noctx // It outlives this process.
	cmd.Dir, cmd.SysProcAttr = j.server.files(), detached()
	cmd.Stdout, cmd.Stderr = output, output
	begin, err = j.server.waiting(cmd)
	if err := errors.Join(err, output.Close()); err != nil {
		return nil, err
	}
	s.PID = cmd.Process.Pid
	if s.Born, err = bornAt(s.PID); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), begin(false))
	}
	return begin, cmd.Process.Release()
}

// arguments fetches what is missing, and returns the arguments of Java.
func (j *java) arguments(ctx context.Context, s *State) ([]string, error) {
	from, err := FindRepository(j.server.Repository, j.server.Env)
	if err != nil {
		return nil, err
	}
	f := &Fetcher{Folder: j.server.files(), Repository: from, Progress: j.server.Progress}
	if err := f.Fetch(ctx); err != nil {
		return nil, err
	}
	return JavaArguments(f.Folder, s.Port, s.Data)
}

// keepLog starts the process that keeps the log, and returns what writes to it. It ends when all
// that write have ended.
func (l *Server) keepLog() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(l.KeepLog[0]) //nolint:gosec,noctx // It outlives this process.
	cmd.Args = append(slices.Clone(l.KeepLog), l.log())
	cmd.Path, cmd.Dir, cmd.SysProcAttr, cmd.Stdin = l.KeepLog[0], l.Folder, detached(), r
	err = cmd.Start()
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, cmd.Process.Release()
}

// runs compares the time at which the process was started, because the system gives the number of a
// process that has ended to another one.
func (*java) runs(_ context.Context, s *State) (bool, error) {
	born, err := bornAt(s.PID)
	return born != "" && born == s.Born, err
}

func (j *java) stop(ctx context.Context, s *State) error {
	p, err := os.FindProcess(s.PID)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }() // it is not waited for
	// The process is found first and compared then: on Linux, what was found cannot become another
	// process afterwards.
	runs, err := j.runs(ctx, s)
	if !runs || err != nil {
		return err
	}
	if err := askToEnd(p); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the process %d: %w", s.PID, err)
	}
	gone, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if j.ended(gone, s) == nil {
		return nil
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the process %d: %w", s.PID, err)
	}
	return j.ended(ctx, s)
}

// ended waits until the server has ended.
func (j *java) ended(ctx context.Context, s *State) error {
	for {
		runs, err := j.runs(ctx, s)
		if !runs || err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("the process %d does not end: %w", s.PID, err)
		}
	}
}

func (j *java) lastWords(context.Context, *State) string {
	return "weir local logs prints why (" + j.server.log() + ")"
}

func (j *java) logs(ctx context.Context, s *State, to io.Writer, follow bool) error {
	return writeLog(ctx, j.server.log(), to, func(ctx context.Context) bool {
		if !follow || s == nil {
			return false
		}
		runs, err := j.runs(ctx, s)
		return runs && err == nil
	})
}
