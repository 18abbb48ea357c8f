package main

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/testkit"
)

// contestRegion is the one that all contestants name.
const contestRegion = "us-east-1"

// contestPython is the contestant in Python.
const contestPython = "python"

//go:embed testdata/zae_bench.py
var zaeProgram string

// localArena has everybody on this machine.
type localArena struct {
	python      string // with zae-limiter
	environment []string
}

// newLocalArena finds what a contest needs besides Java: a Python, if it has a player in Python.
func newLocalArena(ctx context.Context, c *contest, s *settings) (*localArena, error) {
	a := &localArena{python: s.python}
	inPython := func(p player) bool { return p.name == contestPython }
	if a.python != "" || !slices.ContainsFunc(c.players, inPython) {
		return a, nil
	}
	var err error
	a.python, err = zaePython(ctx)
	return a, err
}

// open starts a DynamoDB Local.
func (a *localArena) open(ctx context.Context) (field, error) {
	s, err := testkit.StartDynamoDB(ctx, nil)
	if err != nil {
		return nil, err
	}
	a.environment = slices.Concat(os.Environ(), s.Environment())
	return &localField{server: s}, nil
}

// start starts a contestant.
func (a *localArena) start(
	ctx context.Context, name string, spec *contestSpec,
) (*contestProcess, error) {
	var cmd *exec.Cmd
	if name == contestPython {
		cmd = exec.CommandContext(ctx, a.python, "-c", zaeProgram) //nolint:gosec // It was looked up.
	} else {
		var err error
		if cmd, err = ownCommand(ctx, name); err != nil {
			return nil, err
		}
	}
	cmd.Env = a.environment
	return startContestant(cmd, spec)
}

// localField is a DynamoDB Local on this machine.
type localField struct{ server *testkit.DynamoDBServer }

func (f *localField) endpoint() string { return f.server.Endpoint() }

func (f *localField) client() *ddb.Client { return f.server.Client() }

func (f *localField) cpu() int64 { return serverTime(f.server.Address()) }

func (f *localField) close() { f.server.Stop() }

func (f *localField) table(ctx context.Context, name string) error {
	config := f.server.Config()
	t := &dynamodb.Table{Name: name, Options: &dynamodb.Options{Config: &config}, NoStream: true}
	_, err := t.Create(ctx)
	return err
}
