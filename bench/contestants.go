package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// contestSpec is what a contestant is told first: the table, and who calls.
type contestSpec struct {
	Table    string `json:"table"`
	Region   string `json:"region"`
	Endpoint string `json:"endpoint"`
	// Capacity is that of the one limit, rpm, which holds for each entity.
	Capacity int64 `json:"capacity"`
	// Parent is the entity to which all others cascade; empty for none.
	Parent string `json:"parent"`
	// Callers has a list of entities for each caller, who takes them in turn.
	Callers [][]string `json:"callers"`
	// Everybody has the callers of all processes of the contestant, of whom Callers are some.
	Everybody [][]string `json:"everybody"`
	// Declare is true where the contestant writes limit and entities, false where another process has.
	Declare bool `json:"declare"`
	// Connections is how many the Python client may keep; 0 for what it does by itself.
	Connections int `json:"connections"`
	// Warm is how many calls of weir go before its writes are copied by the bare SDK.
	Warm int `json:"warm"`
	// Profile is the file that gets a CPU profile of all that weir does after it was warm; empty for none.
	Profile string `json:"profile"`
}

// contestReply answers an order.
type contestReply struct {
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	NS       int64 `json:"ns"`
	CPU      int64 `json:"cpu_ns"` // of the contestant
	// Writes, ParentWrites and Reads are requests to DynamoDB. Python's are not counted.
	Writes       int64  `json:"writes"`
	ParentWrites int64  `json:"parent_writes"`
	Reads        int64  `json:"reads"`
	Error        string `json:"error,omitempty"`
}

// The orders to a contestant, each on a line with a number behind it.
const (
	orderWarm = "warm" // so many calls, by all callers together
	orderRun  = "run"  // calls for so many seconds
	orderBoth = "both" // the same, and each lease is completed; weir alone
)

// contestant is one side of a contest, in a process of its own.
type contestant interface {
	// call makes the caller's next call, and reports whether it was admitted.
	call(ctx context.Context, entity string, complete bool) (bool, error)
	counts() *requestCounter
	close() error
}

// serveContestant obeys the orders to one contestant until there are no more.
func serveContestant(name string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	lines, replies := bufio.NewReader(in), json.NewEncoder(out)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("bench: %s: %w", name, err)
	}
	var spec contestSpec
	if err := json.Unmarshal(first, &spec); err != nil {
		return fmt.Errorf("bench: %s: %w", name, err)
	}
	c, err := openContestant(ctx, name, &spec)
	if err != nil {
		return replies.Encode(contestReply{Error: err.Error()})
	}
	err = obeyAll(ctx, c, &spec, lines, replies)
	pprof.StopCPUProfile() // if there is one
	return errors.Join(err, c.close())
}

func obeyAll(
	ctx context.Context, c contestant, spec *contestSpec, lines *bufio.Reader, replies *json.Encoder,
) error {
	if err := replies.Encode(contestReply{}); err != nil {
		return err
	}
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := obeyOrder(ctx, c, spec, strings.TrimSpace(line))
		if err != nil {
			r.Error = err.Error()
		}
		if err := replies.Encode(r); err != nil {
			return err
		}
	}
}

// obeyOrder does what one line says, and returns what became of it.
func obeyOrder(
	ctx context.Context, c contestant, spec *contestSpec, order string,
) (contestReply, error) {
	what, much, _ := strings.Cut(order, " ")
	switch what {
	case orderWarm:
		calls, err := strconv.ParseInt(much, 10, 64)
		if err != nil {
			return contestReply{}, fmt.Errorf("order %q: %w", order, err)
		}
		return callAll(ctx, c, spec, false, after(calls))
	case orderRun, orderBoth:
		length, err := time.ParseDuration(much + "s")
		if err != nil {
			return contestReply{}, fmt.Errorf("order %q: %w", order, err)
		}
		if err := spec.profile(); err != nil {
			return contestReply{}, err
		}
		end := time.Now().Add(length)
		return callAll(ctx, c, spec, what == orderBoth, func() bool { return !time.Now().Before(end) })
	}
	return contestReply{}, fmt.Errorf("order %q: must be warm, run or both", order)
}

// profile starts the profile, once.
func (s *contestSpec) profile() error {
	if s.Profile == "" {
		return nil
	}
	f, err := os.Create(s.Profile)
	if err != nil {
		return err
	}
	s.Profile = ""
	return pprof.StartCPUProfile(f) // the file is closed by the end of the process
}

// after says that there was enough once so many calls have begun.
func after(calls int64) func() bool {
	var begun atomic.Int64
	return func() bool { return begun.Add(1) > calls }
}

// callAll lets all callers call, each in its goroutine, until there was enough or one fails.
func callAll(
	ctx context.Context, c contestant, spec *contestSpec, complete bool, enough func() bool,
) (contestReply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var admitted, denied atomic.Int64
	var group sync.WaitGroup
	before := c.counts().snapshot()
	cpu, begun := processorTime(), time.Now()
	for _, entities := range spec.Callers {
		group.Go(func() {
			var yes, no int64
			for i := 0; ctx.Err() == nil && !enough(); i = (i + 1) % len(entities) {
				ok, err := c.call(ctx, entities[i], complete)
				switch {
				case err != nil:
					cancel(fmt.Errorf("%s: %w", entities[i], err))
				case ok:
					yes++
				default:
					no++
				}
			}
			admitted.Add(yes)
			denied.Add(no)
		})
	}
	group.Wait()
	r := c.counts().snapshot()
	return contestReply{
		Admitted: admitted.Load(), Denied: denied.Load(),
		NS: time.Since(begun).Nanoseconds(), CPU: processorTime() - cpu,
		Writes: r.writes - before.writes, ParentWrites: r.parent - before.parent, Reads: r.reads - before.reads,
	}, context.Cause(ctx)
}

// The contestants of this program.
const (
	contestWeir = "weir"
	contestBare = "bare"
)

// openContestant opens one by its name.
func openContestant(ctx context.Context, name string, spec *contestSpec) (contestant, error) {
	switch name {
	case contestWeir:
		return openWeirOnTable(ctx, spec)
	case contestBare:
		return openBare(ctx, spec)
	}
	return nil, fmt.Errorf("name %q: no such contestant", name)
}
