package chart

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/weir-limiter/weir/deploy/internal/program"
)

// server is the real program with the arguments of a rendered pod.
type server struct {
	*program.Server

	node  *node
	probe string // the address for probes
}

// start runs the program with the arguments of the container.
func start(t *testing.T, o *objects, others map[string]map[string]string) *server {
	t.Helper()
	s := &server{node: &node{root: t.TempDir(), o: o, others: others}}
	s.node.mount(t)
	s.Server = program.Start(t, s.node.args(), program.NoEnv)
	s.Host = "weir.limits:7117" // as callers in the cluster name it
	if o.tokens != nil {
		s.Bearer = string(o.tokens.Data["call"])
	}
	s.probe = s.WaitFor(t, "listening for probes")["address"].(string)
	return s
}

// args returns the arguments of the container, with what only a pod has replaced: its ports by
// free ones on loopback, its folders, and the cluster by TigerBeetle's emulator.
func (n *node) args() []string {
	var args []string
	for _, a := range n.o.container().Args {
		switch flag, _, _ := strings.Cut(a, "="); flag {
		case "--listen", "--probe-listen":
			a = flag + "=127.0.0.1:0"
		case "--shutdown-delay":
			a = flag + "=1ms"
		case "--log-format":
			a = flag + "=json"
		}
		a = strings.ReplaceAll(a, "/etc/weir", filepath.Join(n.root, "etc", "weir"))
		a = strings.ReplaceAll(a, "/var/lib/weir", filepath.Join(n.root, "var", "lib", "weir"))
		if strings.HasPrefix(a, "--store=tigerbeetle://") {
			a = "--store=tigerbeetle://emulator"
		}
		args = append(args, a)
	}
	return args
}

// firstDecision is the request of the notes.
const firstDecision = `{"entity": "acme", "resource": "llm", "costs": {"rpm": 1, "tpm": 2500}}`

// TestServe installs the chart without values, as far as that is possible without a cluster: the
// real program runs with the arguments and files of the pod, and gives the first decision.
func TestServe(t *testing.T) {
	t.Parallel()
	o := mustRender(t, "{}")
	s := start(t, o, nil)
	anybody, c := &program.Caller{}, o.container()
	for _, probe := range []*core.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		anybody.Expect(t, http.StatusOK, "GET", "http://"+s.probe+probe.HTTPGet.Path, "")
	}
	anybody.Expect(t, http.StatusUnauthorized, "POST", s.URL+"/v1/reserve", firstDecision)
	if !strings.Contains(o.notes, firstDecision) {
		t.Errorf("the notes do not have the first decision: %s", o.notes)
	}
	s.Expect(t, http.StatusOK, "POST", s.URL+"/v1/reserve", firstDecision)
	for role, want := range map[string]int{
		"read": http.StatusForbidden, "call": http.StatusForbidden, "admin": http.StatusOK,
	} {
		as := &program.Caller{Bearer: string(o.tokens.Data[role])}
		as.Expect(t, http.StatusOK, "GET", "http://"+s.probe+"/metrics", "")
		as.Expect(t, want, "DELETE", s.URL+"/v1/admin/resources/llm/limits", "")
	}
	s.End()
	if _, err := os.Stat(filepath.Join(s.node.root, "var", "lib", "weir", "state")); err != nil {
		t.Errorf("the snapshot: %v", err)
	}
}

// TestReload changes the ConfigMap and the Secret as Kubernetes does, with the real program: the
// new limits and bearer tokens are in force, without a restart.
func TestReload(t *testing.T) {
	t.Parallel()
	entry := "{name: old, role: call, sha256: " + strings.Repeat("ab", 32) + "}"
	o := mustRender(t, "tokens: {entries: ["+entry+"]}")
	s := start(t, o, nil)
	s.Bearer = "a-new-bearer-token"
	entry = "{name: new, role: call, token: " + s.Bearer + "}"
	o.tokens.Data["tokens.yaml"] = []byte("tokens: [" + entry + "]\n")
	s.node.write(t, "tokens")
	got := s.WaitFor(t, "reloaded")
	if got["what"] != "tokens" || got["cause"] != "file_change" || got["removed"] != 1.0 {
		t.Errorf("tokens: %v", got)
	}
	s.Expect(t, http.StatusOK, "POST", s.URL+"/v1/reserve", firstDecision)
	for i := range 2 { // the second time, because the folder of the first is then removed
		o.limits.Data["limits.yaml"] = fmt.Sprintf(
			"version: 1\nresources: {llm: {limits: {tpm: {capacity: %d}}}}\n", 1000+i)
		s.node.write(t, "limits")
		if got := s.WaitFor(t, "reloaded"); got["what"] != "limits" || got["cause"] != "file_change" {
			t.Errorf("limits: %v", got)
		}
		text := s.Expect(t, http.StatusUnprocessableEntity, "POST", s.URL+"/v1/reserve",
			`{"entity": "acme", "resource": "llm", "costs": {"tpm": 2500}}`)
		if want := fmt.Sprintf("at most %d", 1000+i); !strings.Contains(text, want) {
			t.Errorf("with the new limits: %s, want %s", text, want)
		}
	}
}
