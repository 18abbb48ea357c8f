package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const (
	// startTimeout bounds one start, on a machine that is busy with other tests.
	startTimeout = 2 * time.Minute
	// maxStarts is how many free ports are tried: another process may take one before it is used.
	maxStarts = 5
)

// DynamoDBServer is a DynamoDB Local that this process has started. It ends with the process, or
// before by Stop.
type DynamoDBServer struct {
	DynamoDBLocal

	process *Process
}

// DynamoDBOptions says how a server is started.
type DynamoDBOptions struct {
	// Port is the TCP port of its endpoint on 127.0.0.1; an error if it is taken. Default: a free
	// one.
	Port int
	// Brief is true for a server that lives for a run of some tests: it is compiled less well, and
	// so takes a seventh less processor time, but is a third slower from the 10,000th write on.
	Brief bool
}

// StartDynamoDB starts a DynamoDB Local with an empty memory and waits until it answers, for those
// who need one of their own: [DynamoDB] is for tests. The context bounds the start alone.
func StartDynamoDB(ctx context.Context, o *DynamoDBOptions) (*DynamoDBServer, error) {
	if o == nil {
		o = &DynamoDBOptions{}
	}
	java, dir, err := fetchDynamoDB(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkPort(ctx, o.Port); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var failed error
	for range maxStarts {
		port := o.Port
		if port == 0 {
			if port, err = freePort(ctx); err != nil {
				return nil, err
			}
		}
		server, err := startDynamoDB(ctx, java, javaArgs(dir, port, o.Brief), port)
		if err == nil {
			return server, nil
		}
		failed = errors.Join(failed, err)
		if o.Port != 0 || ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

func startDynamoDB(ctx context.Context, java string, args []string, port int) (*DynamoDBServer, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	// The server outlives the test that was the first to ask for it, so no context ends it.
	cmd := exec.Command(java, args...) //nolint:gosec,noctx // As said.
	cmd.Dir = os.TempDir()
	p, err := launchGuarded(cmd)
	if err != nil {
		return nil, err
	}
	s := &DynamoDBServer{DynamoDBLocal{"http://" + address}, p}
	if err := s.ready(ctx, address); err != nil {
		s.Stop()
		return nil, fmt.Errorf("DynamoDB Local on port %d: %w", port, err)
	}
	return s, nil
}

// javaArgs are the arguments of a small server that writes nothing to disk.
func javaArgs(dir string, port int, brief bool) []string {
	args := []string{
		"-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData",
		"-Djava.library.path=" + dir, "-cp", filepath.Join(dir, "*"),
		"software.amazon.dynamodb.services.local.main.ServerRunner",
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port),
	}
	if brief {
		args = append([]string{"-XX:TieredStopAtLevel=1"}, args...)
	}
	return args
}

// ready waits until the server answers, and makes sure that it is this one.
func (s *DynamoDBServer) ready(ctx context.Context, address string) error {
	if err := s.process.WaitPort(ctx, address); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.process.done: // whoever answers now is another
			cancel()
		case <-ctx.Done():
		}
	}()
	err := s.answers(ctx)
	select {
	case <-s.process.done:
		return fmt.Errorf("it ended (%w): %s", s.process.ending(), last(s.process.Output()))
	default:
		return err
	}
}

// Stop ends the server and waits until it is gone.
func (s *DynamoDBServer) Stop() { s.process.Stop() }

// Done is closed when the server has ended.
func (s *DynamoDBServer) Done() <-chan struct{} { return s.process.done }

// checkPort fails if another process has a port. Without it a server that has the port would be
// taken for the one that is about to end because it cannot have it. 0 is any port.
func checkPort(ctx context.Context, port int) error {
	if port == 0 {
		return nil
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(port))) // as DynamoDB Local
	if err != nil {
		return fmt.Errorf("port %d is taken, or cannot be used: %w", port, err)
	}
	return l.Close()
}

// freePort returns a TCP port that nobody has on 127.0.0.1.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
