package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

// The protocol of all workers, in Go and in Python: each line on standard input is an order in
// JSON, and each line on standard output is the reply to one. The first order opens a workload. A
// worker exits at the end of its input.

// command is an order to a worker.
type command struct {
	// Open is the workload to open. The other fields are empty then.
	Open *spec `json:"open,omitempty"`
	// Work is the name of a work of the workload. If it is empty, the reply has the time and memory
	// that the process has used so far.
	Work string `json:"work,omitempty"`
	// Ops is the number of operations to do, of all callers together.
	Ops int `json:"ops,omitempty"`
	// NS is the time in nanoseconds for which to do operations, instead of Ops.
	NS int64 `json:"ns,omitempty"`
	// Profile is the file of a CPU profile, which begins with the first order that names one and
	// ends with the process. Python workers make none.
	Profile string `json:"profile,omitempty"`
}

// reply is the result of an order.
type reply struct {
	Ops      int64 `json:"ops"` // operations done, some of them admitted and some denied
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	NS       int64 `json:"ns"`     // wall time
	CPU      int64 `json:"cpu_ns"` // processor time of the process
	Mallocs  int64 `json:"mallocs"`
	Bytes    int64 `json:"bytes"`
	// P50 and P99 are the nanoseconds that half of the operations, and 99 in 100, took at most; 0
	// unless the order limited the time.
	P50 int64 `json:"p50_ns"`
	P99 int64 `json:"p99_ns"`
	// Counts is the number of requests to a store by their name. It is nil if the contestant does
	// not count them.
	Counts map[string]int64 `json:"counts,omitempty"`
	// Other is the processor time of the process at the other end: of the database, or of the
	// generator of load if the contestant is a server. It is 0 if it is not known.
	Other   int64  `json:"other_ns"`
	Address string `json:"address,omitempty"` // of a workload that listens
	Error   string `json:"error,omitempty"`
}

// add adds another reply. Latencies are not added: the larger one counts.
func (r *reply) add(o *reply) {
	r.Ops += o.Ops
	r.Admitted += o.Admitted
	r.Denied += o.Denied
	r.NS += o.NS
	r.CPU += o.CPU
	r.Mallocs += o.Mallocs
	r.Bytes += o.Bytes
	r.P50, r.P99 = max(r.P50, o.P50), max(r.P99, o.P99)
	r.Other += o.Other
	for name, n := range o.Counts {
		if r.Counts == nil {
			r.Counts = make(map[string]int64)
		}
		r.Counts[name] += n
	}
}

// perOp returns a number divided by the operations; 0 if there were none.
func (r *reply) perOp(n int64) float64 { return quotient(float64(n), float64(r.Ops)) }

// speed returns how many operations there were in a second.
func (r *reply) speed() float64 { return quotient(float64(r.Ops)*float64(time.Second), float64(r.NS)) }

// quotient returns a/b, and 0 if b is 0.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// spec describes the workload that a worker opens. Each kind of workload reads the fields that
// concern it.
type spec struct {
	Kind string `json:"kind"`
	// Entities are charged. Each caller takes Each of them in turn, by default all, and the callers
	// begin at equal distances.
	Entities []string `json:"entities"`
	Each     int      `json:"each,omitempty"`
	// Callers is the number of callers in this process. In all processes of the contestant there
	// are All, of which these begin with number First.
	Callers int `json:"callers"`
	First   int `json:"first"`
	All     int `json:"all"`
	// Procs is GOMAXPROCS; 0 for Go's default.
	Procs int `json:"procs,omitempty"`
	// CPUs is the list of processors to run on, as taskset takes it; empty for any.
	CPUs string `json:"cpus,omitempty"`
	// Live is how many leases are live at any time, and Ended how many ended ones are remembered
	// when the measuring begins. Only weir has any.
	Live  int `json:"live,omitempty"`
	Ended int `json:"ended,omitempty"`
	// Empty is set if the limit has nothing left, so that every operation is denied.
	Empty bool `json:"empty,omitempty"`
	// Address is the address of the server to ask.
	Address string `json:"address,omitempty"`
	// Addresses are the addresses of the TigerBeetle cluster.
	Addresses []string `json:"addresses,omitempty"`
	// Table is a table on DynamoDB, with its endpoint and region.
	Table    string `json:"table,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`
	// Capacity is the capacity of the only limit on a table, rpm, which each entity has.
	Capacity int64 `json:"capacity,omitempty"`
	// Parent is the entity to which all others cascade; empty for none.
	Parent string `json:"parent,omitempty"`
	// Declare is set if the contestant writes the limit and entities to the table, and not set if
	// another process has done so.
	Declare bool `json:"declare,omitempty"`
	// ProcessLeases keeps the leases in the process; otherwise they are in the table.
	ProcessLeases bool `json:"process_leases,omitempty"`
	// Warm and WarmNS are how many calls weir makes, or for how long, before its writes are copied.
	Warm   int   `json:"warm,omitempty"`
	WarmNS int64 `json:"warm_ns,omitempty"`
}

