package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// preamble says what ran where, so that figures can be told apart later.
func preamble(w io.Writer, s *settings) error {
	var rivals []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Replace == nil && m.Path != "" && !isPart(m.Path) {
				rivals = append(rivals, m.Path+" "+m.Version)
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s %s/%s, %s, %s of %s. Built with %s.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, counted(runtime.NumCPU(), "processor"),
		counted(s.rounds, "round"), s.slice, strings.Join(rivals, ", "))
	return err
}

// isPart reports whether a module is one of the many small ones that the AWS SDK's client of DynamoDB
// brings along.
func isPart(path string) bool {
	const sdk, client = "github.com/aws/aws-sdk-go-v2/", "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	return strings.HasPrefix(path, sdk) && path != client
}
