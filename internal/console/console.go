// Package console is what every command is made of: its arguments and flags, the files and streams
// that it reads and writes, the terminal it may draw on, and how it ends.
//
// [App] is one run of the program. Nothing in the package is shared between two of them, so that
// tests run commands side by side.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Streams are what a command reads from and writes to.
type Streams struct {
	// In is where "-" reads from.
	In io.Reader
	// Out gets results and help.
	Out io.Writer
	// Err gets errors, and progress where it is a terminal.
	Err io.Writer
}

// Execute runs a command line on a tree of commands, and returns the exit code.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	root.SetIn(a.Streams.In)
	out := &helpWriter{to: a.Streams.Out}
	root.SetOut(out)
	root.SetErr(a.Streams.Err)
	addCompletion(root)
	err := errors.Join(root.ExecuteContext(ctx), FailedError(out.failure()))
	a.printError(err)
	return ExitCode(err)
}

// App is one run of the program.
type App struct {
	Streams Streams
	Env     func(string) string
}

// helpWriter is where cobra writes help and completions. Cobra does not say when that failed, or in
// its own words, so the writer keeps it.
type helpWriter struct {
	to  io.Writer
	err error
}

// Write always succeeds.
func (w *helpWriter) Write(b []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
	return len(b), nil
}

// failure says what could not be written.
func (w *helpWriter) failure() error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("output: %w", w.err)
}

// Version says which build a program is.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// BuildVersion is what the linker noted. A build from a working tree has no version.
func BuildVersion() *Version {
	v := &Version{
		Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
