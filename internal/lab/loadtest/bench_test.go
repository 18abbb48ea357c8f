package loadtest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// instantly is a service that answers at once, and ends a run after a number of calls.
type instantly struct {
	weir.Service

	left atomic.Int64
	stop context.CancelFunc
	id   weir.LeaseID
}

func (i *instantly) Reserve(context.Context, *weir.Request) (*weir.Lease, error) {
	if i.left.Add(-1) == 0 {
		i.stop()
	}
	return &weir.Lease{ID: i.id}, nil
}

func (i *instantly) Complete(context.Context, weir.LeaseID, []weir.Costs) (*weir.Receipt, error) {
	return &weir.Receipt{LeaseID: i.id}, nil
}

func (i *instantly) Explain(_ context.Context, entity, resource string) (*weir.Explanation, error) {
	return newFakeService().Explain(nil, entity, resource) //nolint:staticcheck // The fake does not use the context.
}

// BenchmarkCall measures the generator's own work for a call: drawing it, and timing and counting
// its requests.
func BenchmarkCall(b *testing.B) {
	for name, text := range map[string]string{
		"hot": "acme llm rpm=1 tpm=500", "many": "acme-{1..100000} llm rpm=1 tpm=500..4000",
	} {
		for _, callers := range []int{1, 16} {
			b.Run(name+map[int]string{1: "/1", 16: "/16"}[callers], func(b *testing.B) {
				template, err := loadtest.ParseTemplate(text)
				if err != nil {
					b.Fatal(err)
				}
				ctx, stop := context.WithCancel(b.Context())
				s := &instantly{stop: stop, id: weir.NewLeaseID(time.Now())}
				s.left.Store(int64(b.N))
				r, err := loadtest.New(s, []loadtest.Template{*template}, &loadtest.Options{
					Duration: time.Hour, Concurrency: callers,
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				if report, _ := r.Run(ctx); report == nil || report.Left > 0 { // the run was stopped
					b.Errorf("got %+v", report)
				}
			})
		}
	}
}
