package weir_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

func TestLimitDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want weir.Limit }{
		{weir.Limit{Name: "rpm", Capacity: 600},
			weir.Limit{Name: "rpm", Kind: weir.Bucket, Capacity: 600, RefillAmount: 600, RefillPeriod: time.Minute}},
		{weir.Limit{Name: "day", Kind: weir.Budget, Capacity: 5, Every: "day"},
			weir.Limit{Name: "day", Kind: weir.Budget, Capacity: 5, Every: "day", Zone: "UTC"}},
		{weir.Limit{Name: "w", Kind: weir.Window, Capacity: 5, Window: time.Second},
			weir.Limit{Name: "w", Kind: weir.Window, Capacity: 5, Window: time.Second}},
	} {
		got, err := tt.in.Normalize()
		if err != nil || !got.Same(tt.want) {
			t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
		}
		if again, err := got.Normalize(); err != nil || !again.Same(got) {
			t.Errorf("normalized again: got %+v, %v; want %+v", again, err, got)
		}
	}
}

// Every mistake is reported, with the field, the value and the reason.
func TestLimitMistakes(t *testing.T) {
	t.Parallel()
	bucket := weir.Limit{Name: "rpm", Capacity: 600}
	for _, tt := range []struct {
		name  string
		limit weir.Limit
		want  []string // fields
	}{
		{"all zero", weir.Limit{}, []string{"name", "capacity"}},
		{"kind", weir.Limit{Name: "a", Kind: "leaky", Capacity: 1, Window: 1}, []string{"kind"}},
		{"reserved name", weir.Limit{Name: "wcu", Capacity: 1}, []string{"name"}},
		{"name begins with a digit", weir.Limit{Name: "1a", Capacity: 1}, []string{"name"}},
		{"name too long", weir.Limit{Name: strings.Repeat("a", 65), Capacity: 1}, []string{"name"}},
		{"bucket over milli-units", weir.Limit{Name: "a", Capacity: math.MaxInt64/1000 + 1},
			[]string{"capacity"}},
		{"negative capacity", weir.Limit{Name: "a", Capacity: -1, RefillAmount: 1}, []string{"capacity"}},
		{"negative refill", weir.Limit{Name: "a", Capacity: 1, RefillAmount: -1}, []string{"refill_amount"}},
		{"part of a millisecond", weir.Limit{Name: "a", Capacity: 1, RefillPeriod: time.Microsecond},
			[]string{"refill_period"}},
		{"negative period", weir.Limit{Name: "a", Capacity: 1, RefillPeriod: -time.Second},
			[]string{"refill_period"}},
		{"window missing", weir.Limit{Name: "a", Kind: weir.Window, Capacity: 1}, []string{"window"}},
		{"window not whole", weir.Limit{Name: "a", Kind: weir.Window, Capacity: 1,
			Window: 1500 * time.Millisecond}, []string{"window"}},
		{"window of two centuries", weir.Limit{Name: "a", Kind: weir.Window, Capacity: 1,
			Window: 200 * 365 * 24 * time.Hour}, []string{"window"}},
		{"timeout missing", weir.Limit{Name: "a", Kind: weir.Concurrency, Capacity: 1}, []string{"timeout"}},
		{"calendar missing", weir.Limit{Name: "a", Kind: weir.Budget, Capacity: 1}, []string{"every"}},
		{"no such zone", weir.Limit{Name: "a", Kind: weir.Budget, Capacity: 1, Every: "day",
			Zone: "Europe/Atlantis"}, []string{"zone"}},
		{"the machine's zone", weir.Limit{Name: "a", Kind: weir.Budget, Capacity: 1, Every: "day",
			Zone: "Local"}, []string{"zone"}},
		{"fields of other kinds", func() weir.Limit {
			l := bucket
			l.Window, l.Timeout, l.Every, l.Zone = time.Second, time.Second, "day", "UTC"
			return l
		}(), []string{"window", "timeout", "every", "zone"}},
	} {
		err := tt.limit.Validate()
		for _, field := range tt.want {
			if !hasField(err, field) {
				t.Errorf("%s: got %v, want a mistake in %s", tt.name, err, field)
			}
		}
		if n := countErrors(err); n != len(tt.want) {
			t.Errorf("%s: got %d mistakes (%v), want %d", tt.name, n, err, len(tt.want))
		}
	}
}

// hasField reports whether an invalid field is among the joined errors, with a reason.
func hasField(err error, field string) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if hasField(e, field) {
				return true
			}
		}
		return false
	}
	e, ok := errors.AsType[*weir.Error](err)
	return ok && e.Code == weir.Invalid && e.Field == field && e.Reason != ""
}

