package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of time in /proc, the same on every machine that Go runs on.
const ticksPerSecond = 100

// serverTime is the processor time in nanoseconds of the Java that was told to listen on the port of an
// address, or 0 if there is none.
func serverTime(address string) int64 {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	for _, path := range commands {
		args, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(args, []byte("\x00-port\x00"+port+"\x00")) {
			continue
		}
		name, _, _ := bytes.Cut(args, []byte{0})
		if filepath.Base(string(name)) == "java" {
			return statTime(filepath.Join(filepath.Dir(path), "stat"))
		}
	}
	return 0
}

// statTime reads the time in user and system mode from a process's stat, whose second field, the
// command, is in parentheses and may contain anything.
func statTime(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const user, system = 11, 12 // behind the command
	if len(fields) <= system {
		return 0
	}
	var ticks int64
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return ticks * (1_000_000_000 / ticksPerSecond)
}
