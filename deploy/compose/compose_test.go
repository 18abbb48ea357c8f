// Package compose has the tests of the compose files. The real program is run with their
// commands; a container engine is not needed.
package compose

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/weir-limiter/weir/deploy/internal/program"
	"github.com/weir-limiter/weir/internal/testkit"
)

// load reads a compose file as docker compose does: an unknown key or a wrong type is an error.
func load(t *testing.T, file string) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: ".", ConfigFiles: []types.ConfigFile{{Filename: file}},
	})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return project
}

// files are the compose files.
func files(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*.yaml")
	if err != nil || len(all) != 3 {
		t.Fatalf("got %q and error %v, want three files", all, err)
	}
	return all
}

// firstDecision is the request of the README.
const firstDecision = `{"entity": "acme", "resource": "llm", "costs": {"rpm": 1, "tpm": 2500}}`

const image = "ghcr.io/weir-limiter/weir:0.1.0"

// TestServices checks that ports are open to this machine only, what containers may do, that
// each server has a health check and time to end, and that each mount is of a folder, because a
// file that is mounted alone does not change.
func TestServices(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		for name, s := range load(t, file).Services {
			for _, p := range s.Ports {
				if p.HostIP != "127.0.0.1" {
					t.Errorf("%s: %s: port %s is open on %q", file, name, p.Published, p.HostIP)
				}
			}
			for _, v := range s.Volumes {
				info, err := os.Stat(v.Source)
				if v.Type == "bind" && (err != nil || !info.IsDir() || !v.ReadOnly) {
					t.Errorf("%s: %s: mount of %s: %v", file, name, v.Source, err)
				}
			}
			if s.Image != image {
				continue
			}
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
				!slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.User != "" || s.Privileged {
				t.Errorf("%s: %s may do more than it needs", file, name)
			}
			free := slices.Contains(s.SecurityOpt, "seccomp=unconfined")
			if free != (file == "tigerbeetle.yaml") {
				t.Errorf("%s: %s: all system calls are allowed: %t", file, name, free)
			}
			if s.Command[0] == "serve" && !slices.Contains(s.Command, "--insecure-no-tokens") {
				t.Errorf("%s: %s: without bearer tokens only loopback is served: %q", file, name, s.Command)
			}
			if s.Command[0] == "serve" && (s.HealthCheck == nil || s.StopGracePeriod.String() != "45s") {
				t.Errorf("%s: %s: health %v, time to end %v", file, name, s.HealthCheck, s.StopGracePeriod)
			}
		}
	}
}

// TestLimits checks that the limits are those of the example.
func TestLimits(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("limits/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/tenants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(own, example) {
		t.Error("limits/limits.yaml differs from examples/tenants.yaml")
	}
}

// container replaces what only a container has in the commands and variables of a service.
type container struct {
	service types.ServiceConfig
	replace *strings.Replacer
}

func (c *container) args(command []string) []string {
	args := make([]string, len(command))
	for i, a := range command {
		args[i] = c.replace.Replace(a)
	}
	return args
}

func (c *container) env(name string) string {
	if value := c.service.Environment[name]; value != nil {
		return c.replace.Replace(*value)
	}
	return ""
}

// serve starts the server of a service, makes the first decision, and runs the health check.
func (c *container) serve(t *testing.T) {
	t.Helper()
	args := append(c.args(c.service.Command), "--log-format=json", "--shutdown-delay=1ms")
	s := program.Start(t, args, c.env)
	s.Host = "localhost:7117"
	s.Expect(t, http.StatusOK, "POST", s.URL+"/v1/reserve", firstDecision)
	check := c.service.HealthCheck.Test
	if check[0] != "CMD" || check[1] != "/weir" {
		t.Fatalf("health check %q", check)
	}
	on := strings.NewReplacer("http://127.0.0.1:7117", s.URL)
	health := func() (int, string) {
		args := make([]string, 0, len(check))
		for _, a := range check[2:] {
			args = append(args, on.Replace(a))
		}
		return program.Try(t, args, func(name string) string { return on.Replace(c.env(name)) })
	}
	if code, said := health(); code != 0 {
		t.Errorf("health check: exit code %d: %s", code, said)
	}
	s.End()
	if code, said := health(); code != 1 || !strings.Contains(said, "refused") {
		t.Errorf("health check without a server: exit code %d: %s", code, said)
	}
}

// replacer replaces the address, folders and limits of a container.
func replacer(t *testing.T, more ...string) *strings.Replacer {
	t.Helper()
	return strings.NewReplacer(append([]string{
		"--listen=:7117", "--listen=127.0.0.1:0",
		"/etc/weir/", "limits/", "/var/lib/weir/", t.TempDir() + "/",
	}, more...)...)
}

// TestMemory runs the service of the memory store.
func TestMemory(t *testing.T) {
	t.Parallel()
	c := &container{service: load(t, "memory.yaml").Services["weir"], replace: replacer(t)}
	c.serve(t)
}

// TestTigerBeetle runs the servers with TigerBeetle's emulator in the place of the cluster.
func TestTigerBeetle(t *testing.T) {
	t.Parallel()
	services := load(t, "tigerbeetle.yaml").Services
	for _, name := range []string{"weir-1", "weir-2"} {
		c := &container{service: services[name], replace: replacer(t,
			"tigerbeetle://tigerbeetle:3000?cluster=0", "tigerbeetle://emulator")}
		c.serve(t)
	}
}

// TestDynamoDB runs the services in their order with DynamoDB Local, those that end twice. It
// sets variables of the process.
func TestDynamoDB(t *testing.T) {
	local := testkit.DynamoDB(t)
	services := load(t, "dynamodb.yaml").Services
	for name, value := range services["weir"].Environment {
		if strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, *value)
		}
	}
	replace := replacer(t, "http://dynamodb:8000", local.Endpoint(),
		"dynamodb://limits", "dynamodb://compose-"+rand.Text()[:12])
	for range 2 {
		for _, name := range []string{"table", "limits"} {
			c := &container{service: services[name], replace: replace}
			program.Run(t, c.args(c.service.Command), c.env)
		}
	}
	c := &container{service: services["weir"], replace: replace}
	c.serve(t)
}
