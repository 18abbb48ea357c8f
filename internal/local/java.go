package local

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// minJava is the first Java release on which it runs.
	minJava = 17
	// javaTimeout bounds the question for the version, on a busy machine.
	javaTimeout = time.Minute
	// launcherFile is the name of the launcher. Java finds a class by the name of its file.
	launcherFile = "WeirLocal.class"
	// javaHelp is the advice for a machine without Java.
	javaHelp = "install Java 17 or later (such as OpenJDK), or set JAVA_HOME"
)

// launcher is the compiled class of launcher/WeirLocal.java.
//
//go:embed launcher/WeirLocal.class
var launcher string

// javaVersion finds the release in the output of java -version, such as `openjdk version
// "17.0.15"`.
var javaVersion = regexp.MustCompile(`version "(\d+)(?:\.(\d+))?`)

// FindJava returns the path of a Java that is new enough: that of JAVA_HOME, or else the one on
// PATH. The error says what to do.
func FindJava(ctx context.Context, env func(string) string) (string, error) {
	name := "java"
	if home := env("JAVA_HOME"); home != "" {
		name = filepath.Join(home, "bin", "java")
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
	}
	java, err := exec.LookPath(name)
	if err != nil {
		where := "there is no java on PATH"
		if name != "java" {
			where = "there is no " + name + ", which JAVA_HOME names"
		}
		return "", fmt.Errorf("DynamoDB Local needs Java %d, and %s: %s", minJava, where, javaHelp)
	}
	ctx, cancel := context.WithTimeout(ctx, javaTimeout)
	defer cancel()
	says, err := exec.CommandContext(ctx, java, "-version").CombinedOutput() //nolint:gosec // It was looked up.
	if err != nil {
		return "", fmt.Errorf("DynamoDB Local needs Java %d, and %s does not run: %w: %s: %s",
			minJava, java, err, strings.TrimSpace(string(says)), javaHelp)
	}
	if err := checkJava(string(says)); err != nil {
		return "", fmt.Errorf("DynamoDB Local needs Java %d, and %s %w: %s", minJava, java, err, javaHelp)
	}
	return java, nil
}

// checkJava checks the output of java -version.
func checkJava(says string) error {
	m := javaVersion.FindStringSubmatch(says)
	if m == nil {
		return errors.New("does not tell its version")
	}
	release := m[1]
	if release == "1" && m[2] != "" { // as in 1.8
		release = m[2]
	}
	if n, err := strconv.Atoi(release); err != nil || n < minJava {
		return fmt.Errorf("is Java %s", release)
	}
	return nil
}

// JavaArguments returns the arguments with which Java runs DynamoDB Local on 127.0.0.1 from the jars
// in a folder, and writes the launcher there. The data is kept in the folder data; empty means in
// memory.
func JavaArguments(folder string, port int, data string) ([]string, error) {
	name := filepath.Join(folder, launcherFile)
	if there, err := os.ReadFile(name); err != nil || string(there) != launcher {
		if err := replaceFile(name, []byte(launcher)); err != nil {
			return nil, err
		}
	}
	classes := folder + string(filepath.ListSeparator) + filepath.Join(folder, "*")
	args := []string{
		"-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-cp", classes,
		strings.TrimSuffix(launcherFile, ".class"), "-port", strconv.Itoa(port),
	}
	return append(args, storageArguments(data)...), nil
}

// storageArguments are arguments of DynamoDB Local itself.
func storageArguments(data string) []string {
	args := []string{"-sharedDb", "-disableTelemetry"}
	if data == "" {
		return append(args, "-inMemory")
	}
	return append(args, "-dbPath", data)
}

// replaceFile writes a file under a temporary name and renames it, so that a reader finds the old
// contents or the new.
func replaceFile(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
}
