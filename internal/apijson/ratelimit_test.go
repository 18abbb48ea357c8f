package apijson

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

const rateLimitDefinitions = `
version: 1
resources:
  bucket:
    limits:
      rpm: {capacity: 600}
      tpm: {capacity: 1000, refill_amount: 500, refill_period: 30}
  slow: {limits: {rare: {capacity: 10, refill_amount: 1, refill_period: 7}}}
  window: {limits: {hourly: {kind: window, capacity: 10, window: 3600}}}
  slots: {limits: {parallel: {kind: concurrency, capacity: 2, timeout: 300}}}
  month: {limits: {usd: {kind: budget, capacity: 100, every: month, zone: Europe/Berlin}}}
  hour: {limits: {usd: {kind: budget, capacity: 100, every: hour}}}
  shadow: {limits: {rpm: {capacity: 10}, seen: {capacity: 5, enforce: false}}}
  b/bucket: {limits: {rpm: {capacity: 5}}}
  unseen: {limits: {seen: {capacity: 5, enforce: false}}}
entities:
  acme: {}
  bot: {parent: acme, cascade: true}
`

// headerWorld reserves in the process and writes the headers as the handler does.
type headerWorld struct {
	t       *testing.T
	now     time.Time
	limiter *limiter.Limiter
	writer  *RateLimits
}

