package testkit

import (
	"os/exec"
	"slices"
)

// guard runs a command until the guard's own input ends, and then kills it. The input ends with the
// process that holds its other end, even if that process is killed, so that no server is left
// running. The guard ignores signals, because an interrupt at the terminal reaches all processes
// and that process decides. If the command ends, so does the guard, with its exit status.
const guard = `
trap '' INT QUIT HUP TERM
exec 3<&0
"$@" 3<&- & child=$!
{ cat <&3 >/dev/null; kill -9 $child; } 2>/dev/null & watch=$!
exec 3<&-
wait $child; status=$?
kill -9 $watch 2>/dev/null
exit $status`

// launchGuarded starts a command that ends with this process, even if that is killed, or earlier by
// [Process.Stop]. It is killed without a signal before, so it must have nothing to save.
func launchGuarded(cmd *exec.Cmd) (*Process, error) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil, err
	}
	cmd.Args = slices.Concat([]string{sh, "-c", guard, "guard", cmd.Path}, cmd.Args[1:])
	cmd.Path = sh
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p, err := launch(cmd)
	if err != nil {
		return nil, err
	}
	p.input = input
	return p, nil
}
