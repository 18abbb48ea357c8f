package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// workerArgument is the argument that makes this program a worker.
const workerArgument = "worker"

//go:embed testdata/zae_worker.py
var pythonProgram string

// worker is the parent's handle on a process that runs orders.
type worker struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	replies *json.Decoder
	address string // the address that its workload listens on, if it does
}

// startWorker starts a process and has it set up a workload. The process is killed when the context
// ends.
func startWorker(ctx context.Context, s *spec, e *environment) (*worker, error) {
	args := []string{e.python, "-c", pythonProgram}
	if s.Kind != kindPython {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		args = []string{self, workerArgument}
	}
	if s.CPUs != "" {
		if taskset, err := exec.LookPath("taskset"); err == nil {
			args = append([]string{taskset, "-c", s.CPUs}, args...)
		}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // This program, or the Python found.
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), e.variables...)
	if s.Procs > 0 {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(s.Procs))
	}
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
	w := &worker{cmd: cmd, in: in, orders: json.NewEncoder(in), replies: json.NewDecoder(out)}
	r, err := w.ask(&command{Open: s})
	if err != nil {
		return nil, errors.Join(err, w.stop())
	}
	w.address = r.Address
	return w, nil
}

// ask sends an order and waits for the reply.
func (w *worker) ask(o *command) (reply, error) {
	var r reply
	if err := w.orders.Encode(o); err != nil {
		return r, fmt.Errorf("a worker does not listen: %w", err)
	}
	if err := w.replies.Decode(&r); err != nil {
		return r, fmt.Errorf("a worker does not answer: %w", err)
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// stop closes the input of the process, and waits until the process has exited.
func (w *worker) stop() error {
	return errors.Join(thaw(w.cmd.Process), w.in.Close(), w.cmd.Wait())
}

// team is the processes of one contestant. They are stopped while they have no order.
type team struct {
	workers []*worker // each has a part of the callers
	server  *worker   // the server that they call; nil if there is none
}

// openTeam starts a contestant's processes one after the other, because the first one declares what
// all of them use. The caller closes the team, even if there is an error.
func openTeam(ctx context.Context, c *contestant, e *environment) (*team, error) {
	t, s := &team{}, c.spec
	var err error
	if c.server != nil {
		if t.server, err = startWorker(ctx, c.server, e); err != nil {
			return t, err
		}
		s.Address = t.server.address
	}
	s.All = s.Callers
	share := (s.All + max(1, c.processes) - 1) / max(1, c.processes)
	for s.First = 0; s.First < s.All; s.First += share {
		s.Callers = min(share, s.All-s.First)
		s.Declare = s.First == 0
		w, err := startWorker(ctx, &s, e)
		if err != nil {
			return t, err
		}
		t.workers = append(t.workers, w)
	}
	return t, t.each(freeze)
}

// run sends an order to all workers in parallel, and returns the sum of their replies, but the time
// of the slowest worker. With a server, it returns the costs of the server instead.
func (t *team) run(o command) (sum reply, err error) {
	if err := t.each(thaw); err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, t.each(freeze)) }()
	var before, after reply
	if t.server != nil {
		if before, err = t.server.ask(&command{Profile: o.Profile}); err != nil {
			return sum, err
		}
		o.Profile = ""
	}
	o.Ops = (o.Ops + len(t.workers) - 1) / len(t.workers)
	replies, errs := make([]reply, len(t.workers)), make([]error, len(t.workers))
	var group sync.WaitGroup
	for i, w := range t.workers {
		group.Go(func() { replies[i], errs[i] = w.ask(&o) })
	}
	group.Wait()
	var slowest int64
	for i := range replies {
		sum.add(&replies[i])
		slowest = max(slowest, replies[i].NS)
	}
	sum.NS = slowest
	if err := errors.Join(errs...); err != nil || t.server == nil {
		return sum, err
	}
	if after, err = t.server.ask(&command{}); err != nil {
		return sum, err
	}
	sum.Other, sum.CPU = sum.CPU, after.CPU-before.CPU
	sum.Mallocs, sum.Bytes = after.Mallocs-before.Mallocs, after.Bytes-before.Bytes
	return sum, nil
}

// processes returns all workers, the server first.
func (t *team) processes() []*worker {
	if t.server == nil {
		return t.workers
	}
	return append([]*worker{t.server}, t.workers...)
}

func (t *team) each(signal func(*os.Process) error) error {
	var errs []error
	for _, w := range t.processes() {
		errs = append(errs, signal(w.cmd.Process))
	}
	return errors.Join(errs...)
}

func (t *team) stop() error {
	var errs []error
	for _, w := range t.processes() {
		errs = append(errs, w.stop())
	}
	return errors.Join(errs...)
}
