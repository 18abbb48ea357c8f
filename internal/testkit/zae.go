package testkit

import (
	"context"
	_ "embed"
	"os/exec"
	"regexp"
	"testing"
)

// motoReady is the line in which moto prints its address.
var motoReady = regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`)

// ZAE returns a Python environment with the Python library that shares its tables with weir, and
// with moto, which emulates AWS. Its programs reach a DynamoDB Local by the variables of
// [DynamoDBLocal.Environment].
func ZAE(t testing.TB) *Venv {
	t.Helper()
	return Python(t, zaePackages()...)
}

// OpenZAE returns the same environment for a program that is not a test.
func OpenZAE(ctx context.Context) (*Venv, error) { return OpenPython(ctx, zaePackages()...) }

// OldZAE returns a Python environment with an older release of that library, such as "0.6.1".
func OldZAE(t testing.TB, release string) *Venv {
	t.Helper()
	return Python(t, "zae-limiter=="+release)
}

func zaePackages() []string { return []string{"zae-limiter==0.17.0", "moto[server]==5.2.5"} }

// motoServer runs moto with what its CloudFormation lacks; its first lines say what.
//
//go:embed moto_server.py
var motoServer string

// Moto starts an empty moto server, which emulates services of AWS other than DynamoDB, and returns
// its URL for [LocalConfig]. The server ends with the test.
func Moto(t testing.TB) string {
	t.Helper()
	// The guard ends the server. A context would kill only the guard.
	from := ZAE(t).Command(t.Context(), "python", "-c", motoServer, "-H", "127.0.0.1", "-p", "0")
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
