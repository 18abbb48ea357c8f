//go:build darwin || dragonfly || freebsd || illumos || netbsd || openbsd

package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// bornAt returns the time at which a process was started, as a text to compare; empty if there is no
// such process, or only its entry, which waits for its parent.
func bornAt(pid int) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ps", "-p", strconv.Itoa(pid), "-o", "stat=", "-o", "lstart=")
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	out, err := cmd.Output()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return "", nil // ps found none
	}
	if err != nil {
		return "", err
	}
	stat, born, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(stat, "Z") {
		return "", nil
	}
	return strings.TrimSpace(born), nil
}
