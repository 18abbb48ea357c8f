package loadtest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// fakeService is a service with slow answers. It admits everything unless it has other orders, and records
// its requests.
type fakeService struct {
	weir.Service

	takes time.Duration // duration of a reservation
	// stall is the index of the reservation, counted from 0, that takes another stalls.
	stall, stalls time.Duration
	settleTakes   time.Duration
	reserve       func(n int, r *weir.Request) error // nil admits
	settle        func(n int) error
	sweep         func(id weir.LeaseID) error
	limits        []weir.Limit // nil for rpm and tpm
	limitsOf      map[string][]weir.Limit
	degraded      bool

	mu                   sync.Mutex
	began                time.Time
	asked                []*weir.Request
	at                   []time.Duration
	live                 map[weir.LeaseID]time.Time
	kept                 []time.Duration
	completed, cancelled int
	underWay, mostAtOnce int
	actuals              []weir.Costs
}

func newFakeService() *fakeService {
	return &fakeService{began: time.Now(), live: map[weir.LeaseID]time.Time{}, stall: -1}
}

// enter counts a request, and returns a function that counts its end.
func (f *fakeService) enter() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underWay++
	f.mostAtOnce = max(f.mostAtOnce, f.underWay)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.underWay--
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeService) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	defer f.enter()()
	f.mu.Lock()
	n := len(f.asked)
	f.asked, f.at = append(f.asked, r), append(f.at, time.Since(f.began))
	f.mu.Unlock()
	takes := f.takes
	if time.Duration(n) == f.stall {
		takes += f.stalls
	}
	if err := pause(ctx, takes); err != nil {
		return nil, err
	}
	if f.reserve != nil {
		if err := f.reserve(n, r); err != nil {
			return nil, err
		}
	}
	id := weir.NewLeaseID(time.Now())
	if f.degraded {
		return &weir.Lease{ID: id, Degraded: true}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[id] = time.Now()
	return &weir.Lease{ID: id}, nil
}

func (f *fakeService) end(ctx context.Context, id weir.LeaseID, count *int) error {
	defer f.enter()()
	if err := pause(ctx, f.settleTakes); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settle != nil {
		if err := f.settle(f.completed + f.cancelled); err != nil {
			return err
		}
	}
	since, ok := f.live[id]
	if !ok {
		return &weir.Error{Code: weir.UnknownLease}
	}
	f.kept = append(f.kept, time.Since(since))
	delete(f.live, id)
	*count++
	return nil
}

func (f *fakeService) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	f.mu.Lock()
	f.actuals = append(f.actuals, actuals...)
	f.mu.Unlock()
	return &weir.Receipt{LeaseID: id}, f.end(ctx, id, &f.completed)
}

func (f *fakeService) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	if f.sweep != nil {
		if err := f.sweep(id); err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.live, id)
		return &weir.Receipt{LeaseID: id}, nil
	}
	return &weir.Receipt{LeaseID: id}, f.end(ctx, id, &f.cancelled)
}

func (f *fakeService) Explain(
	_ context.Context, entity, resource string,
) (*weir.Explanation, error) {
	limits := f.limits
	if own, ok := f.limitsOf[entity]; ok {
		limits = own
	}
	if limits == nil {
		for _, name := range []string{"rpm", "tpm"} {
			limits = append(limits, weir.Limit{Name: name, Kind: weir.Bucket, Capacity: 1 << 40})
		}
	}
	return &weir.Explanation{Entity: entity, Resource: resource, Limits: limits}, nil
}

// mixOf parses templates.
func mixOf(t *testing.T, texts ...string) []loadtest.Template {
	t.Helper()
	var mix []loadtest.Template
	for _, text := range texts {
		template, err := loadtest.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		mix = append(mix, *template)
	}
	return mix
}

// runLoad runs a mix on a service, and checks that no lease is left.
func runLoad(t *testing.T, f *fakeService, o *loadtest.Options, texts ...string) *loadtest.Report {
	t.Helper()
	r, err := loadtest.New(f, mixOf(t, texts...), o)
	if err != nil {
		t.Fatal(err)
	}
	f.began = time.Now()
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.live) > 0 || report.Left != 0 || report.Settled != report.Taken {
		t.Errorf("got %d leases live, %d left, %d of %d settled, want none left",
			len(f.live), report.Left, report.Settled, report.Taken)
	}
	return report
}

// rowOf returns a row of a report, or a row of zeros if there is none.
func rowOf(r *loadtest.Report, v loadtest.Verb, result loadtest.Result) loadtest.Row {
	for _, row := range r.Rows {
		if row.Verb == v && row.Result == result {
			return row
		}
	}
	return loadtest.Row{}
}

// near reports whether a histogram of three digits may return got for want.
func near(got, want time.Duration) bool { return got >= want && got <= want+want/1000+1 }
