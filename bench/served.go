package main

import (
	"context"
	"errors"
	"runtime"
)

// serverItem is the HTTP handler beside one that does nothing.
func serverItem() item {
	return item{
		name:  "server",
		title: "HTTP: reserve and complete in turn, 32 connections, one core for the server",
		worlds: []worldSpec{
			{Name: worldServer, Live: 1_000, Remembered: memorySize, Keys: 1, Procs: 1, CPUs: serverCPU()},
			{Name: worldPlain, Keys: 1, Procs: 1, CPUs: serverCPU()},
		},
		sides: []side{
			{"weir's handler", 0, worldServer},
			{"a handler that does nothing", 1, worldPlain},
		},
		ratios: []ratio{{
			over: 1, under: 0, goal: 600, aim: 800, least: true,
			label: "requests/s of weir : of the one that does nothing",
		}},
		note: "The other handler reads the whole body and writes the bytes and headers that weir " +
			"would. CPU, allocs and B are the server's; the generator has a core of its own.",
		speeds: true,
		served: true,
	}
}

// servedRunner asks a server by way of the generator of load. The time is the generator's; processor
// time and memory are the server's.
type servedRunner struct {
	load, server *process
}

func (r *servedRunner) run(work string, ops int) (m measure, err error) {
	if err := thaw(r.server.cmd.Process); err != nil {
		return measure{}, err
	}
	defer func() { err = errors.Join(err, freeze(r.server.cmd.Process)) }()
	if _, err := r.server.ask(&order{Work: workBegin}); err != nil {
		return measure{}, err
	}
	asked, err := r.load.run(work, ops)
	if err != nil {
		return measure{}, err
	}
	served, err := r.server.ask(&order{Work: workEnd})
	if err != nil {
		return measure{}, err
	}
	asked.LoadCPU = asked.CPU
	asked.CPU, asked.Mallocs, asked.Bytes = served.CPU, served.Mallocs, served.Bytes
	asked.Ops = asked.Admitted // a pair more than asked for on some connections
	return asked, nil
}

// startLoad starts the generator for servers that listen already, and pairs it with each.
func startLoad(ctx context.Context, it *item, servers []*process) (*process, []runner, error) {
	spec := &worldSpec{Name: worldLoad, Keys: 1, Procs: 1, CPUs: loadCPU(), Servers: map[string]string{}}
	for i, p := range servers {
		spec.Servers[it.worlds[i].Name] = p.address
		if err := thaw(p.cmd.Process); err != nil {
			return nil, nil, err
		}
	}
	load, err := startProcess(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	var runners []runner
	for _, p := range servers {
		if err := freeze(p.cmd.Process); err != nil {
			return nil, nil, errors.Join(err, load.close())
		}
		runners = append(runners, &servedRunner{load: load, server: p})
	}
	return load, runners, nil
}

// serverCPU and loadCPU keep a server and its load apart, so that what is compared is the server's
// share. With one processor they share it.
func serverCPU() string { return pinned("0") }

func loadCPU() string { return pinned("1") }

func pinned(cpu string) string {
	if runtime.NumCPU() < 2 {
		return ""
	}
	return cpu
}
