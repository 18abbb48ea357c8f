package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// flatTable is a table of flat keys with room for a hundred leases of one key, and what an answer
// would have told it.
type flatTable struct {
	*flatLeases

	t     *testing.T
	clock time.Time // the handler's
	now   time.Time // the service's
}

var flatKeyOf256 = []string{strings.Repeat("k", 256)}

func newFlatTable(t *testing.T) *flatTable {
	t.Helper()
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	f := &flatTable{t: t, now: start, clock: start.AddDate(-1, 0, 0)} // the two need not agree
	f.flatLeases = newFlatLeases(100*flatSize(flatKeyOf256), func() time.Time { return f.clock })
	return f
}

func (f *flatTable) advance(d time.Duration) { f.now, f.clock = f.now.Add(d), f.clock.Add(d) }

// reserve is one reservation that is admitted where there is room.
func (f *flatTable) reserve() (id weir.LeaseID, ok bool) {
	f.t.Helper()
	id = weir.NewLeaseID(f.now)
	claimed, ok := f.claim(weir.LeaseID{}, flatKeyOf256)
	if ok {
		l := &weir.Lease{ID: id, ReservedAt: f.now, Expires: f.now.Add(time.Hour)}
		f.reserved(l, flatKeyOf256, claimed)
	}
	if f.bytes > f.room || len(f.byID) != len(f.queue) {
		f.t.Fatalf("%d bytes of %d, %d leases and %d in the queue", f.bytes, f.room, len(f.byID),
			len(f.queue))
	}
	return id, ok
}

// fill reserves as many leases as there is room for, a millisecond apart.
func (f *flatTable) fill() (ids []weir.LeaseID) {
	f.t.Helper()
	for range 1000 {
		id, ok := f.reserve()
		if !ok {
			return ids
		}
		ids = append(ids, id)
		f.advance(time.Millisecond)
	}
	f.t.Fatal("there is no bound")
	return nil
}

// What lives is not pushed out: no more are let in, until one has ended.
func TestFlatKeysOfLiveLeasesStay(t *testing.T) {
	t.Parallel()
	f := newFlatTable(t)
	ids := f.fill()
	if len(ids) != 100 {
		t.Fatalf("room for %d leases, want 100", len(ids))
	}
	for range 10 {
		if _, ok := f.reserve(); ok {
			t.Fatal("one more was let in")
		}
	}
	for _, id := range ids {
		if f.keys(id) == nil {
			t.Fatal("the keys of a lease that lives are gone")
		}
	}
	if claimed, ok := f.claim(ids[7], flatKeyOf256); !ok || claimed != 0 {
		t.Errorf("a repeated reservation claims %d, %v, want nothing", claimed, ok)
	}
	f.settled(&weir.Receipt{LeaseID: ids[40], At: f.now})
	// A repeated reservation that was answered before the lease ended is heard of after it.
	f.reserved(&weir.Lease{
		ID: ids[40], ReservedAt: f.now, Expires: f.now.Add(time.Hour), Replay: true,
	}, flatKeyOf256, 0)
	if f.keys(ids[40]) == nil {
		t.Error("a lease that has just ended was forgotten without need")
	}
	id, ok := f.reserve()
	if !ok || f.keys(ids[40]) != nil || f.keys(id) == nil {
		t.Errorf("let in: %v; the one that has ended did not make room", ok)
	}
	if _, ok := f.reserve(); ok {
		t.Error("one more was let in")
	}
	// Nothing is heard of the service while every reservation is refused; leases end all the same.
	f.advance(time.Hour)
	if got := len(f.fill()); got != 100 {
		t.Errorf("room for %d leases after all have ended, want 100", got)
	}
}

