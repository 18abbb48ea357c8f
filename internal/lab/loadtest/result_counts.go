package loadtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weir-limiter/weir"
)

// maxInARow is the number of requests in a row that may fail.
const maxInARow = 100

// timestamps are those of one request. In a closed loop a request is due when it is sent.
type timestamps struct {
	due, sent, answered time.Time
}

// kind is a row of the report.
type kind struct {
	verb   Verb
	result Result
}

// row counts requests of a kind. Latency counts from when they were due, and served from when they
// were sent.
type row struct {
	count           int64
	latency, served latencyHistogram
}

type errorKey struct {
	verb Verb
	code weir.Code
}

// resultCounts counts what becomes of the requests. It is safe for concurrent use.
type resultCounts struct {
	// from and to bound what is measured: the requests that were due between them.
	from, to time.Time
	giveUp   func(error)

	mu       sync.Mutex
	rows     map[kind]*row
	errors   map[errorKey]int64
	deniedBy map[DeniedBy]int64
	out      Report // without rows, errors and denials
	// lastAnswer is the time of the last answer to a measured request.
	lastAnswer time.Time
	// The fields below count from the first call on, measured or not.
	calls, admitted, denied, failed int64
	leftovers                       []leftover
	inARow                          int
	answers                         int64
	last                            error
}

func newRecord() *resultCounts {
	return &resultCounts{
		rows: map[kind]*row{}, errors: map[errorKey]int64{}, deniedBy: map[DeniedBy]int64{},
	}
}

// measures reports whether requests that are due at an instant count in the report.
func (r *resultCounts) measures(due time.Time) bool { return !due.Before(r.from) && due.Before(r.to) }

// stop ends the measured time early. The leases that are settled at once after a stop are not
// typical calls.
func (r *resultCounts) stop(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.to) {
		r.to = now
	}
}

// begun counts a call that began.
func (r *resultCounts) begun(due, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if !r.measures(due) {
		return
	}
	r.out.Started++
	behind := sent.Sub(due)
	r.out.LateMax = max(r.out.LateMax, behind)
	if behind > LateBy {
		r.out.Late++
	}
}

// addReserved counts the answer to a reservation, and reports whether there is a lease to settle.
func (r *resultCounts) addReserved(at timestamps, c *call, lease *weir.Lease, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	denied, isDenial := errors.AsType[*weir.DeniedError](err)
	switch {
	case isDenial:
		r.denied++
		r.note(at, kind{Reserve, Denied})
		if r.measures(at.due) {
			r.countDenials(c.request.Entity, denied)
		}
	case err != nil:
		r.failed++
		r.fail(at, Reserve, err)
		r.addLeftover(leftover{id: leaseOf(err)})
	default:
		r.admitted++
		r.note(at, kind{Reserve, Admitted})
		if lease.Degraded {
			if r.measures(at.due) {
				r.out.Degraded++
			}
			return false // the lease was never in the store
		}
		r.out.Taken++
		return true
	}
	return false
}

// addSettled counts the answer to a settlement.
func (r *resultCounts) addSettled(at timestamps, verb Verb, id weir.LeaseID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.out.Settled++
		r.note(at, kind{verb, Done})
		return
	}
	r.fail(at, verb, err)
	r.addLeftover(leftover{id, true})
}

// note counts an answer.
func (r *resultCounts) note(at timestamps, k kind) {
	if k.result != Failed {
		r.inARow = 0
		r.answers++
	}
	if !r.measures(at.due) {
		return
	}
	if r.rows[k] == nil {
		r.rows[k] = &row{}
	}
	if at.answered.After(r.lastAnswer) {
		r.lastAnswer = at.answered
	}
	row := r.rows[k]
	row.count++
	row.latency.add(at.answered.Sub(at.due))
	row.served.add(at.answered.Sub(at.sent))
}

// fail counts a request without an answer, and ends the run after too many of them in a row.
func (r *resultCounts) fail(at timestamps, verb Verb, err error) {
	r.note(at, kind{verb, Failed})
	r.last = fmt.Errorf("%s: %w", verb, err)
	if r.measures(at.due) {
		code := weir.Unavailable
		if e, ok := errors.AsType[*weir.Error](err); ok {
			code = e.Code
		}
		r.errors[errorKey{verb, code}]++
	}
	if r.inARow++; r.inARow == maxInARow {
		r.giveUp(fmt.Errorf("gave up after %d errors in a row, the last one: %w", maxInARow, r.last))
	}
}

