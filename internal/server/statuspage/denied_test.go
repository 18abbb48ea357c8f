package statuspage

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/limiter"
)

// deniedEvent is a denial of a child by its parent's limit.
func deniedEvent(n int, child, parent string) limiter.Event {
	at := weir.Subject{Entity: child, Resource: "r"}
	return activityEvent(noon(), n, &weir.DeniedError{Charges: []weir.Subject{at}},
		weir.LimitStatus{Entity: parent, Resource: "r", Limit: "l", Kind: weir.Bucket, Exceeded: true})
}

func sumOf(list []httpapi.ActivityDenied) (sum int64) {
	for _, e := range list {
		sum += e.Denied
	}
	return sum
}

// TestDeniedCounts counts denials by who asked and by whose limit denied.
func TestDeniedCounts(t *testing.T) {
	t.Parallel()
	charges := func(entities ...string) (of []weir.Subject) {
		for _, e := range entities {
			of = append(of, weir.Subject{Entity: e, Resource: "r"})
		}
		return of
	}
	limits := func(entities ...string) (of []weir.LimitStatus) {
		for _, e := range entities {
			name, shadow := strings.CutSuffix(e, "?")
			name, fits := strings.CutSuffix(name, "-")
			of = append(of, weir.LimitStatus{Entity: name, Resource: "r", Limit: "l", Exceeded: !fits, Shadow: shadow})
		}
		return of
	}
	for _, c := range []struct {
		name           string
		charges        []weir.Subject
		limits         []weir.LimitStatus
		askers, owners string
	}{
		{"its own limit", charges("a"), limits("a"), "a", "a"},
		{"its parent's limit", charges("a"), limits("p"), "a", "p"},
		{"both", charges("a"), limits("a", "p"), "a", "a p"},
		{"two limits of each", charges("a"), limits("a", "p", "a", "p"), "a", "a p"},
		{"a limit that fits, and one in shadow", charges("a"), limits("a-", "s?", "p"), "a", "p"},
		{"in shadow and not", charges("a"), limits("p?", "p"), "a", "p"},
		{"several charges", charges("a", "b", "a"), limits("b"), "a b", "b"},
		{"other writers", charges("a"), nil, "a", ""},
	} {
		a := NewActivity(noon())
		for i := range 3 {
			a.Observe(t.Context(), activityEvent(noon(), i, &weir.DeniedError{Charges: c.charges}, c.limits...))
		}
		want := func(names string) []httpapi.ActivityDenied {
			list := []httpapi.ActivityDenied{}
			for name := range strings.FieldsSeq(names) {
				list = append(list, httpapi.ActivityDenied{Entity: name, Denied: 3})
			}
			return list
		}
		r := a.Report(noon())
		if !reflect.DeepEqual(r.Askers, want(c.askers)) || !reflect.DeepEqual(r.Owners, want(c.owners)) {
			t.Errorf("%s: asked %v, limits of %v; want %s and %s", c.name, r.Askers, r.Owners, c.askers, c.owners)
		}
		if len(r.Denials[0].Charges) != len(c.charges) || r.Denials[0].Entity != "a" {
			t.Errorf("%s: the newest denial is %+v", c.name, r.Denials[0])
		}
	}
}

// TestDeniedCountsAreBounded floods the counts with a hundred thousand entities. Two are denied
// again and again among them, one from the beginning and one from the middle on.
func TestDeniedCountsAreBounded(t *testing.T) {
	t.Parallel()
	const events = 400_000
	a := NewActivity(noon())
	want := map[string]int64{}
	for i := range events {
		child, parent := fmt.Sprintf("e%d", i%100_000), fmt.Sprintf("p%d", i%50_000)
		if i%100 == 0 {
			child, parent = "always", "root"
		}
		if i > events/2 && i%100 == 1 {
			child = "later"
		}
		want[child]++
		// The number selects the segment. 13 is no factor of what is above.
		a.Observe(t.Context(), deniedEvent(i/13, child, parent))
	}
	for i := range a.segments {
		s := &a.segments[i]
		if n, m := len(s.askers.by), len(s.owners.by); max(n, m) > 2*maxDenied || min(n, m) < maxDenied {
			t.Errorf("a segment keeps %d and %d entities, want up to %d", n, m, 2*maxDenied)
		}
	}
	r := a.Report(noon())
	for name, list := range map[string][]httpapi.ActivityDenied{"asked": r.Askers, "limits of": r.Owners} {
		if len(list) != maxDenied+1 || list[maxDenied].Entity != "" || sumOf(list) != events {
			t.Errorf("%s: %d entries with %d denials, the last is %+v", name, len(list), sumOf(list), list[len(list)-1])
		}
	}
	for i, name := range []string{"always", "later"} {
		if got := r.Askers[i]; got.Entity != name || got.Denied != want[name] {
			t.Errorf("got %+v, want %s with %d", got, name, want[name])
		}
	}
	if got := r.Owners[0]; got.Entity != "root" || got.Denied != want["always"] {
		t.Errorf("got %+v, want root with %d", got, want["always"])
	}
	if again := a.Report(noon()); !reflect.DeepEqual(r, again) {
		t.Error("another report is different")
	}
}

// TestDeniedCountsStop checks that counts stop at the largest int64.
func TestDeniedCountsStop(t *testing.T) {
	t.Parallel()
	var d deniedCounts
	d.addMany("e", math.MaxInt64)
	d.add("e")
	d.others = math.MaxInt64
	sum := deniedCounts{others: 1}
	sum.addAll(&d)
	sum.addAll(&d)
	want := []httpapi.ActivityDenied{{Entity: "e", Denied: math.MaxInt64}, {Denied: math.MaxInt64}}
	if got := sum.list(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestClip checks that a name that is too long is not cut in the middle of a letter.
func TestClip(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", strings.Repeat("x", 256), strings.Repeat("é", 128), strings.Repeat("\xff", 256)} {
		if got := clip(name); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
	for letter, want := range map[string]int{"x": 256, "é": 256, "日": 255, "😀": 256, "a日": 256, "\xbf": 252} {
		if got := clip(strings.Repeat(letter, 300)); len(got) != want {
			t.Errorf("%q: got %d bytes, want %d", letter, len(got), want)
		}
	}
}