// What was claimed for a reservation comes back, whatever becomes of it.
func TestFlatClaims(t *testing.T) {
	t.Parallel()
	f := newFlatTable(t)
	claims := 0
	for {
		claimed, ok := f.claim(weir.LeaseID{}, flatKeyOf256)
		if !ok {
			break
		}
		if claims++; claimed != flatSize(flatKeyOf256) {
			t.Fatalf("claimed %d", claimed)
		}
	}
	if claims != 100 || f.bytes != f.room {
		t.Fatalf("%d claims, %d bytes", claims, f.bytes)
	}
	f.reserved(nil, flatKeyOf256, flatSize(flatKeyOf256)) // denied
	if _, ok := f.reserve(); !ok {
		t.Error("a denial keeps its claim")
	}
	// Without a claim there is no room for a lease that was known and is not any more.
	f.reserved(&weir.Lease{ID: weir.NewLeaseID(f.now), ReservedAt: f.now, Expires: f.now.Add(time.Hour)},
		flatKeyOf256, 0)
	if len(f.byID) != 1 || f.bytes > f.room {
		t.Errorf("%d leases, %d bytes", len(f.byID), f.bytes)
	}
	if a, b := flatSize([]string{strings.Repeat("k", 1<<20)}), flatSize(flatKeyOf256); a != b {
		t.Errorf("a key that is too long claims %d, want %d", a, b)
	}
}

func TestFlatMemory(t *testing.T) {
	t.Parallel()
	f := newFlatTable(t)
	ids := f.fill()
	again := &weir.Lease{ID: ids[99], ReservedAt: f.now, Expires: f.now.Add(2 * time.Hour)}
	f.reserved(again, flatKeyOf256, 0)
	if f.bytes != f.room {
		t.Errorf("%d bytes after a replay, want %d", f.bytes, f.room)
	}
	start := f.now.Add(-100 * time.Millisecond)
	last := start.Add(time.Hour + flatMemory + 98*time.Millisecond)
	f.settled(&weir.Receipt{At: last})
	if f.keys(ids[97]) != nil || f.keys(ids[98]) == nil || f.keys(ids[99]) == nil || len(f.byID) != 2 {
		t.Errorf("%d leases are left at the end of the last but one", len(f.byID))
	}
	f.settled(&weir.Receipt{LeaseID: ids[99], At: last}) // ended now, not in two hours
	f.settled(&weir.Receipt{At: last.Add(flatMemory)})
	if f.keys(ids[99]) == nil {
		t.Error("a settled lease was forgotten too early")
	}
	f.settled(&weir.Receipt{At: last.Add(flatMemory + time.Millisecond)})
	if len(f.byID) != 0 || len(f.queue) != 0 || f.bytes != 0 {
		t.Errorf("%d leases, %d in the queue, %d bytes at the end", len(f.byID), len(f.queue), f.bytes)
	}
}

// Time goes back by more than a minute where something new says so, not where an answer is repeated.
func TestFlatTimeGoesBack(t *testing.T) {
	t.Parallel()
	f := newFlatTable(t)
	start := f.now
	for _, c := range []struct {
		name   string
		at     time.Duration
		replay bool
		want   time.Duration
	}{
		{"ahead", 2 * time.Hour, false, 2 * time.Hour},
		{"a minute behind", 2*time.Hour - time.Minute, false, 2 * time.Hour},
		{"repeated", 0, true, 2 * time.Hour},
		{"put right", 0, false, 0},
	} {
		claimed, _ := f.claim(weir.LeaseID{}, flatKeyOf256)
		at := start.Add(c.at)
		id := weir.NewLeaseID(at)
		f.reserved(&weir.Lease{ID: id, ReservedAt: at, Expires: start.Add(9 * time.Hour), Replay: c.replay},
			flatKeyOf256, claimed)
		if got := time.UnixMilli(f.flatLeases.now).Sub(start); got != c.want {
			t.Errorf("%s: it is %v, want %v", c.name, got, c.want)
		}
		if f.keys(id) == nil {
			t.Errorf("%s: the keys are not known", c.name)
		}
	}
	f.settled(&weir.Receipt{At: start.Add(-time.Hour)})
	if got := time.UnixMilli(f.flatLeases.now); !got.Equal(start) {
		t.Errorf("a repeated receipt made it %v, want %v", got, start)
	}
}