func countErrors(err error) int {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return 1
	}
	n := 0
	for _, e := range joined.Unwrap() {
		n += countErrors(e)
	}
	return n
}

func TestDefinitionsMistakes(t *testing.T) {
	t.Parallel()
	one := []weir.Limit{{Name: "rpm", Capacity: 1}}
	for _, tt := range []struct {
		name string
		d    weir.Definitions
		want []string
	}{
		{"policy", weir.Definitions{OnUnavailable: "maybe"}, []string{"system.on_unavailable"}},
		{"limit given twice", weir.Definitions{System: append(one, one...)}, []string{"system.limits.rpm"}},
		{"resource name", weir.Definitions{Resources: map[string][]weir.Limit{"a#b": one}},
			[]string{"resources.a#b"}},
		{"entity name", weir.Definitions{Entities: map[string]weir.EntityDefinition{"a\nb": {}}},
			[]string{"entities.a\nb"}},
		{"cascade without a parent", weir.Definitions{Entities: map[string]weir.EntityDefinition{"a": {Cascade: true}}},
			[]string{"entities.a.cascade"}},
		{"missing parent", weir.Definitions{Entities: map[string]weir.EntityDefinition{"a": {Parent: "b"}}},
			[]string{"entities.a.parent"}},
		{"own parent", weir.Definitions{Entities: map[string]weir.EntityDefinition{"a": {Parent: "a"}}},
			[]string{"entities.a.parent"}},
		{"cycle", weir.Definitions{Entities: map[string]weir.EntityDefinition{
			"a": {Parent: "b"}, "b": {Parent: "c"}, "c": {Parent: "a"}}},
			[]string{"entities.a.parent"}},
		{"a chain into a cycle", weir.Definitions{Entities: map[string]weir.EntityDefinition{
			"a": {Parent: "m"}, "m": {Parent: "z"}, "z": {Parent: "m"}, "b": {Parent: "a"}}},
			[]string{"entities.m.parent"}},
		{"several", weir.Definitions{System: []weir.Limit{{Name: "x"}},
			Resources: map[string][]weir.Limit{"r": {{Name: "y"}}}},
			[]string{"system.limits.x.capacity", "resources.r.limits.y.capacity"}},
	} {
		_, err := tt.d.Normalize()
		for _, field := range tt.want {
			if !hasField(err, field) {
				t.Errorf("%s: got %v, want a mistake in %s", tt.name, err, field)
			}
		}
		if n := countErrors(err); n != len(tt.want) {
			t.Errorf("%s: got %d mistakes (%v), want %d", tt.name, n, err, len(tt.want))
		}
	}
}

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestPeriodOfALimitThatWasNotNormalized(t *testing.T) {
	t.Parallel()
	at := instant(t, "2026-07-01T22:30:00Z")
	for _, c := range []struct{ zone, start string }{
		{"", "2026-07-01T00:00:00Z"},
		{"Europe/Berlin", "2026-07-02T00:00:00+02:00"},
		{"no/such", "2026-07-01T00:00:00Z"},
	} {
		l := weir.Limit{Every: "day", Zone: c.zone}
		start, end := l.Period(at)
		if want := instant(t, c.start); !start.Equal(want) || !end.Equal(want.Add(24*time.Hour)) {
			t.Errorf("zone %q: got %v to %v, want a day from %v", c.zone, start, end, want)
		}
	}
}

func TestRefill(t *testing.T) {
	t.Parallel()
	l, err := (weir.Limit{Name: "n", Capacity: 10, RefillAmount: 6, RefillPeriod: time.Minute}).Normalize()
	if err != nil {
		t.Fatal(err)
	}
	const at = 1_700_000_000_000
	for _, tt := range []struct{ balance, after, want int64 }{
		{0, 10_000, 1_000},
		{-500, 10_000, 500},
		{9_900, 10_000, 10_000},
		{3_000, -10_000, 3_000},
		{12_000, 0, 10_000},
	} {
		if got := l.Refill(tt.balance, at, at+tt.after); got != tt.want {
			t.Errorf("%d after %d ms: got %d, want %d", tt.balance, tt.after, got, tt.want)
		}
	}
	wait := l.RefillWait(0, 1_000, at)
	if wait != 10*time.Second {
		t.Errorf("got a wait of %v, want 10s", wait)
	}
	if got := l.RefillWait(0, 10_001, at); got != math.MaxInt64 {
		t.Errorf("more than the capacity: got %v, want the longest", got)
	}
}
