package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

// A process that is started and not in the state file yet could not be ended by weir if the process
// that has started it is killed at that moment. So what is started first is a process of weir that
// waits until its number is in the file, and then becomes Java, with the same number. If the one
// that has started it dies before, it ends.

// Wait waits until it is told to begin, through a pipe, and then becomes a program. If the pipe
// ends before that, or the program cannot be run, it returns an error.
func Wait(told io.Reader, program string, args []string) error {
	var word [1]byte
	if _, err := io.ReadFull(told, word[:]); err != nil {
		return fmt.Errorf("%s is not run: weir local up was ended before the state was written: %w",
			program, err)
	}
	return become(program, args)
}

// toldPipe is the number of the file through which a process of [Server.Wait] is told to begin.
const toldPipe = 3

// ToldPipe returns the pipe for [Wait]. What the process becomes does not inherit it.
func ToldPipe() *os.File {
	closeOnExec(toldPipe)
	return os.NewFile(toldPipe, "pipe")
}

// waiting starts a command that waits to be told, if the system allows it, or else the command
// itself. The caller calls tell once: with true to let it begin, or with false.
func (l *Server) waiting(cmd *exec.Cmd) (tell func(begin bool) error, err error) {
	if len(l.Wait) == 0 || !canBecome {
		return func(bool) error { return nil }, cmd.Start()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Args = slices.Concat(l.Wait, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path, cmd.ExtraFiles = l.Wait[0], []*os.File{r}
	err = cmd.Start()
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return func(begin bool) error {
		var err error
		if begin {
			_, err = w.Write([]byte{1})
		}
		return errors.Join(err, w.Close())
	}, nil
}
