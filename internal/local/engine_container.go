package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// Image is the image with DynamoDB Local, in a form that every container engine resolves.
	Image = "docker.io/amazon/dynamodb-local:" + Version
	// containerPort is the port of the server in its container.
	containerPort = "8000"
	// containerData is the folder with the data in the container.
	containerData = "/data"
	// pullTimeout bounds the start of a container, with the download of the image.
	pullTimeout = 15 * time.Minute
)

// container runs DynamoDB Local in a container.
type container struct {
	server  *Server
	program string
}

func (c *container) name() string { return c.program }

// start runs a container in the background, which begins at once. The engine bounds its log.
func (c *container) start(
	ctx context.Context, s *State,
) (begin func(bool) error, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, c.arguments(s)...) //nolint:gosec // One of three names.
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	if c.server.Messages != nil {
		cmd.Stderr = io.MultiWriter(&says, c.server.Messages)
	}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s run %s: %w: %s", c.program, Image, err, strings.TrimSpace(says.String()))
	}
	id := strings.TrimSpace(out.String())
	s.Container = id[strings.LastIndexByte(id, '\n')+1:]
	if s.Container == "" {
		return nil, fmt.Errorf("%s run %s: it names no container", c.program, Image)
	}
	return func(bool) error { return nil }, nil
}

func (c *container) arguments(s *State) []string {
	args := []string{
		"run", "--detach", "--label", "weir=local",
		"--publish", "127.0.0.1:" + strconv.Itoa(s.Port) + ":" + containerPort,
		"--log-driver", "json-file", "--log-opt", "max-size=1m",
	}
	inside := ""
	if s.Data != "" {
		inside = containerData
		args = append(args, "--volume", s.Data+":"+inside)
		// The files in the folder shall belong to the user.
		switch uid := os.Getuid(); {
		case uid < 0: // Windows
		case c.program == "podman":
			args = append(args, "--userns", "keep-id")
		case c.program == "docker":
			args = append(args, "--user", strconv.Itoa(uid)+":"+strconv.Itoa(os.Getgid()))
		}
	}
	args = append(args, Image, "-jar", "DynamoDBLocal.jar")
	return append(args, storageArguments(inside)...)
}

// ask runs a command of the engine and returns its output.
func (c *container) ask(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, c.program, args...).CombinedOutput() //nolint:gosec // One of three names.
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s %s: %w: %s", c.program, args[0], err, text)
	}
	return text, nil
}

// runs finds the container by its ID among those that run. So an engine that does not answer is an
// error, and not a container that is gone.
func (c *container) runs(ctx context.Context, s *State) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	out, err := c.ask(ctx, "ps", "--quiet", "--no-trunc", "--filter", "id="+s.Container)
	if err != nil {
		return false, fmt.Errorf("is DynamoDB Local still in its container? %w: start %s; "+
			"if the container is gone, remove %s", err, c.program, filepath.Join(c.server.Folder, stateFile))
	}
	return out != "", nil
}

func (c *container) stop(ctx context.Context, s *State) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	known, err := c.ask(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", "id="+s.Container)
	if known == "" || err != nil {
		return err
	}
	_, stopErr := c.ask(ctx, "stop", s.Container)
	_, err = c.ask(ctx, "rm", "--force", s.Container)
	if err == nil {
		return nil
	}
	return errors.Join(stopErr, err)
}

func (c *container) lastWords(ctx context.Context, s *State) string {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	out, err := c.ask(ctx, "logs", "--tail", "20", s.Container)
	if err != nil {
		return err.Error()
	}
	return out
}

func (c *container) logs(ctx context.Context, s *State, to io.Writer, follow bool) error {
	args := []string{"logs"}
	if follow {
		args = append(args, "--follow")
	}
	cmd := exec.CommandContext(ctx, c.program, append(args, s.Container)...) //nolint:gosec // One of three names.
	cmd.Stdout, cmd.Stderr = to, to
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s logs: %w", c.program, errors.Join(ctx.Err(), err))
	}
	return nil
}