// cycle walks over the entities of one caller, by index, again and again.
type cycle struct{ first, each, all, taken int }

// cycle returns the cycle of a caller of this process.
func (s *spec) cycle(caller int) cycle {
	n := len(s.Entities)
	each := s.Each
	if each == 0 {
		each = n
	}
	return cycle{first: (s.First + caller) * n / max(1, s.All), each: each, all: n}
}

// next returns the index of the next entity.
func (c *cycle) next() int {
	i := c.first + c.taken
	if i >= c.all {
		i -= c.all
	}
	if c.taken++; c.taken == c.each {
		c.taken = 0
	}
	return i
}

// workload holds the contestant that a worker has set up.
type workload struct {
	works   map[string]*work
	counts  func() map[string]int64 // requests so far; nil to count none
	address string                  // the address it listens on, if it does
	close   func() error            // nil if there is nothing to close
}

// serveOrders runs orders until there are no more. It returns errors of reading and writing; errors
// of a workload are in the replies.
func serveOrders(in io.Reader, out io.Writer) (err error) {
	ctx := context.Background()
	orders, replies := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	w := &workload{}
	defer func() {
		pprof.StopCPUProfile() // if one was started
		if w.close != nil {
			err = errors.Join(err, w.close())
		}
	}()
	profiled := false
	for {
		var o command
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("bench: worker: %w", err)
		}
		r, err := reply{}, error(nil)
		if o.Profile != "" && !profiled {
			profiled, err = true, startProfile(o.Profile)
		}
		switch {
		case err != nil:
		case o.Open != nil:
			var opened *workload
			if opened, err = openWorld(ctx, o.Open); err == nil {
				w, r.Address = opened, opened.address
			}
			runtime.GC() // so that garbage of the setup is not collected during a measurement
		case o.Work == "":
			r = memoryUsage()
			r.CPU = processorTime()
		default:
			r, err = w.obey(ctx, &o)
		}
		if err != nil {
			r = reply{Error: err.Error()}
		}
		if err := replies.Encode(&r); err != nil {
			return fmt.Errorf("bench: worker: %w", err)
		}
	}
}

// obey does a work, and counts its requests to a store.
func (w *workload) obey(ctx context.Context, o *command) (reply, error) {
	work := w.works[o.Work]
	if work == nil {
		return reply{}, fmt.Errorf("work %q: the world has none of that name", o.Work)
	}
	if w.counts == nil {
		return work.run(ctx, o.Ops, time.Duration(o.NS))
	}
	before := w.counts()
	r, err := work.run(ctx, o.Ops, time.Duration(o.NS))
	r.Counts = w.counts()
	for name, n := range before {
		r.Counts[name] -= n
	}
	return r, err
}

// startProfile starts a CPU profile. The end of the process closes the file.
func startProfile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return pprof.StartCPUProfile(f)
}

// The kinds of workloads.
const (
	kindWeir      = "weir"
	kindCascade   = "weir, cascade"
	kindPlans     = "weir, plans only"
	kindParts     = "weir, parts"
	kindHandler   = "weir, handler"
	kindNoHandler = "handler that does nothing"
	kindLoad      = "load"
	kindXRate     = "x/time/rate"
	kindGoLimiter = "go-limiter"
	kindThrottled = "throttled"
	kindTable     = "weir, table"
	kindBareSDK   = "bare SDK"
	kindPython    = "zae-limiter" // a program of its own
	kindLedger    = "weir, ledger"
	kindRawLedger = "raw client"
)

// openers is the table of all contestants in Go.
var openers = map[string]func(context.Context, *spec) (*workload, error){
	kindWeir:      openWeir,
	kindCascade:   openCascade,
	kindPlans:     openPlans,
	kindParts:     openParts,
	kindHandler:   openServer,
	kindNoHandler: openServer,
	kindLoad:      openLoad,
	kindXRate:     openXRate,
	kindGoLimiter: openGoLimiter,
	kindThrottled: openThrottled,
	kindTable:     openTable,
	kindBareSDK:   openBareSDK,
	kindLedger:    openLedger,
	kindRawLedger: openRawLedger,
}

func openWorld(ctx context.Context, s *spec) (*workload, error) {
	open := openers[s.Kind]
	if open == nil {
		return nil, fmt.Errorf("world %q: there is none of that kind", s.Kind)
	}
	if s.Callers < 1 || s.Each > len(s.Entities) {
		return nil, fmt.Errorf("world %q: %d callers of %d entities, %d each", s.Kind, s.Callers,
			len(s.Entities), s.Each)
	}
	w, err := open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("world %q: %w", s.Kind, err)
	}
	return w, nil
}
