//go:build unix

// Package systemd has the tests of the systemd unit: the real program is run as the unit says.
package systemd

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-limiter/weir/deploy/internal/program"
)

// settings returns the values of each key of a unit or of a file of variables, in order.
func settings(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			found[key] = append(found[key], value)
		}
	}
	return found
}

// environment returns the variables of the unit; those of the file weir.env only if it is there.
func environment(t *testing.T, unit map[string][]string, withFile bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, value := range unit["Environment"] {
		name, text, _ := strings.Cut(strings.Trim(value, `"`), "=")
		found[name] = text
	}
	if withFile {
		for name, values := range settings(t, "weir.env") {
			found[name] = values[len(values)-1]
		}
	}
	return found
}

// machine lays out the files of a package in a folder, and returns a text with the paths in it.
func machine(t *testing.T) func(string) string {
	t.Helper()
	root := t.TempDir()
	limits, err := os.ReadFile("../../examples/tenants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"etc/weir", "var/lib/weir"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/weir/limits.yaml"), limits, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(text string) string {
		text = strings.ReplaceAll(text, "/etc/weir/", filepath.Join(root, "etc/weir")+"/")
		return strings.ReplaceAll(text, "/var/lib/weir/", filepath.Join(root, "var/lib/weir")+"/")
	}
}

// TestExecStart runs the program with the command line and variables of the unit, with the file
// of variables and without it: the first decision is made, and a hangup reads the limits again.
func TestExecStart(t *testing.T) {
	unit := settings(t, "weir.service")
	command := strings.Fields(unit["ExecStart"][0])
	if command[0] != "/usr/bin/weir" || unit["ExecReload"][0] != "/bin/kill -HUP $MAINPID" {
		t.Fatalf("got %q and %q", unit["ExecStart"], unit["ExecReload"])
	}
	for name, withFile := range map[string]bool{"weir.env": true, "no weir.env": false} {
		on, env := machine(t), environment(t, unit, withFile)
		var args []string
		for _, a := range command[1:] {
			if variable, ok := strings.CutPrefix(a, "$"); ok {
				args = append(args, strings.Fields(on(env[variable]))...)
				continue
			}
			args = append(args, a)
		}
		args = append(args, "--listen=127.0.0.1:0", "--log-format=json", "--shutdown-delay=1ms")
		s := program.Start(t, args, func(name string) string { return on(env[name]) })
		s.Expect(t, http.StatusOK, "POST", s.URL+"/v1/reserve",
			`{"entity": "acme", "resource": "llm", "costs": {"rpm": 1, "tpm": 2500}}`)
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if got := s.WaitFor(t, "nothing has changed"); got["cause"] != "signal" {
			t.Errorf("%s: %v", name, got)
		}
		s.End()
		if _, err := os.Stat(on("/var/lib/weir/state")); err != nil {
			t.Errorf("%s: the snapshot: %v", name, err)
		}
	}
}

// TestExamples checks the command lines that weir.env has in comments: a flag that does not
// exist is refused before a file is read.
func TestExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("weir.env")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		options, ok := strings.CutPrefix(strings.TrimSpace(line), "#WEIR_OPTIONS=")
		if !ok {
			continue
		}
		n++
		args := append([]string{"serve"}, strings.Fields(options)...)
		code, said := program.Try(t, args, program.NoEnv)
		if code != 1 || !strings.Contains(said, "no such file or directory") {
			t.Errorf("%s: exit code %d: %s", options, code, said)
		}
	}
	if n == 0 {
		t.Error("there are no command lines")
	}
}

// TestUnit asks systemd-analyze, if it is there, whether the unit is right, and how much it can
// do.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	// The unit is verified with a program that exists.
	text, err := os.ReadFile("weir.service")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "weir.service")
	text = []byte(strings.ReplaceAll(string(text), "ExecStart=/usr/bin/weir", "ExecStart=/bin/true"))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), analyze, "verify", file).CombinedOutput()
	if err != nil || len(said) > 0 {
		t.Errorf("verify: %v: %s", err, said)
	}
	said, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true",
		"--threshold=20", file).CombinedOutput()
	if err != nil {
		t.Errorf("security: its exposure is above 2: %v: %s", err, said)
	}
}
