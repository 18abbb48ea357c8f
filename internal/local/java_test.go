//go:build unix

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindJava checks which programs are taken for a Java that is new enough.
func TestFindJava(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"17", `echo 'openjdk version "17.0.15" 2025-04-15' >&2`, ""},
		{"21", `echo 'openjdk version "21" 2023-09-19'`, ""},
		{"warned", "echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g'; echo 'openjdk version \"25-ea\" 2025'", ""},
		{"11", `echo 'openjdk version "11.0.2" 2019-01-15' >&2`, "is Java 11: install Java 17"},
		{"8", `echo 'java version "1.8.0_402"' >&2`, "is Java 8: install Java 17"},
		{"silent", `true`, "does not tell its version: install Java 17"},
		{"stub", "echo 'Unable to locate a Java Runtime.' >&2; exit 1", "does not run: exit status 1: Unable to locate"},
		{"missing", "", "which JAVA_HOME names: install Java 17"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			java := filepath.Join(home, "bin", "java")
			if c.script != "" {
				writeScript(t, java, c.script)
			}
			got, err := FindJava(t.Context(), func(string) string { return home })
			if c.want == "" {
				if err != nil || got != java {
					t.Errorf("got %q, %v, want %s", got, err, java)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "needs Java 17") ||
				!strings.Contains(err.Error(), java) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// writeScript writes a program for sh.
func writeScript(t *testing.T, name, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
