package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/weir-limiter/weir/internal/local"
)

const (
	// startTimeout bounds one start. It is long because the machine may be busy with other tests.
	startTimeout = 2 * time.Minute
	// maxStarts is the number of free ports that are tried, because another process may take a port
	// before the server does.
	maxStarts = 5
)

// DynamoDBServer is a DynamoDB Local that this process has started. It ends with the process, or
// earlier by Stop.
type DynamoDBServer struct {
	DynamoDBLocal

	process *Process
}

// DynamoDBOptions are the options of a server.
type DynamoDBOptions struct {
	// Port is the TCP port of its endpoint on 127.0.0.1; an error if it is taken. Default: a free
	// one.
	Port int
	// Brief is set for a server that runs only for some tests. Java then compiles it with fewer
	// optimizations, which saves a seventh of the processor time, but makes it a third slower from
	// the 10,000th write on.
	Brief bool
}

// StartDynamoDB starts a separate DynamoDB Local without tables and waits until it answers. Tests
// normally share the server of [DynamoDB]. The context bounds only the start.
func StartDynamoDB(ctx context.Context, o *DynamoDBOptions) (*DynamoDBServer, error) {
	if o == nil {
		o = &DynamoDBOptions{}
	}
	java, dir, err := fetchDynamoDB(ctx)
	if err != nil {
		return nil, err
	}
	if o.Port != 0 {
		if err := local.CheckPort(ctx, o.Port); err != nil {
			return nil, err
		}
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
		args, err := javaArgs(dir, port, o.Brief)
		if err != nil {
			return nil, err
		}
		server, err := startDynamoDB(ctx, java, args, port)
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
	// The server outlives the test that starts it, so no context ends it.
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
func javaArgs(dir string, port int, brief bool) ([]string, error) {
	args, err := local.JavaArguments(dir, port, "")
	if brief {
		args = append([]string{"-XX:TieredStopAtLevel=1"}, args...)
	}
	return args, err
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
		case <-s.process.done: // another server answers at this port
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

// freePort returns a free TCP port of 127.0.0.1.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
