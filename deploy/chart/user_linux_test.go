package chart

import (
	"bufio"
	"context"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-limiter/weir/deploy/internal/program"
	"github.com/weir-limiter/weir/internal/cli"
	"github.com/weir-limiter/weir/internal/console"
)

// asProgram is the variable that makes TestProgram the program. It has the arguments, one a
// line.
const asProgram = "WEIR_TEST_AS_PROGRAM"

// TestProgram is not a test but the program, as another user.
func TestProgram(*testing.T) {
	args := os.Getenv(asProgram)
	if args == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := cli.Run(ctx, strings.Split(args, "\n"),
		console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, program.NoEnv)
	stop()
	os.Exit(code)
}

// TestWithoutPrivileges runs the program as the user of the pod, with volumes that belong to
// root, as a node mounts them with fsGroup: it can read the Secret, and write the state.
func TestWithoutPrivileges(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount volumes as a node does, and become another user")
	}
	o := mustRender(t, "{}")
	n := &node{root: t.TempDir(), o: o}
	n.mount(t)
	pod := o.deployment.Spec.Template.Spec.SecurityContext
	n.give(t, int(*pod.FSGroup))

	user := uint32(*pod.RunAsUser)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestProgram$")
	cmd.Dir, cmd.Env = "/", []string{asProgram + "=" + strings.Join(n.args(), "\n")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
		Uid: user, Gid: uint32(*pod.RunAsGroup),
		Groups: []uint32{uint32(*pod.FSGroup)},
	}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait() // the log says more
		t.Fatalf("%v: %s", err, said.String())
	}
	url := strings.TrimSpace(strings.TrimPrefix(line, "weir: listening on "))
	caller := &program.Caller{Bearer: string(o.tokens.Data["call"])}
	caller.Expect(t, http.StatusOK, "POST", url+"/v1/reserve", firstDecision)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
	state, err := os.Stat(filepath.Join(n.root, "var", "lib", "weir", "state"))
	if err != nil || state.Sys().(*syscall.Stat_t).Uid != user {
		t.Errorf("the snapshot: got %v and error %v, want it of the server's user", state, err)
	}
}

// give gives everything to a group, as a node does with fsGroup: it may read Secrets and
// ConfigMaps, and write the state.
func (n *node) give(t *testing.T, group int) {
	t.Helper()
	for dir := n.root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range n.o.container().VolumeMounts {
		dir := filepath.Join(n.root, m.MountPath)
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil || d.Type()&fs.ModeSymlink != 0 {
				return err
			}
			more := fs.FileMode(0o440)
			if !m.ReadOnly {
				more = 0o660
			}
			if d.IsDir() {
				more |= fs.ModeSetgid | 0o110
			}
			if err := os.Chown(name, -1, group); err != nil {
				return err
			}
			return os.Chmod(name, info.Mode()|more)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
