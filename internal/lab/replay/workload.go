package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// WorkloadOptions have the properties of calls that a trace lacks.
type WorkloadOptions struct {
	// Entities is the number of tenants that make the calls, unless the trace names the callers.
	// Default: 1.
	Entities int
	// Seed determines the caller of each call, and the lease IDs. Default: 0.
	Seed uint64
	// Latency is the duration of calls, unless the trace has it. Default: a call ends in the
	// millisecond in which it began.
	Latency Latency
	// Costs are the costs of a call by the limit's name. Default: the built-in costs.
	Costs Costs
}

// Workload is the input of a replay: calls, and the entities that make them. It does not change, so
// it can be played against several limits, even concurrently.
type Workload struct {
	trace   *trace.Trace
	calls   []trace.Call
	callers []trace.EntityModel
	// spread is the number of tenants that make the calls; 0 if the trace names the callers.
	spread  int
	seed    uint64
	latency Latency
	costs   Costs
	// spare allows costs that no limit charges.
	spare bool
}

// The streams of random numbers of a seed: the second word of PCG's state.
const (
	tenantStream = 1
	leaseStream  = 2
	retryStream  = 3
)

// NewWorkload returns the workload of a trace. It takes over the trace's calls, so a trace serves
// for one workload only.
//
// If the trace does not name the callers, the seed determines them, in a way that must never
// change: each call takes the next 64 bits x from PCG with the state (seed, 1), and is made by the
// tenant 1 + ⌊x · entities / 2⁶⁴⌋.
func NewWorkload(t *trace.Trace, o *WorkloadOptions) *Workload {
	if o == nil {
		o = &WorkloadOptions{}
	}
	w := &Workload{
		trace: t, calls: t.Calls, callers: t.Callers,
		seed: o.Seed, latency: o.Latency, costs: o.Costs,
	}
	if t.EntityColumn == "" {
		w.spread = max(o.Entities, 1)
		w.spreadCalls()
	}
	return w
}

// Calls returns the number of calls.
func (w *Workload) Calls() int { return len(w.calls) }

// spreadCalls assigns each call to a tenant.
func (w *Workload) spreadCalls() {
	random := rand.NewPCG(w.seed, tenantStream)
	type caller struct {
		tenant   int32
		resource string
	}
	known := map[caller]int32{}
	w.callers = nil
	for i := range w.calls {
		c := &w.calls[i]
		high, _ := bits.Mul64(random.Uint64(), uint64(w.spread))
		by := caller{int32(high), w.trace.Callers[c.Caller].Resource}
		number, ok := known[by]
		if !ok {
			number = int32(len(w.callers))
			known[by] = number
			w.callers = append(w.callers, trace.EntityModel{
				Entity: TenantName(int(by.tenant)), Resource: by.resource, Rank: by.tenant,
			})
		}
		c.Caller = number
	}
	w.trace.Callers = w.callers
}

// TenantName is the entity of a tenant, counting from 0.
func TenantName(tenant int) string { return "tenant-" + strconv.Itoa(tenant+1) }

// lasts returns the duration of a call, in milliseconds; ok is false for an hour or more.
func (w *Workload) lasts(c *trace.Call) (ms int64, ok bool) {
	if c.LastsMS >= 0 {
		return int64(c.LastsMS), true
	}
	return w.latency.ms(c.Output)
}

// leaseIDs makes lease IDs that depend on a seed only.
type leaseIDs struct {
	random *rand.PCG
}

func newLeaseIDs(seed uint64) *leaseIDs {
	return &leaseIDs{rand.NewPCG(seed, leaseStream)}
}

// next makes a ULID: 48 bits of the time, then the 80 highest of the next 128 random bits.
func (l *leaseIDs) next(atMS int64) weir.LeaseID {
	var id weir.LeaseID
	binary.BigEndian.PutUint64(id[:], uint64(atMS)<<16)
	binary.BigEndian.PutUint64(id[6:], l.random.Uint64())
	binary.BigEndian.PutUint16(id[14:], uint16(l.random.Uint64()>>48))
	return id
}

// Latency is the duration of calls: a part for the call and a part for each output token. It is the
// value of a flag.
type Latency struct {
	Base, PerToken time.Duration
}

// ParseLatency reads "400ms+15ms", or only the first part.
func ParseLatency(s string) (Latency, error) {
	base, perToken, both := strings.Cut(s, "+")
	if !both {
		perToken = "0"
	}
	var l Latency
	var errs [2]error
	l.Base, errs[0] = parsePart(base)
	l.PerToken, errs[1] = parsePart(perToken)
	switch {
	case errs[0] != nil:
		return Latency{}, errs[0]
	case errs[1] != nil:
		return Latency{}, errs[1]
	case l.Base > trace.MaxCallMS*time.Millisecond:
		return Latency{}, errors.New("must be less than an hour: a lease lives no longer")
	}
	return l, nil
}

func parsePart(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil || strings.HasPrefix(s, "+"):
		return 0, errors.New("must be BASE+PER_TOKEN, like 400ms+15ms")
	case d < 0:
		return 0, fmt.Errorf("%s must not be negative", s)
	}
	return d, nil
}

// ms returns the duration of a call, in milliseconds, rounded up; ok is false for an hour or more.
func (l Latency) ms(generated int64) (ms int64, ok bool) {
	const most = trace.MaxCallMS * time.Millisecond
	if l.Base > most || generated > 0 && l.PerToken > (most-l.Base)/time.Duration(generated) {
		return 0, false
	}
	d := l.Base + l.PerToken*time.Duration(generated)
	return int64((d + time.Millisecond - 1) / time.Millisecond), true
}

// String returns the flag's text.
func (l *Latency) String() string {
	if l.PerToken == 0 {
		return l.Base.String()
	}
	return l.Base.String() + "+" + l.PerToken.String()
}

// Set reads the flag's text.
func (l *Latency) Set(s string) error {
	parsed, err := ParseLatency(s)
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}

// Type names the value in the help.
func (l *Latency) Type() string { return "BASE+PER_TOKEN" }
