package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// childArgument makes this program a child.
const childArgument = "child"

// process is a child seen from the parent. It is frozen unless it is asked something.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	replies *json.Decoder
	address string // where its world listens, if it does
}

// startProcess starts a child and has it set up a world. The context's end kills it.
func startProcess(ctx context.Context, spec *worldSpec) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{self, childArgument}
	if spec.CPUs != "" {
		if taskset, err := exec.LookPath("taskset"); err == nil {
			args = append([]string{taskset, "-c", spec.CPUs}, args...)
		}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // This program itself.
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(max(1, spec.Procs)))
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
	p := &process{cmd: cmd, in: in, orders: json.NewEncoder(in), replies: json.NewDecoder(out)}
	if _, err := p.ask(&order{World: spec}); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, freeze(cmd.Process)
}

// run lets the child do a work, and nothing before or after it.
func (p *process) run(work string, ops int) (measure, error) {
	if err := thaw(p.cmd.Process); err != nil {
		return measure{}, err
	}
	m, err := p.ask(&order{Work: work, Ops: ops})
	return m, errors.Join(err, freeze(p.cmd.Process))
}

func (p *process) ask(o *order) (measure, error) {
	if err := p.orders.Encode(o); err != nil {
		return measure{}, fmt.Errorf("bench: a child does not listen: %w", err)
	}
	var r reply
	if err := p.replies.Decode(&r); err != nil {
		return measure{}, fmt.Errorf("bench: a child does not answer: %w", err)
	}
	p.address = r.Address
	if r.Error != "" {
		return measure{}, errors.New("bench: " + r.Error)
	}
	return r.Measure, nil
}

// close lets the child end by itself: it does when there are no more orders.
func (p *process) close() error {
	return errors.Join(thaw(p.cmd.Process), p.in.Close(), p.cmd.Wait())
}
