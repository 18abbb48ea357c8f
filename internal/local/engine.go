package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// engine runs a server.
type engine interface {
	// name is the word for it in --engine.
	name() string
	// start starts a server, and sets in its state what is needed to find it again. The caller
	// writes the state, and calls begin: with true, or with false if the server shall not begin.
	start(ctx context.Context, s *State) (begin func(bool) error, err error)
	// runs reports whether the server that was started runs.
	runs(ctx context.Context, s *State) (bool, error)
	// stop ends the server, if it runs, and removes what is left of it.
	stop(ctx context.Context, s *State) error
	// lastWords returns the end of the log of a server that has ended.
	lastWords(ctx context.Context, s *State) string
	// logs writes the log; with follow, until the server or ctx ends.
	logs(ctx context.Context, s *State, to io.Writer, follow bool) error
}

// javaEngine is the name of the engine that needs no container.
const javaEngine = "java"

// containerEngines are the programs that run containers, the first one that answers is used.
var containerEngines = []string{"docker", "podman", "nerdctl"}

// Engines returns the names of all engines.
func Engines() []string { return append([]string{javaEngine}, containerEngines...) }

// engineTimeout bounds the question whether a container engine answers.
const engineTimeout = 20 * time.Second

// engineOf returns the engine that has started a server.
func (l *Server) engineOf(s *State) engine {
	if s.Engine == javaEngine {
		return &java{server: l}
	}
	return &container{server: l, program: s.Engine}
}

// chooseEngine returns the engine with a name, or without a name the first that works here.
func (l *Server) chooseEngine(ctx context.Context, name string) (engine, error) {
	if name != "" && !slices.Contains(Engines(), name) {
		return nil, fmt.Errorf("engine %q: must be %s", name, strings.Join(Engines(), ", "))
	}
	var noJava error
	if name == "" || name == javaEngine {
		path, err := FindJava(ctx, l.Env)
		if err == nil {
			return &java{server: l, path: path}, nil
		}
		noJava = err
	}
	if name == javaEngine {
		return nil, noJava
	}
	var missing []string
	for _, program := range containerEngines {
		if name != "" && name != program {
			continue
		}
		err := engineAnswers(ctx, program)
		if err == nil {
			return &container{server: l, program: program}, nil
		}
		missing = append(missing, err.Error())
	}
	if name != "" {
		return nil, fmt.Errorf("%s: start it, or use --engine java", missing[0])
	}
	return nil, fmt.Errorf("%w; or use a container engine (%s)", noJava, strings.Join(missing, ", "))
}

// engineAnswers reports whether a container engine is there and its daemon answers.
func engineAnswers(ctx context.Context, program string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return errors.New(program + " is not on PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	if err := exec.CommandContext(ctx, path, "ps", "--quiet").Run(); err != nil { //nolint:gosec // It was looked up.
		return errors.New(program + " does not answer")
	}
	return nil
}
