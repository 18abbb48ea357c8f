package httphandler_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
)

// TestRepeatedReserveHasCurrentStatus checks that a replayed reserve repeats the first answer in
// its body and has the current status in its headers.
func TestRepeatedReserveHasCurrentStatus(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	body := `{"lease_id":"` + w.lease() + `","charges":[
		{"entity":"acme","resource":"money","costs":{"usd":10}},
		{"entity":"acme","resource":"shadow","costs":{"rpm":1,"seen":1}}]}`
	first := w.reserve(body)
	if got := first.header.Get("Ratelimit"); !strings.HasPrefix(got, `"usd";r=90;t=`) ||
		!strings.Contains(got, `"rpm";r=9;t=6`) {
		t.Errorf("first: RateLimit %s", got)
	}
	w.reserve(`{"entity":"acme","resource":"money","costs":{"usd":85}}`).want(t, 200)
	w.advance(time.Minute)
	again := w.reserve(body)
	again.want(t, 200, "replay", true, "limits", first.body["limits"])
	if got := again.header.Get("Ratelimit"); !strings.HasPrefix(got, `"usd";r=5;t=`) ||
		!strings.HasSuffix(got, `"rpm";r=10`) {
		t.Errorf("repeated: RateLimit %s", got)
	}
	if got, want := again.header.Get("Ratelimit-Policy"), first.header.Get("Ratelimit-Policy"); got != want {
		t.Errorf("repeated: RateLimit-Policy %s, first said %s", got, want)
	}
}

// TestRepeatedReserveKeepsLoweredCapacity checks that the current status has the capacity that the
// request lowered.
func TestRepeatedReserveKeepsLoweredCapacity(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	body := `{"lease_id":"` + w.lease() + `","entity":"acme-bot","resource":"money","costs":{"usd":10},
		"limits":{"usd":{"kind":"budget","capacity":50,"every":"month","zone":"Europe/Berlin"}}}`
	want := func(bot, acme string) {
		t.Helper()
		got := w.reserve(body).header.Get("Ratelimit")
		if !strings.Contains(got, `"acme-bot/money/usd";r=`+bot+`;`) ||
			!strings.Contains(got, `"acme/money/usd";r=`+acme+`;`) {
			t.Errorf("RateLimit %s, want %s and %s", got, bot, acme)
		}
	}
	want("40", "90")
	want("40", "90")
	w.reserve(`{"entity":"acme-bot","resource":"money","costs":{"usd":30}}`).want(t, 200)
	want("10", "60")
}

// failingStatus is a service whose Status can be made to fail.
type failingStatus struct {
	*limiter.Limiter

	err   error
	asked atomic.Int64
}

// Status fulfils [weir.Service].
func (m *failingStatus) Status(
	ctx context.Context, entity, resource string,
) ([]weir.LimitStatus, error) {
	m.asked.Add(1)
	if m.err != nil {
		return nil, m.err
	}
	return m.Limiter.Status(ctx, entity, resource)
}

// TestRepeatedReserveWithoutStatus checks that a replay is answered without RateLimit headers if
// the service does not return the status.
func TestRepeatedReserveWithoutStatus(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	service := &failingStatus{Limiter: w.limiter}
	w.handler = httphandler.New(service, &httphandler.Options{Now: w.clock})
	body := `{"lease_id":"` + w.lease() + `","charges":[{"entity":"acme","resource":"bucket","costs":{"rpm":1,"tpm":1}},
		{"entity":"acme","resource":"money","costs":{"usd":10}}]}`
	headers := func() int {
		t.Helper()
		a := w.reserve(body)
		a.want(t, 200, "allowed", true)
		return len(a.header.Values("Ratelimit")) + len(a.header.Values("Ratelimit-Policy"))
	}
	if got, asked := headers(), service.asked.Load(); got != 2 || asked != 0 {
		t.Errorf("first: %d headers, asked %d times, want 2 and never", got, asked)
	}
	if got, asked := headers(), service.asked.Load(); got != 2 || asked != 2 {
		t.Errorf("repeated: %d headers, asked %d times, want 2 and once for each subject", got, asked)
	}
	service.err = errors.New("no answer")
	if got, asked := headers(), service.asked.Load(); got != 0 || asked != 3 {
		t.Errorf("mute: %d headers, asked %d times, want none and no more than once", got, asked-2)
	}
}

// TestRepeatedReserveAfterLimitsWereRemoved checks that a charge without limits does not remove the
// headers of the other charges.
func TestRepeatedReserveAfterLimitsWereRemoved(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	body := `{"lease_id":"` + w.lease() + `","charges":[
		{"entity":"acme","resource":"money","costs":{"usd":10}},
		{"entity":"acme","resource":"window","costs":{"hourly":1}}]}`
	w.reserve(body).want(t, 200)
	for _, at := range []weir.Subject{{}, {Resource: "window"}} {
		if err := w.limiter.SetLimits(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
	}
	again := w.reserve(body)
	again.want(t, 200, "replay", true)
	got := again.header.Get("Ratelimit")
	if !strings.HasPrefix(got, `"usd";r=90;t=`) || strings.Contains(got, "hourly") {
		t.Errorf("RateLimit %q, want what is left of the limit that is there", got)
	}
}