func newHeaderWorld(t *testing.T) *headerWorld {
	t.Helper()
	// A second before daylight saving begins in Berlin, where March has 743 hours.
	w := &headerWorld{t: t, now: time.Date(2026, 3, 29, 0, 59, 59, 0, time.UTC)}
	parsed, err := manifest.Parse("limits.yaml", []byte(rateLimitDefinitions))
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.Open(&memory.Options{Definitions: parsed.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	w.limiter, err = limiter.New(store, &limiter.Options{Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	w.writer = NewRateLimits(w.limiter, func() time.Time { return w.now })
	return w
}

// headers returns the headers of one reservation, admitted or denied, and the seconds of
// Retry-After without the random part.
func (w *headerWorld) headers(resource string, costs weir.Costs) (policy, state, retry string) {
	w.t.Helper()
	h := http.Header{}
	lease, err := w.limiter.Reserve(w.t.Context(), &weir.Request{
		Entity: "bot", Resource: resource, Costs: costs,
	})
	if err != nil {
		recorder := newRecorder()
		NewWriter().WriteProblem(recorder, err, w.writer)
		if recorder.status != http.StatusTooManyRequests {
			w.t.Fatal(err)
		}
		h = recorder.header
	} else {
		w.writer.Set(h, lease.Limits)
	}
	return strings.ReplaceAll(h.Get(policyHeader), `"`, `'`),
		strings.ReplaceAll(h.Get(stateHeader), `"`, `'`), w.withoutRandom(h.Get("Retry-After"), err)
}

// withoutRandom checks that a Retry-After is at most an eighth and at most ten seconds longer than
// the denial's wait, and returns the wait in seconds.
func (w *headerWorld) withoutRandom(retry string, err error) string {
	w.t.Helper()
	denied, ok := errors.AsType[*weir.DeniedError](err)
	if !ok {
		return retry
	}
	wait := max(1, CeilUnits(denied.RetryAfter, time.Second))
	got, err := strconv.ParseInt(retry, 10, 64)
	if err != nil || got < wait || got > wait+min(wait/8, 10) {
		w.t.Errorf("Retry-After is %s for a wait of %d s", retry, wait)
	}
	return strconv.FormatInt(wait, 10)
}

type recorder struct {
	header http.Header
	status int
}

func newRecorder() *recorder                    { return &recorder{header: http.Header{}} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// In each step the entity cascades to its parent, so that every limit occurs twice.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	type step struct {
		advance              time.Duration
		costs                weir.Costs
		policy, state, retry string
	}
	for _, c := range []struct {
		resource string
		steps    []step
	}{
		{"bucket", []step{
			{0, weir.Costs{"tpm": 0}, `T;q=1000;w=60`, `T;r=1000`, ""},
			{0, weir.Costs{"tpm": 400}, `T;q=1000;w=60`, `T;r=600;t=1`, ""},
			{0, weir.Costs{"tpm": 700}, `T;q=1000;w=60`, `T;r=600;t=6`, "6"},
			{5999 * time.Millisecond, weir.Costs{"tpm": 700}, `T;q=1000;w=60`, `T;r=699;t=1`, "1"},
			{time.Millisecond, weir.Costs{"tpm": 700}, `T;q=1000;w=60`, `T;r=0;t=1`, ""},
		}},
		{"slow", []step{
			{0, weir.Costs{"rare": 3}, `T;q=10;w=70`, `T;r=7;t=7`, ""},
			{0, weir.Costs{"rare": 10}, `T;q=10;w=70`, `T;r=7;t=21`, "21"},
		}},
		{"window", []step{
			{0, weir.Costs{"hourly": 4}, `T;q=10;w=3600`, `T;r=6`, ""},
			{90 * time.Second, weir.Costs{"hourly": 7}, `T;q=10;w=3600`, `T;r=6;t=3510`, "3510"},
			{3510 * time.Second, weir.Costs{"hourly": 7}, `T;q=10;w=3600`, `T;r=3`, ""},
		}},
		{"slots", []step{
			{0, nil, `T;q=2;qu='concurrent-requests'`, `T;r=1`, ""},
			{0, nil, `T;q=2;qu='concurrent-requests'`, `T;r=0`, ""},
			{time.Second, nil, `T;q=2;qu='concurrent-requests'`, `T;r=0;t=299`, "299"},
			{299 * time.Second, nil, `T;q=2;qu='concurrent-requests'`, `T;r=1`, ""},
		}},
		{"month", []step{
			{0, weir.Costs{"usd": 0}, `T;q=100;w=2674800`, `T;r=100`, ""},
			{0, weir.Costs{"usd": 30}, `T;q=100;w=2674800`, `T;r=70;t=248401`, ""},
			{time.Second, weir.Costs{"usd": 71}, `T;q=100;w=2674800`, `T;r=70;t=248400`, "248400"},
			{248400 * time.Second, weir.Costs{"usd": 71}, `T;q=100;w=2592000`, `T;r=29;t=2592000`, ""},
		}},
		{"hour", []step{
			{0, weir.Costs{"usd": 30}, `T;q=100;w=3600`, `T;r=70;t=1`, ""},
			{time.Second, weir.Costs{"usd": 30}, `T;q=100;w=3600`, `T;r=70;t=3600`, ""},
		}},
		{"shadow", []step{
			{0, weir.Costs{"rpm": 1, "seen": 9}, `T;q=10;w=60`, `T;r=9;t=6`, ""},
		}},
	} {
		w := newHeaderWorld(t)
		for i, s := range c.steps {
			w.now = w.now.Add(s.advance)
			policy, state, retry := w.headers(c.resource, s.costs)
			name := map[string]string{
				"bucket": "tpm", "slow": "rare", "window": "hourly", "slots": "parallel",
				"month": "usd", "hour": "usd", "shadow": "rpm",
			}[c.resource]
			twice := func(item string) string {
				of := func(entity string) string {
					return strings.Replace(item, "T;", "'"+entity+"/"+c.resource+"/"+name+"';", 1)
				}
				return of("bot") + ", " + of("acme")
			}
			if policy != twice(s.policy) || state != twice(s.state) || retry != s.retry {
				t.Errorf("%s, step %d: %s | %s | %q, want %s | %s | %q", c.resource, i,
					policy, state, retry, twice(s.policy), twice(s.state), s.retry)
			}
		}
	}
}

func TestRateLimitNames(t *testing.T) {
	t.Parallel()
	w := newHeaderWorld(t)
	reserve := func(charges ...weir.Charge) (policy string) {
		t.Helper()
		lease, err := w.limiter.Reserve(t.Context(), &weir.Request{Charges: charges})
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		w.writer.Set(h, lease.Limits)
		return h.Get(policyHeader)
	}
	one := reserve(weir.Charge{Entity: "a", Resource: "bucket", Costs: weir.Costs{"rpm": 1, "tpm": 1}})
	if one != `"rpm";q=600;w=60, "tpm";q=1000;w=60` {
		t.Errorf("names that are unique: %s", one)
	}
	two := reserve(
		weir.Charge{Entity: "a", Resource: "bucket", Costs: weir.Costs{"rpm": 1, "tpm": 1}},
		weir.Charge{Entity: "b", Resource: "shadow", Costs: weir.Costs{"rpm": 1, "seen": 1}})
	if two != `"a/bucket/rpm";q=600;w=60, "tpm";q=1000;w=60, "b/shadow/rpm";q=10;w=60` {
		t.Errorf("a name that occurs twice: %s", two)
	}
	// Both the entity and the resource may have slashes, so these names would be equal.
	slashes := reserve(
		weir.Charge{Entity: "a/b", Resource: "bucket", Costs: weir.Costs{"rpm": 1}},
		weir.Charge{Entity: "a", Resource: "b/bucket", Costs: weir.Costs{"rpm": 1}})
	if slashes != `"a%2Fb/bucket/rpm";q=600;w=60, "a/b%2Fbucket/rpm";q=5;w=60` {
		t.Errorf("names with slashes: %s", slashes)
	}
	hostile := reserve(
		weir.Charge{Entity: `"é\%2F`, Resource: "bucket", Costs: weir.Costs{"rpm": 1}},
		weir.Charge{Entity: "a", Resource: "bucket", Costs: weir.Costs{"rpm": 1}})
	if hostile != `"%22%C3%A9%5C%252F/bucket/rpm";q=600;w=60, "a/bucket/rpm";q=600;w=60` {
		t.Errorf("names that a header cannot have: %s", hostile)
	}
	if none := reserve(weir.Charge{Entity: "a", Resource: "unseen",
		Costs: weir.Costs{"seen": 1}}); none != "" {
		t.Errorf("shadow limits alone: %s", none)
	}
}

// TestRateLimitDenied checks that the headers of a denial have a t only for the limits that denied,
// and list them first.
func TestRateLimitDenied(t *testing.T) {
	t.Parallel()
	w := newHeaderWorld(t)
	ask := func(costs weir.Costs) error {
		_, err := w.limiter.Reserve(t.Context(),
			&weir.Request{Entity: "a", Resource: "bucket", Costs: costs})
		return err
	}
	if err := ask(weir.Costs{"rpm": 10, "tpm": 1000}); err != nil {
		t.Fatal(err)
	}
	err := ask(weir.Costs{"rpm": 1, "tpm": 1})
	recorder := newRecorder()
	NewWriter().WriteProblem(recorder, err, w.writer)
	policy, state := recorder.header.Get(policyHeader), recorder.header.Get(stateHeader)
	if policy != `"tpm";q=1000;w=60, "rpm";q=600;w=60` || state != `"tpm";r=0;t=1, "rpm";r=590` {
		t.Errorf("%s | %s", policy, state)
	}
	if got := fmt.Sprint(ProblemOf(err).ViolatedPolicies); got != "[tpm]" {
		t.Errorf("violated %s", got)
	}
}

// TestRateLimitDeniedWaits checks that no t is later than Retry-After, even if a limit that was not
// exceeded regains units later.
func TestRateLimitDeniedWaits(t *testing.T) {
	t.Parallel()
	w := newHeaderWorld(t)
	if err := w.limiter.SetLimits(t.Context(), weir.Subject{Resource: "both"}, []weir.Limit{
		{Name: "rpm", Capacity: 60}, {Name: "usd", Kind: weir.Budget, Capacity: 100, Every: "month"},
	}); err != nil {
		t.Fatal(err)
	}
	_, state, _ := w.headers("both", weir.Costs{"rpm": 60, "usd": 1})
	if !strings.Contains(state, `/usd';r=99;t=`) {
		t.Errorf("admitted: %s", state)
	}
	_, state, retry := w.headers("both", weir.Costs{"rpm": 2, "usd": 1})
	want := `'bot/both/rpm';r=0;t=2, 'acme/both/rpm';r=0;t=2, 'bot/both/usd';r=99, 'acme/both/usd';r=99`
	if state != want || retry != "2" {
		t.Errorf("denied: %s, Retry-After %s, want %s and 2", state, retry, want)
	}
}

// itemCase is one limit and its item in the headers.
type itemCase struct {
	name          string
	status        weir.LimitStatus
	limit         *weir.Limit
	policy, state string
}

func checkItems(t *testing.T, cases []itemCase) {
	t.Helper()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for _, c := range cases {
		policy := string(appendPolicy(nil, &c.status, c.limit, now))
		state := string(appendState(nil, &c.status, c.limit, now))
		if policy != c.policy || state != c.state {
			t.Errorf("%s: %s | %s, want %s | %s", c.name, policy, state, c.policy, c.state)
		}
	}
}

// bucketStatus is the status of a bucket that holds ten.
func bucketStatus(available int64) weir.LimitStatus {
	return weir.LimitStatus{Kind: weir.Bucket, Capacity: 10, Available: available}
}

// TestRateLimitUnknown checks the headers without the definitions of the limits.
func TestRateLimitUnknown(t *testing.T) {
	t.Parallel()
	exceeded := bucketStatus(0)
	exceeded.Exceeded = true
	late := exceeded
	late.RetryAfter = 1500 * time.Millisecond
	budget, tomorrow := bucketStatus(3), bucketStatus(3)
	budget.Kind, tomorrow.Kind = weir.Budget, "leaky"
	checkItems(t, []itemCase{
		{"bucket", bucketStatus(3), nil, `;q=10`, `;r=3`},
		{"budget", budget, nil, `;q=10`, `;r=3`},
		{"exceeded", late, nil, `;q=10`, `;r=0;t=2`},
		{"contended", exceeded, nil, `;q=10`, `;r=0`},
		{"a kind of tomorrow", tomorrow, &weir.Limit{Kind: "leaky"}, `;q=10`, `;r=3`},
	})
}

// TestRateLimitItems checks that numbers stay within the bounds of a structured field.
func TestRateLimitItems(t *testing.T) {
	t.Parallel()
	bucket := &weir.Limit{
		Kind: weir.Bucket, Capacity: 10, RefillAmount: 10, RefillPeriod: time.Minute,
	}
	const most = math.MaxInt64 / 1000
	slow := &weir.Limit{
		Kind: weir.Bucket, Capacity: most, RefillAmount: 1, RefillPeriod: 876_000 * time.Hour,
	}
	fast := &weir.Limit{
		Kind: weir.Bucket, Capacity: 3, RefillAmount: 1000, RefillPeriod: time.Millisecond,
	}
	full := weir.LimitStatus{Kind: weir.Bucket, Capacity: 5, Available: 5}
	wide := weir.LimitStatus{Kind: weir.Window, Capacity: math.MaxInt64, Available: math.MaxInt64}
	long := weir.LimitStatus{
		Kind: weir.Window, Capacity: 1, Exceeded: true, RetryAfter: math.MaxInt64,
	}
	checkItems(t, []itemCase{
		{"debt", bucketStatus(-2), bucket, `;q=10;w=60`, `;r=0;t=18`},
		{"very deep in debt", bucketStatus(math.MinInt64), bucket, `;q=10;w=60`, `;r=0`},
		{"a lower capacity brought", full, bucket, `;q=5;w=30`, `;r=5`},
		{
			"very slow", weir.LimitStatus{Kind: weir.Bucket, Capacity: most}, slow,
			// The last milli-unit of the unit is regained early.
			`;q=999999999999999;w=999999999999999`, `;r=0;t=3153470400`,
		},
		{
			"very fast", weir.LimitStatus{Kind: weir.Bucket, Capacity: 3, Available: 1}, fast,
			`;q=3;w=1`, `;r=1;t=1`,
		},
		{"very large", wide, nil, `;q=999999999999999`, `;r=999999999999999`},
		{"very long", long, nil, `;q=1`, `;r=0;t=9223372037`},
	})
}

func TestRateLimitEscaping(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"gpt-4o": "gpt-4o", "a/b": "a%2Fb", "%2F": "%252F", `"\`: "%22%5C", "é": "%C3%A9", "": "",
	} {
		if got := escapePart(s); got != want {
			t.Errorf("%q is escaped %s, want %s", s, got, want)
		}
	}
}

// TestRateLimitLength checks that the headers stay short for many limits, and have the limits that
// denied.
func TestRateLimitLength(t *testing.T) {
	t.Parallel()
	statuses := make([]weir.LimitStatus, 200)
	for i := range statuses {
		statuses[i] = weir.LimitStatus{
			Entity: strings.Repeat("e", 256), Resource: strings.Repeat("r", 64), Limit: "rpm",
			Kind: weir.Bucket, Capacity: 10, Exceeded: i == 199, RetryAfter: time.Minute,
		}
	}
	w := NewRateLimits(nil, time.Now)
	h := http.Header{}
	w.Set(h, statuses)
	for _, name := range []string{stateHeader, policyHeader} {
		got := h.Get(name)
		if len(got) > maxRateLimitHeader || len(got) < maxRateLimitHeader/2 {
			t.Errorf("%s has %d bytes, at most %d", name, len(got), maxRateLimitHeader)
		}
	}
	if first, _, _ := strings.Cut(h.Get(stateHeader), ","); !strings.HasSuffix(first, ";t=60") {
		t.Errorf("first is %s", first)
	}
}

// TestRetryAfterHeader checks that the header is never too early, at most an eighth and ten seconds
// later, and that it is not the same for all callers.
func TestRetryAfterHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err           error
		least, most   int64 // 0 for no header
		shouldRetryNo bool
	}{
		{&weir.DeniedError{}, 1, 1, false},
		{&weir.DeniedError{RetryAfter: 1}, 1, 1, false},
		{&weir.DeniedError{RetryAfter: time.Second}, 1, 1, false},
		{&weir.DeniedError{RetryAfter: time.Second + 1}, 2, 2, false},
		{&weir.DeniedError{RetryAfter: 7 * time.Second}, 7, 7, false},
		{&weir.DeniedError{RetryAfter: time.Minute}, 60, 67, false},
		{&weir.DeniedError{RetryAfter: time.Minute + 1}, 61, 68, true},
		{&weir.DeniedError{RetryAfter: 24 * time.Hour}, 86400, 86410, true},
		{&weir.DeniedError{RetryAfter: math.MaxInt64}, 9223372037, 9223372047, true},
		{&weir.Error{Code: weir.Overloaded, RetryAfter: time.Second}, 1, 1, false},
		{&weir.Error{Code: weir.NeverSatisfiable}, 0, 0, true},
		{&weir.Error{Code: weir.Invalid}, 0, 0, false},
	} {
		seen := map[string]bool{}
		for range 1000 {
			h := http.Header{}
			headerOf(h, c.err)
			got, _ := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
			no := h.Get("X-Should-Retry") == "false"
			if got < c.least || got > c.most || no != c.shouldRetryNo {
				t.Fatalf("%v: got %v, want %d to %d", c.err, h, c.least, c.most)
			}
			seen[h.Get("Retry-After")] = true
		}
		if len(seen) == 1 && c.most > c.least {
			t.Errorf("%v: all callers are told %v", c.err, seen)
		}
	}
}
