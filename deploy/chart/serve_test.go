package chart

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/cli"
	"github.com/weir-limiter/weir/internal/console"
)

// patience bounds each wait for a server.
const patience = 60 * time.Second

// server is the real program with the arguments of a rendered pod, on loopback ports and in folders
// of the test.
type server struct {
	node       *node
	url, probe string
	log        chan string
	bearer     string
	transport  http.RoundTripper // nil for the default one
	end        func()            // ends the program, and waits
}

// start runs the program with the arguments of the container.
func start(t *testing.T, o *objects, others map[string]map[string]string) *server {
	t.Helper()
	s := &server{node: &node{root: t.TempDir(), o: o, others: others}, log: make(chan string, 1000)}
	s.node.mount(t)
	if o.tokens != nil {
		s.bearer = string(o.tokens.Data["call"])
	}
	ctx, stop := context.WithCancel(t.Context())
	out, outWriter := io.Pipe()
	logs, logWriter := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := cli.Run(ctx, s.args(), console.Streams{In: strings.NewReader(""), Out: outWriter, Err: logWriter},
			func(string) string { return "" })
		exit <- code
		_ = outWriter.Close()
		_ = logWriter.Close()
	}()
	go func() {
		defer close(s.log)
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			select {
			case s.log <- lines.Text():
			case <-ctx.Done():
			}
		}
	}()
	s.end = sync.OnceFunc(func() {
		stop()
		if code := <-exit; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Cleanup(s.end)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		for line := range s.log {
			t.Log(line)
		}
		t.Fatalf("%q does not start: %v", s.args(), err)
	}
	s.url = strings.TrimSpace(strings.TrimPrefix(line, "weir: listening on "))
	s.probe = s.waitFor(t, "listening for probes")["address"].(string)
	return s
}

// args returns the arguments of the container, with what only a pod has replaced: its ports by free
// ones on loopback, its folders, and the cluster by TigerBeetle's emulator.
func (s *server) args() []string {
	var args []string
	for _, a := range s.node.o.container().Args {
		switch flag, _, _ := strings.Cut(a, "="); flag {
		case "--listen", "--probe-listen":
			a = flag + "=127.0.0.1:0"
		case "--shutdown-delay":
			a = flag + "=1ms"
		case "--log-format":
			a = flag + "=json"
		}
		a = strings.ReplaceAll(a, "/etc/weir", filepath.Join(s.node.root, "etc", "weir"))
		a = strings.ReplaceAll(a, "/var/lib/weir", filepath.Join(s.node.root, "var", "lib", "weir"))
		if strings.HasPrefix(a, "--store=tigerbeetle://") {
			a = "--store=tigerbeetle://emulator"
		}
		args = append(args, a)
	}
	return args
}

// waitFor reads the log up to a line, and returns its fields.
func (s *server) waitFor(t *testing.T, message string) map[string]any {
	t.Helper()
	late := time.After(patience)
	var before []string
	for {
		select {
		case line, ok := <-s.log:
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); ok && err == nil && fields["msg"] == message {
				return fields
			}
			before = append(before, line)
			if ok {
				continue
			}
		case <-late:
		}
		t.Fatalf("no line %q in the log:\n%s", message, strings.Join(before, "\n"))
	}
}

// ask sends a request as a caller would, and returns the status and the answer.
func (s *server) ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "weir.limits:7117"
	r.Header.Set("Content-Type", "application/json")
	if s.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+s.bearer)
	}
	answer, err := (&http.Client{Timeout: patience, Transport: s.transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// firstDecision is the request of the notes.
const firstDecision = `{"entity": "acme", "resource": "llm", "costs": {"rpm": 1, "tpm": 2500}}`

// TestServe installs the chart without values, as far as that is possible without a cluster: the real
// program runs with the arguments and files of the pod, and gives the first decision.
func TestServe(t *testing.T) {
	t.Parallel()
	o := mustRender(t, "{}")
	s := start(t, o, nil)
	for _, probe := range []string{o.container().ReadinessProbe.HTTPGet.Path, o.container().LivenessProbe.HTTPGet.Path} {
		anybody := &server{}
		if status, text := anybody.ask(t, "GET", "http://"+s.probe+probe, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", probe, status, text)
		}
	}
	if status, text := (&server{}).ask(t, "POST", s.url+"/v1/reserve", firstDecision); status != http.StatusUnauthorized {
		t.Errorf("without a bearer token: %d %s", status, text)
	}
	if !strings.Contains(o.notes, firstDecision) {
		t.Errorf("the notes do not have the first decision: %s", o.notes)
	}
	if status, text := s.ask(t, "POST", s.url+"/v1/reserve", firstDecision); status != http.StatusOK {
		t.Errorf("the first decision: %d %s", status, text)
	}
	for role, want := range map[string]int{"read": http.StatusForbidden, "call": http.StatusForbidden, "admin": http.StatusOK} {
		as := &server{bearer: string(o.tokens.Data[role])}
		if status, text := as.ask(t, "GET", "http://"+s.probe+"/metrics", ""); status != http.StatusOK {
			t.Errorf("metrics for %s: %d %s", role, status, text)
		}
		status, text := as.ask(t, "DELETE", s.url+"/v1/admin/resources/llm/limits", "")
		if status != want {
			t.Errorf("%s deletes limits: %d %s, want %d", role, status, text, want)
		}
	}
	s.end()
	if _, err := os.Stat(filepath.Join(s.node.root, "var", "lib", "weir", "state")); err != nil {
		t.Errorf("the snapshot: %v", err)
	}
}

// TestReload changes the ConfigMap and the Secret as Kubernetes does, with the real program: the new
// limits and bearer tokens are in force, without a restart.
func TestReload(t *testing.T) {
	t.Parallel()
	o := mustRender(t, "tokens: {entries: [{name: old, role: call, sha256: "+sum+"}]}") // of foo
	s := start(t, o, nil)
	s.bearer = "a-new-bearer-token"
	o.tokens.Data["tokens.yaml"] = []byte("tokens: [{name: new, role: call, token: a-new-bearer-token}]\n")
	s.node.write(t, "tokens")
	if got := s.waitFor(t, "reloaded"); got["what"] != "tokens" || got["cause"] != "file_change" || got["removed"] != 1.0 {
		t.Errorf("tokens: %v", got)
	}
	if status, text := s.ask(t, "POST", s.url+"/v1/reserve", firstDecision); status != http.StatusOK {
		t.Errorf("with the new bearer token: %d %s", status, text)
	}
	for i := range 2 { // the second time, because the folder of the first is then removed
		o.limits.Data["limits.yaml"] = fmt.Sprintf(
			"version: 1\nresources: {llm: {limits: {tpm: {capacity: %d}}}}\n", 1000+i)
		s.node.write(t, "limits")
		if got := s.waitFor(t, "reloaded"); got["what"] != "limits" || got["cause"] != "file_change" {
			t.Errorf("limits: %v", got)
		}
		status, text := s.ask(t, "POST", s.url+"/v1/reserve", `{"entity": "acme", "resource": "llm", "costs": {"tpm": 2500}}`)
		if want := fmt.Sprintf("at most %d", 1000+i); status != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			t.Errorf("with the new limits: %d %s, want %s", status, text, want)
		}
	}
}
