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

// Faults lies between an SDK client and DynamoDB and makes go wrong what can go wrong there. It
// is an [http.RoundTripper], so that the SDK's own retries see each fault as they would see a
// real one. It may be used by several clients at once.
type Faults struct {
	base  http.RoundTripper
	rules []FaultRule
	hold  time.Duration
	late  sync.WaitGroup // requests that are performed after their caller gave up

	mu     sync.Mutex
	random *rand.Rand
	fired  []int64 // by rule
	counts map[Fault]int64
	asked  int64
	cut    bool
	untold []Untold
}

// FaultOptions says what goes wrong.
type FaultOptions struct {
	// Seed decides which requests are hit. With one caller, the same seed is the same run; with
	// several, which of them is hit depends on who comes first. Default: 0, a seed as any other.
	Seed uint64
	// Rules are tried in their order on each request; the first that hits decides. Default: none.
	Rules []FaultRule
	// Hold is how long a delay lasts for a caller without a deadline. Default: 30 s.
	Hold time.Duration
	// Base performs the requests. Default: a transport of its own.
	Base http.RoundTripper
}

// FaultRule makes one thing go wrong now and then.
type FaultRule struct {
	// Fault is what happens.
	Fault Fault
	// PerMille is how many of a thousand requests are hit; 1000 is each of them. Default: 0, none.
	PerMille int
	// Match picks the requests that can be hit. It may keep count: no two calls run at once. It
	// must not ask the Faults. Default: all that the fault can concern.
	Match func(r *FaultRequest) bool
	// Most is how many requests are hit at most. Default: 0, any number.
	Most int64
	// Code is the error's code, for Throttle and Refuse, as in "ThrottlingException". Default: for
	// Throttle ProvisionedThroughputExceededException, for Refuse ValidationException.
	Code string
	// Reasons are the reasons of a Cancel, in the order of the transaction's items; "None" and ""
	// are an item that has none. Default: TransactionConflict for the first item.
	Reasons []string
}

// FaultRequest is a request as a rule sees it.
type FaultRequest struct {
	// Operation is the name, as in "UpdateItem".
	Operation string
	// Body is the JSON that the SDK sends.
	Body []byte
}

// Untold is a request that reached the server though its caller got no answer, or a wrong one.
type Untold struct {
	// Fault is what became of the answer.
	Fault Fault
	// Operation is the name, as in "UpdateItem".
	Operation string
	// Body is the JSON that the SDK sent.
	Body []byte
	// Status is the server's HTTP status: 200 if the request was performed, 400 if it was refused,
	// as by a condition; 0 if the server did not answer.
	Status int
	// Answer is the JSON that the caller did not get.
	Answer []byte
}

// NewFaults returns faults for clients of one server.
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

// HTTPClient is a client for the SDK's configuration.
func (f *Faults) HTTPClient() *http.Client { return newHTTPClient(f) }

// Count is how often a fault was injected.
func (f *Faults) Count(fault Fault) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[fault]
}

// Asked is how many requests came by, hit or not.
func (f *Faults) Asked() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Untold returns the requests that the server got and whose answers the callers did not, in the
// order in which the server answered. Call Wait before, so that none is under way.
func (f *Faults) Untold() []Untold {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Untold(nil), f.untold...)
}

// Wait waits for the requests that go on without their callers.
func (f *Faults) Wait() { f.late.Wait() }

// Cut cuts the connection: until Heal, no request leaves and each fails at once.
func (f *Faults) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// Heal mends the connection.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = false
}

// RoundTrip performs a request, or what happens instead.
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

// note keeps a request whose caller does not learn what became of it.
func (f *Faults) note(u Untold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.untold = append(f.untold, u)
}