// A flat reservation that there is no room for is refused before anything is charged.
func TestFlatKeysWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newExampleWorld(t)
	h := NewHandler(w.limiter, &Options{Now: w.clock})
	h.flat = newFlatLeases(2*flatSize([]string{"a"}), w.clock)
	ask := func(verb, body string) (status int, text string, header http.Header) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/"+verb, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		return recorder.Code, recorder.Body.String(), recorder.Header()
	}
	left := func(key string) int64 {
		limits, err := w.limiter.Status(t.Context(), key, flatResource)
		if err != nil {
			t.Fatal(err)
		}
		return limits[0].Available
	}
	const never, first = "01KJQ6PSG0D4ZVJ0W5Q2M8R3T9", "01KJQ6PSG0D4ZVJ0W5Q2M8R3TA"
	reserve := func(id, key string, amount int) (int, string, http.Header) {
		return ask("reserve", `{"lease_id":"`+id+`","requirements":[{"key":"`+key+`","amount":`+
			strconv.Itoa(amount)+`}]}`)
	}
	for range 3 { // what is denied leaves nothing behind
		if status, text, _ := reserve(never, "n", 1001); status != http.StatusUnprocessableEntity {
			t.Fatalf("%d %s", status, text)
		}
	}
	for i, key := range []string{"a", "b"} {
		if status, text, _ := reserve(first[:25]+string("AB"[i]), key, 5); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	status, text, header := reserve(never, "c", 5)
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") != "1" ||
		!strings.Contains(text, `"code":"unavailable"`) || !strings.Contains(text, "nothing was reserved") {
		t.Errorf("%d %s, Retry-After %q", status, text, header.Get("Retry-After"))
	}
	if got := left("c"); got != 1000 {
		t.Errorf("%d left of what was refused, want 1000", got)
	}
	if status, text, _ := reserve(first, "a", 5); status != http.StatusOK {
		t.Errorf("repeated: %d %s", status, text)
	}
	if status, text, _ := ask("complete", `{"lease_id":"`+first+
		`","actuals":[{"key":"a","actual_amount":9}]}`); status != http.StatusOK {
		t.Errorf("complete: %d %s", status, text)
	}
	if got := left("a"); got != 991 {
		t.Errorf("%d left, want 991", got)
	}
	if status, text, _ := reserve(never, "c", 5); status != http.StatusOK || left("c") != 995 {
		t.Errorf("after one has ended: %d %s, %d left", status, text, left("c"))
	}
}

func TestReserveWords(t *testing.T) {
	t.Parallel()
	several := reserveRequest{requirements: []requirementBody{{"b", 1}, {"a", 2}}}
	several.translate()
	single := reserveRequest{requirements: []requirementBody{{"a", 2}}}
	single.translate()
	for _, c := range []struct {
		r                  *reserveRequest
		field, value, want string
	}{
		{&several, "charges[0].entity", "a", "requirements[1].key"},
		{&several, "charges[1].entity", "b", "requirements[0].key"},
		{&several, "charges[0].costs.units", "2", "requirements[1].amount"},
		{&several, "entity", "a", "requirements[1].key"},
		{&several, "entity", "parent", "entity"},
		{&several, "costs.units", "2", "requirements"},
		{&several, "charges", "17", "requirements"},
		{&several, "lease_id", "x", "lease_id"},
		{&single, "costs.units", "2", "requirements[0].amount"},
		{&single, "charges[0].costs.units", "-1", "requirements[0].amount"},
	} {
		if got := c.r.word(invalid(c.field, c.value, "x")); got != c.want {
			t.Errorf("%s %s is called %s, want %s", c.field, c.value, got, c.want)
		}
	}
	if keys := strings.Join(several.keys(), " "); keys != "a b" {
		t.Errorf("keys are %s", keys)
	}
}

func BenchmarkFlatLeases(b *testing.B) {
	f := newFlatLeases(flatRoom, time.Now)
	start := time.Now()
	keys := make([]string, 16)
	for i := range keys {
		keys[i] = "key" + strconv.Itoa(i)
	}
	for b.Loop() {
		id := weir.NewLeaseID(start)
		claimed, _ := f.claim(id, keys)
		f.reserved(&weir.Lease{ID: id, ReservedAt: start, Expires: start.Add(time.Hour)}, keys, claimed)
		f.settled(&weir.Receipt{LeaseID: id, At: start})
	}
}
