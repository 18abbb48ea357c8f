package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// contestArgument, with a contestant's name behind it, makes this program that contestant.
const contestArgument = "contestant"

// contestProcess is a contestant seen from the parent.
type contestProcess struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies *json.Decoder
}

// startContestant starts a command and tells it what the contest is about. Its first reply is still
// to come. The end of the command's context kills it.
func startContestant(cmd *exec.Cmd, spec *contestSpec) (*contestProcess, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &contestProcess{cmd: cmd, in: in, replies: json.NewDecoder(out)}
	if err := json.NewEncoder(in).Encode(spec); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// ask gives one order and waits for what becomes of it.
func (p *contestProcess) ask(order string) (contestReply, error) {
	if _, err := io.WriteString(p.in, order+"\n"); err != nil {
		return contestReply{}, fmt.Errorf("bench: a contestant does not listen: %w", err)
	}
	return p.reply()
}

func (p *contestProcess) reply() (contestReply, error) {
	var r contestReply
	if err := p.replies.Decode(&r); err != nil {
		return contestReply{}, fmt.Errorf("bench: a contestant does not answer: %w", err)
	}
	if r.Error != "" {
		return contestReply{}, errors.New("bench: " + r.Error)
	}
	return r, nil
}

// close lets the process end by itself: it does when there are no more orders.
func (p *contestProcess) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// ownCommand is this program as a contestant.
func ownCommand(ctx context.Context, name string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, self, contestArgument, name), nil //nolint:gosec // This program itself.
}
