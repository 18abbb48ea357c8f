package testkit

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// defaultHold is how long an answer is withheld from a caller that sets no deadline.
const defaultHold = 30 * time.Second

// Faults injects failures between an SDK client and DynamoDB. It is an [http.RoundTripper], so that
// the SDK's own retries see each fault like a real one. It may be used by several clients
// concurrently.
type Faults struct {
	base  http.RoundTripper
	rules []FaultRule
	hold  time.Duration
	late  sync.WaitGroup // requests that are performed after their caller gave up

	mu         sync.Mutex
	random     *rand.Rand
	fired      []int64 // by rule
	counts     map[Fault]int64
	asked      int64
	cut        bool
	unanswered []Unanswered
}

// FaultOptions select the requests that fail, and how.
type FaultOptions struct {
	// Seed decides which requests are hit. With one caller, the same seed gives the same run; with
	// several, it also depends on the order in which they call. Default: 0, which is a seed like
	// any other.
	Seed uint64
	// Rules are tried in their order on each request; the first that hits decides. Default: none.
	Rules []FaultRule
	// Hold is the longest time for which a delay keeps a caller waiting. It then fails as a
	// connection that did not answer. Default: 30 s.
	Hold time.Duration
	// Base performs the requests. Default: a new transport.
	Base http.RoundTripper
}

// FaultRule injects one kind of fault into some requests.
type FaultRule struct {
	// Fault is the kind of fault.
	Fault Fault
	// PerMille is the number of requests in a thousand that are hit; 1000 means all. Default: 0,
	// none.
	PerMille int
	// Match selects the requests that can be hit. Its calls do not overlap, so it may count them.
	// It must not call methods of the Faults. Default: all requests that the fault can hit.
	Match func(r *FaultRequest) bool
	// Most is the largest number of requests that are hit. Default: 0, any number.
	Most int64
	// Code is the error's code, for Throttle and Refuse, such as "ThrottlingException". Default:
	// for Throttle ProvisionedThroughputExceededException, for Refuse ValidationException.
	Code string
	// Reasons are the reasons of a Cancel, in the order of the transaction's items; "None" and ""
	// are an item that has none. Default: TransactionConflict for the first item.
	Reasons []string
}

// FaultRequest is the part of a request that a rule can examine.
type FaultRequest struct {
	// Operation is the name, as in "UpdateItem".
	Operation string
	// Body is the JSON that the SDK sends.
	Body []byte
}

// Unanswered is a request that reached the server although its caller got no answer, or a wrong one.
type Unanswered struct {
	// Fault is the fault that hit the request.
	Fault Fault
	// Operation is the name, as in "UpdateItem".
	Operation string
	// Body is the JSON that the SDK sent.
	Body []byte
	// Status is the server's HTTP status: 200 if the request was performed, 400 if it was refused,
	// for example by a condition; 0 if the server did not answer.
	Status int
	// Answer is the JSON that the caller did not get.
	Answer []byte
}

// NewFaults returns Faults for clients of one server.
func NewFaults(o *FaultOptions) *Faults {
	if o == nil {
		o = &FaultOptions{}
	}
	f := &Faults{
		base: o.Base, rules: o.Rules, hold: o.Hold,
		random: rand.New(rand.NewPCG(o.Seed, 0)),
		fired:  make([]int64, len(o.Rules)), counts: map[Fault]int64{},
	}
	if f.base == nil {
		f.base = newTransport()
	}
	if f.hold == 0 {
		f.hold = defaultHold
	}
	return f
}

// Install puts the faults below one client: give it to [DynamoDBLocal.Client], or to
// dynamodb.NewFromConfig.
func (f *Faults) Install(o *ddb.Options) { o.HTTPClient = f.HTTPClient() }

// HTTPClient returns a client for the SDK's configuration.
func (f *Faults) HTTPClient() *http.Client { return newHTTPClient(f) }

// Count returns how often a fault was injected.
func (f *Faults) Count(fault Fault) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[fault]
}

// Asked returns the number of requests, hit or not.
func (f *Faults) Asked() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Unanswered returns the requests that the server got and whose answers the callers did not, in the
// order in which the server answered. Call Wait before, so that none is in flight.
func (f *Faults) Unanswered() []Unanswered {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Unanswered(nil), f.unanswered...)
}

// Wait waits for the requests that continue without their callers.
func (f *Faults) Wait() { f.late.Wait() }

// Cut cuts the connection: until Heal, no request is sent and each fails at once.
func (f *Faults) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// Heal restores the connection after Cut.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = false
}

// RoundTrip performs a request, or injects a fault.
func (f *Faults) RoundTrip(req *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	r := &FaultRequest{Operation: operation}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		r.Body = body
	}
	rule := f.choose(r)
	if rule == nil {
		return f.send(req, r.Body)
	}
	return (&hit{f: f, rule: rule, req: req, r: r}).play()
}

// choose returns the rule that hits a request, or nil.
func (f *Faults) choose(r *FaultRequest) *FaultRule {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.cut {
		f.counts[Cut]++
		return &FaultRule{Fault: Cut}
	}
	for i := range f.rules {
		rule := &f.rules[i]
		switch {
		case !rule.Fault.concerns(r.Operation),
			rule.Most > 0 && f.fired[i] >= rule.Most,
			rule.Match != nil && !rule.Match(r),
			f.random.IntN(1000) >= rule.PerMille:
			continue
		}
		f.fired[i]++
		f.counts[rule.Fault]++
		f.cut = rule.Fault == Cut
		return rule
	}
	return nil
}

// send performs a request as it is, or with another body.
func (f *Faults) send(req *http.Request, body []byte) (*http.Response, error) {
	sent := req.Clone(req.Context())
	sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return f.base.RoundTrip(sent)
}

// note records a request whose caller does not learn its outcome.
func (f *Faults) note(u Unanswered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unanswered = append(f.unanswered, u)
}
