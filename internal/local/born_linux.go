package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

const (
	stateField   = 0  // of /proc/PID/stat, after the name of the program
	threadsField = 17 // the number of threads
	startField   = 19 // ticks of the clock after the start of the machine
)

// bornAt returns the time at which a process was started, as a text to compare; empty if there is no
// such process, or only its entry, which waits for its parent.
func bornAt(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	// The name is in parentheses and may have any characters.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startField {
		return "", fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	// The first thread ends before the others, which have the port as long as one of them is there.
	last := len(fields[threadsField]) == 1 && fields[threadsField][0] <= '1'
	if s := string(fields[stateField]); s == "Z" && last || s == "X" {
		return "", nil
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(boot)) + " " + string(fields[startField]), nil
}
