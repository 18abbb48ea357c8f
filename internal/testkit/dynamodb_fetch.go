package testkit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// dynamodbPOM names DynamoDB Local and its version to Maven.
//
//go:embed dynamodb.pom.xml
var dynamodbPOM []byte

const (
	// dynamodbFolder is its folder below .cache; each version has its own.
	dynamodbFolder = "dynamodb/local-3.1.0"
	// copyDependencies is the Maven goal that gathers jars and native libraries in one folder.
	copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
	// minJava is the first Java release on which it runs.
	minJava = 17
)

// javaVersion finds the release in the output of java -version, such as `openjdk version
// "17.0.15"`.
var javaVersion = regexp.MustCompile(`version "(\d+)`)

// fetchDynamoDB returns the path of Java and the folder with the files of DynamoDB Local. Maven
// fetches them, because it knows the machine's mirrors. It runs once, and for no longer than
// fetchTimeout.
func fetchDynamoDB(ctx context.Context) (java, dir string, err error) {
	java, err = findJava(ctx)
	if err != nil {
		return "", "", err
	}
	dir, err = makeCacheFolder(dynamodbFolder)
	if err != nil {
		return "", "", err
	}
	err = once(dir, func(dir string) error {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		return mavenCopy(ctx, dir)
	})
	return java, dir, err
}

func mavenCopy(ctx context.Context, dir string) error {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("no Maven to fetch it with: %w", err)
	}
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, dynamodbPOM, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, maven, //nolint:gosec // It was looked up.
		"--quiet", "--batch-mode", "--file", pom, copyDependencies, "-DoutputDirectory="+dir)
	cmd.WaitDelay = stopGrace
	_, err = output(cmd)
	return err
}

// findJava returns a Java that is new enough.
func findJava(ctx context.Context) (string, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("no Java %d: %w", minJava, err)
	}
	out, err := output(exec.CommandContext(ctx, java, "-version")) //nolint:gosec // It was looked up.
	if err != nil {
		return "", err
	}
	return java, checkJava(out)
}

// checkJava checks the output of java -version.
func checkJava(says string) error {
	m := javaVersion.FindStringSubmatch(says)
	if m == nil {
		return errors.New("java -version names no version: " + last(says))
	}
	if release, err := strconv.Atoi(m[1]); err != nil || release < minJava {
		return fmt.Errorf("java is version %q, want %d or later", m[1], minJava)
	}
	return nil
}
