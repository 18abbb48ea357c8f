package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
)

// order is what a child is told: first a world to set up, then works to run in it.
type order struct {
	World *worldSpec `json:"world,omitempty"`
	Work  string     `json:"work,omitempty"`
	Ops   int        `json:"ops,omitempty"`
}

// reply answers an order.
type reply struct {
	Measure measure `json:"measure"`
	Address string  `json:"address,omitempty"` // of a world that listens
	Error   string  `json:"error,omitempty"`
}

// world is what a process has set up: works by name, where it listens if it does, and how to take it
// down.
type world struct {
	works   map[string]work
	address string
	close   func() error
}

// serveChild obeys orders until there are no more. It fails where it cannot read or answer; what
// goes wrong in a world is an answer.
func serveChild(in io.Reader, out io.Writer) error {
	orders, replies := json.NewDecoder(in), json.NewEncoder(out)
	var c child
	defer c.close()
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("bench: child: %w", err)
		}
		var r reply
		m, err := c.obey(&o)
		if err != nil {
			r.Error = err.Error()
		}
		r.Measure = m
		if c.world != nil {
			r.Address = c.world.address
		}
		if err := replies.Encode(&r); err != nil {
			return fmt.Errorf("bench: child: %w", err)
		}
	}
}

// child is a process that holds one world.
type child struct {
	world   *world
	profile *os.File
}

func (c *child) obey(o *order) (measure, error) {
	if o.World != nil {
		return measure{}, c.open(o.World)
	}
	if c.world == nil {
		return measure{}, errors.New("no world yet")
	}
	w := c.world.works[o.Work]
	if w == nil {
		return measure{}, fmt.Errorf("work %q: the world has none of that name", o.Work)
	}
	var m meter
	err := w(&m, o.Ops)
	return m.measure, err
}

// open sets up a world, and starts the profile after it.
func (c *child) open(spec *worldSpec) error {
	var err error
	if c.world, err = buildWorld(spec); err != nil {
		return fmt.Errorf("world %s: %w", spec.Name, err)
	}
	runtime.GC() // what the setting up left behind is nobody's cost
	if spec.Profile == "" {
		return nil
	}
	if c.profile, err = os.Create(spec.Profile); err != nil {
		return err
	}
	return pprof.StartCPUProfile(c.profile)
}

func (c *child) close() {
	if c.profile != nil {
		pprof.StopCPUProfile()
		_ = c.profile.Close()
	}
	if c.world != nil && c.world.close != nil {
		_ = c.world.close()
	}
}
