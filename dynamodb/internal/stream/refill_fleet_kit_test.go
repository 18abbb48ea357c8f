package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/kernel"
)

// fleetRate is the limit that the calls of a fleet share: each takes a unit, and one comes back
// every second. Another limit beside it has always enough.
var fleetRate = kernel.Rate{CapacityMilli: 20_000, RefillMilli: 60_000, PeriodMS: 60_000}

var fleetCosts = weir.Costs{"rpm": 1, "tpm": 100}

// The kinds of clients.
const (
	inGo     = "Go"
	inPython = "Python"
)

// fleetEvery is the time between two passes of the aggregator.
const fleetEvery = 5 * time.Second

// fleet is clients of one bucket, which call in turn, and an aggregator. Time is virtual, and the
// records are made from the item before and after each call, so that nothing depends on the
// machine.
type fleet struct {
	*world
	// units counts the calls of the aggregator.
	units   testkit.Counter
	kinds   []string
	callers []caller
	calls   []fleetCall

	// records are those since the last pass of the aggregator.
	records    []*aggregator.Record
	last       schema.Item // the item after the last call; nil after a pass
	aggregator *stream.Reader
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

// cost has the round trips and write units of a client's call.
type cost struct{ trips, milli int64 }

// caller makes one call.
type caller func() (admitted bool, c cost)

// newFleet returns a fleet of kinds of clients with a bucket that has been full for a minute.
func newFleet(t *testing.T, kinds []string, p *python, refill bool) *fleet {
	t.Helper()
	f := &fleet{world: newWorld(t), kinds: kinds}
	noStream := &ddb.UpdateTableInput{ // it slows DynamoDB Local down
		TableName:           &f.table.Name,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: new(false)},
	}
	if _, err := f.c.API.UpdateTable(t.Context(), noStream); err != nil {
		t.Fatal(err)
	}
	l := f.process()
	const minute = time.Minute
	limits := []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: 20, RefillAmount: 60, RefillPeriod: minute},
		{Name: "tpm", Kind: weir.Bucket, Capacity: 60e3, RefillAmount: 60e3, RefillPeriod: minute},
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
	c := f.client(f.units.Install)
	f.aggregator = f.readerOf(c, func(o *stream.Options) { o.Refill = refill })
	f.clock.next(start.Add(time.Minute)) // full again
	f.callers[0]()
	f.clock.next(start.Add(2 * time.Minute))
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
			"table": f.table.Name, "now_ms": f.clock.now().UnixMilli(),
			"entity": "acme", "resource": resource, "costs": fleetCosts,
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

// call makes the next client call, and notes its record.
func (f *fleet) call() {
	f.Helper()
	c := fleetCall{at: f.clock.now(), kind: f.kinds[len(f.calls)%len(f.kinds)]}
	acme := &schema.Bucket{Namespace: f.ns, Entity: "acme", Resource: resource}
	r := &aggregator.Record{
		Kind: aggregator.Modified, Key: acme.ID().Key(), At: c.at.Truncate(time.Second), Old: f.last,
	}
	if r.Old == nil {
		r.Old = f.stored(acme)
	}
	b, err := schema.ParseBucket(r.Old)
	if err != nil {
		f.Fatal(err)
	}
	c.value = b.Limit("rpm").Balance + fleetRate.Gain(b.RefilledMS, c.at.UnixMilli())
	c.admitted, c.cost = f.callers[len(f.calls)%len(f.callers)]()
	f.calls = append(f.calls, c)
	r.New = f.stored(acme)
	if f.last = r.New; !reflect.DeepEqual(r.Old, r.New) {
		f.records = append(f.records, r)
	}
}

// pass makes the aggregator refill after the records since its last pass.
func (f *fleet) pass() {
	f.aggregator.Refill(f.Context(), f.records)
	f.records, f.last = f.records[:0], nil
}
