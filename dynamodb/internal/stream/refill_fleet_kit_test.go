package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/kernel"
)

// fleetRate is the limit that the calls of a fleet share: each takes a unit, and one comes back every
// second. Another limit beside it has always enough.
var fleetRate = kernel.Rate{CapacityMilli: 20_000, RefillMilli: 60_000, PeriodMS: 60_000}

var fleetCosts = weir.Costs{"rpm": 1, "tpm": 100}

// The kinds of clients.
const (
	inGo     = "Go"
	inPython = "Python"
)

// fleetEvery is the time between two passes of the aggregator.
const fleetEvery = 5 * time.Second

// fleet is clients of one bucket, which call in turn, and an aggregator. Time is virtual.
type fleet struct {
	*world
	// units counts the calls of the aggregator.
	units   testkit.Counter
	kinds   []string
	callers []caller
	calls   []fleetCall

	pass, passed chan struct{}
	reader       *stream.Reader
}

// fleetCall is a call of a client.
type fleetCall struct {
	at       time.Time
	kind     string
	admitted bool
	cost     cost
	// value is the balance before the call with all that it gained since the last refill, even above
	// the capacity, in milli-units.
	value int64
}

// cost is what a call costs its client.
type cost struct{ trips, milli int64 }

// caller makes one call.
type caller func() (admitted bool, c cost)

// newFleet returns a fleet of kinds of clients with a bucket that has been full for a minute.
func newFleet(t *testing.T, kinds []string, p *python, refill bool) *fleet {
	t.Helper()
	f := &fleet{world: newWorld(t), kinds: kinds, pass: make(chan struct{}), passed: make(chan struct{})}
	l := f.process()
	limits := []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: 20, RefillAmount: 60, RefillPeriod: time.Minute},
		{Name: "tpm", Kind: weir.Bucket, Capacity: 60_000, RefillAmount: 60_000, RefillPeriod: time.Minute},
	}
	if err := l.SetLimits(t.Context(), weir.Subject{}, limits); err != nil {
		t.Fatal(err)
	}
	f.close(l)
	for _, kind := range kinds {
		if kind == inGo {
			f.callers = append(f.callers, f.goCaller())
		} else {
			f.callers = append(f.callers, f.pythonCaller(p))
		}
	}
	for _, call := range f.callers { // the item is made, and each client knows it
		call()
	}
	f.aggregate(refill)
	f.at(start.Add(time.Minute)) // full again
	f.callers[0]()
	f.next()
	f.at(start.Add(2 * time.Minute))
	f.units.Reset()
	return f
}

// goCaller returns a client that is weir.
func (f *fleet) goCaller() caller {
	f.Helper()
	var counter testkit.Counter
	l := f.process(func(o *dynamodb.Options) {
		o.ProcessLeases, o.Client = true, []func(*ddb.Options){counter.Install}
	})
	f.Cleanup(func() {
		if err := l.Close(); err != nil {
			f.Error(err)
		}
	})
	return func() (bool, cost) {
		counter.Reset()
		_, err := l.Reserve(f.Context(), f.request())
		if _, denied := errors.AsType[*weir.DeniedError](err); err != nil && !denied {
			f.Fatal(err)
		}
		total := counter.Snapshot().Total()
		return err == nil, cost{
			total.Attempts,
			total.Capacity.WriteMilli + 1000*total.Errors["ConditionalCheckFailedException"],
		}
	}
}

func (*fleet) request() *weir.Request {
	return &weir.Request{Entity: "acme", Resource: resource, Costs: fleetCosts}
}

// python is a process with the Python library, which makes one call for each line.
type python struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Scanner
}

// newPython starts a process that ends with the test.
func newPython(t *testing.T) *python {
	t.Helper()
	local := testkit.DynamoDB(t)
	spec, err := json.Marshal(map[string]string{
		"endpoint": local.Endpoint(), "namespace": schema.DefaultNamespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context()) // it ends with its input
	cmd := testkit.ZAE(t).Command(ctx, "python", "testdata/caller.py", string(spec))
	cmd.Env = append(slices.Concat(cmd.Env, local.Environment()), "HOME="+os.TempDir())
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	return &python{in: in, out: bufio.NewScanner(out)}
}

// pythonCaller returns a client that is the Python library.
func (f *fleet) pythonCaller(p *python) caller {
	return func() (bool, cost) {
		line, err := json.Marshal(map[string]any{
			"table": f.table.Name, "now_ms": f.clock.now().UnixMilli(), "entity": "acme", "resource": resource,
			"costs": fleetCosts,
		})
		if err != nil {
			f.Fatal(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, err := fmt.Fprintf(p.in, "%s\n", line); err != nil {
			f.Fatal(err)
		}
		var answer struct {
			Admitted bool
			Trips    int64
			Milli    int64 `json:"milli_units"`
		}
		if !p.out.Scan() {
			f.Fatal("python ended")
		}
		if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil {
			f.Fatalf("%v: %s", err, p.out.Bytes())
		}
		return answer.Admitted, cost{answer.Trips, answer.Milli}
	}
}

// aggregate starts the aggregator, which makes a pass for each call of next, and the first one now.
func (f *fleet) aggregate(refill bool) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	last := f.at(f.clock.now())
	f.reader = f.readerOf(f.client(f.units.Install), func(o *stream.Options) {
		o.Once, o.Refill = false, refill
		o.Source = &roundSource{source{stream.NewSource(f.c), f.clock}}
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			f.passed <- struct{}{}
			select {
			case <-f.pass:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	go func() { ended <- f.reader.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	f.wait(last)
}

// wait waits until the aggregator has ended a pass, in which it must have read the marker of a phase.
func (f *fleet) wait(phase int) {
	f.Helper()
	select {
	case <-f.passed:
	case <-f.Context().Done():
		f.Fatal("the aggregator does not end its pass")
	}
	if !f.clock.seen(phase) {
		f.Fatal("the aggregator has not read to the end")
	}
}

// next makes the aggregator read all records until now, as one batch.
func (f *fleet) next() {
	f.Helper()
	last := f.at(f.clock.now())
	f.pass <- struct{}{}
	f.wait(last)
}

// roundSource returns records only when all until the present are there, so that the batches do not
// depend on when DynamoDB Local shows records.
type roundSource struct{ source }

func (s *roundSource) GetRecords(
	ctx context.Context, in *dynamodbstreams.GetRecordsInput, o ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	out, err := s.source.GetRecords(ctx, in, o...)
	for err == nil && out.NextShardIterator != nil && !s.present() {
		more, next := out.Records, *in
		next.ShardIterator = out.NextShardIterator
		if out, err = s.source.GetRecords(ctx, &next, o...); err == nil {
			out.Records = append(more, out.Records...)
		}
	}
	return out, err
}

func (s *roundSource) present() bool {
	s.mu.Lock()
	last := len(s.times) - 1
	s.mu.Unlock()
	return s.seen(last)
}