// countDenials counts a denial on each limit that was exceeded.
func (r *resultCounts) countDenials(entity string, denied *weir.DeniedError) {
	if denied.Contended {
		r.deniedBy[DeniedBy{Contended: true}]++
	}
	told := map[DeniedBy]bool{}
	for i := range denied.Limits {
		s := &denied.Limits[i]
		by := DeniedBy{Resource: s.Resource, Limit: s.Limit, Kind: s.Kind, Parent: s.Entity != entity}
		if s.Exceeded && !s.Shadow && !told[by] {
			told[by] = true
			r.deniedBy[by]++
		}
	}
}

// maxLeftovers bounds the leases that are cancelled at the end.
const maxLeftovers = 100_000

// leftover is a lease that may still be live.
type leftover struct {
	id weir.LeaseID
	// taken reports whether the lease was counted. A reservation without an answer may not have
	// made its lease.
	taken bool
}

// addLeftover remembers a lease that may still be live.
func (r *resultCounts) addLeftover(lease leftover) {
	switch {
	case lease.id.IsZero():
	case len(r.leftovers) >= maxLeftovers:
		r.out.Left++
	default:
		r.leftovers = append(r.leftovers, lease)
	}
}

// addCancelled counts the answer to a cancellation at the end.
func (r *resultCounts) addCancelled(lease leftover, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, weir.Ended) || errors.Is(err, weir.Conflict):
		r.out.Settled++
		if !lease.taken { // the lease was made
			r.out.Taken++
		}
	case errors.Is(err, weir.UnknownLease): // the lease was never made, or has expired
	default:
		r.out.Left++
	}
}

// leaseOf returns the lease that a failed reservation may have made; zero if it made none.
func leaseOf(err error) weir.LeaseID {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unavailable || e.Field != "lease_id" {
		return weir.LeaseID{}
	}
	id, _ := weir.ParseLeaseID(e.Value) // zero if the ID is malformed
	return id
}

// longest is the longest latency that a histogram distinguishes from longer ones. The maximum is
// kept separately.
const longest = time.Minute

// latencyHistogram counts durations to three digits.
type latencyHistogram struct {
	histogram *hdrhistogram.Histogram
	max       time.Duration
}

// Quantiles are the times within which 50, 90, 95, 99 and 99.9 % of the requests were done, to
// three digits, rounded up.
type Quantiles struct {
	P50, P90, P95, P99, P999, Max time.Duration
}

func (l *latencyHistogram) add(d time.Duration) {
	if l.histogram == nil {
		l.histogram = hdrhistogram.New(1, int64(longest), 3)
	}
	d = max(d, 0) // clocks may jump
	l.max = max(l.max, d)
	if err := l.histogram.RecordValue(int64(min(d, longest))); err != nil {
		panic("load: " + err.Error()) // only for a value outside of the bounds above
	}
}

func (l *latencyHistogram) quantiles() Quantiles {
	if l.histogram == nil {
		return Quantiles{}
	}
	at := func(percent float64) time.Duration {
		d := time.Duration(l.histogram.ValueAtPercentile(percent))
		if d >= longest {
			return l.max // the histogram has only the upper bound
		}
		return min(d, l.max)
	}
	return Quantiles{at(50), at(90), at(95), at(99), at(99.9), l.max}
}

// failure returns the reason that a run failed: it was stopped, or no request was answered.
func (r *resultCounts) failure(stopped error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stopped == nil && r.answers == 0 && r.last != nil {
		return fmt.Errorf("no request was answered: %w", r.last)
	}
	return stopped
}

// report returns the report of the counts.
func (r *resultCounts) report() *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.out
	out.Served = max(r.lastAnswer.Sub(r.from), 0)
	for _, k := range []kind{
		{Reserve, Admitted}, {Reserve, Denied}, {Reserve, Failed},
		{Complete, Done}, {Complete, Failed}, {Cancel, Done}, {Cancel, Failed},
	} {
		if row := r.rows[k]; row != nil {
			out.Rows = append(out.Rows, Row{
				k.verb, k.result, row.count, row.latency.quantiles(), row.served.quantiles(),
			})
		}
	}
	for by, n := range r.deniedBy {
		out.DeniedBy = append(out.DeniedBy, DeniedCount{by, n})
	}
	slices.SortFunc(out.DeniedBy, func(a, b DeniedCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Resource, b.Resource),
			strings.Compare(a.Limit, b.Limit), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	for _, k := range slices.SortedFunc(maps.Keys(r.errors), func(a, b errorKey) int {
		return cmp.Or(-strings.Compare(string(a.verb), string(b.verb)),
			strings.Compare(string(a.code), string(b.code)))
	}) {
		out.Errors = append(out.Errors, ErrorCount{k.verb, k.code, r.errors[k]})
	}
	return &out
}
