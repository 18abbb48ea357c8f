package testkit

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weir-limiter/weir/internal/local"
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
)

// fetchDynamoDB returns the path of Java and the folder with the files of DynamoDB Local. Maven
// fetches them, because it knows the machine's mirrors, and because internal/local, which fetches
// them without Maven, is tested with what Maven resolves. It runs once, and for no longer than
// fetchTimeout.
func fetchDynamoDB(ctx context.Context) (java, dir string, err error) {
	java, err = local.FindJava(ctx, os.Getenv)
	if err != nil {
		return "", "", err
	}
	dir, err = makeCacheFolder(dynamodbFolder)
	if err != nil {
		return "", "", err
	}
	err = once(ctx, dir, func(dir string) error {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		return mavenCopy(ctx, dir)
	})
	return java, dir, err
}

// DynamoDBFiles returns the folder with the files of DynamoDB Local, which Maven has fetched. The
// test is skipped as by [DynamoDB].
func DynamoDBFiles(t testing.TB) string {
	t.Helper()
	_, dir, err := fetchDynamoDB(t.Context())
	if err != nil {
		Require(t, dynamodbTool, err.Error())
	}
	return dir
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
