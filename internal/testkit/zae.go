package testkit

import (
	"context"
	"os/exec"
	"regexp"
	"testing"
)

// motoReady is the line with which moto says where it listens.
var motoReady = regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`)

// ZAE returns a Python environment with the Python library that shares its tables with weir, and
// with moto, which plays AWS. A program of it reaches a DynamoDB Local by the variables of
// [DynamoDBLocal.Environment].
func ZAE(t testing.TB) *Venv {
	t.Helper()
	return Python(t, zaePackages()...)
}

// OpenZAE returns the same environment to a program that is no test.
func OpenZAE(ctx context.Context) (*Venv, error) { return OpenPython(ctx, zaePackages()...) }

func zaePackages() []string { return []string{"zae-limiter==0.17.0", "moto[server]==5.2.5"} }

// Moto starts a moto server that is empty, and returns its URL, for [LocalConfig]: it plays the
// services of AWS besides DynamoDB. It ends with the test.
func Moto(t testing.TB) string {
	t.Helper()
	// The guard ends it, not a context: that would kill the guard alone.
	from := ZAE(t).Command(t.Context(), "moto_server", "-H", "127.0.0.1", "-p", "0")
	cmd := exec.Command(from.Path, from.Args[1:]...) //nolint:gosec,noctx // As said.
	cmd.Env, cmd.Dir = from.Env, t.TempDir()
	p, err := launchGuarded(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	m, err := p.WaitLine(ctx, motoReady)
	if err != nil {
		t.Fatal(err)
	}
	return m[1]
}
