package conformance_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
)

// forgetful is what becomes of a bucket's state on a store that forgets it the moment that it no
// longer applies: under a new key it begins anew.
type forgetful struct {
	mu    sync.Mutex
	turns map[model.Key]int
}

// key is what the state is found by.
func (f *forgetful) key(s weir.Subject, l *weir.Limit) model.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := model.Key{Subject: s, Name: l.Name, Kind: l.Kind}
	turn := f.turns[k]
	f.turns[k] = turn
	k.Name += strings.Repeat("'", turn)
	return k
}

// configured forgets what other limits have replaced.
func (f *forgetful) configured(_, is *weir.Definitions) *weir.Definitions {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.turns {
		levels := is.Config(k.Subject).Levels
		applies := func(l weir.Limit) bool { return l.Name == k.Name && l.Kind == k.Kind }
		if len(levels) > 0 && !slices.ContainsFunc(levels[0].Limits, applies) {
			f.turns[k]++
		}
	}
	return is
}

// bucketsOnly is a harness of models with rules of their own, for a store that has buckets only.
func bucketsOnly(rules func() *model.Rules, lee conformance.Leeway) conformance.Harness {
	h := conformance.ModelHarness(nil)
	calendar := model.NewCalendar()
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		t.Helper()
		w, err := conformance.OpenModel(s, true, calendar, rules())
		if err != nil {
			t.Fatalf("open the model: %v", err)
		}
		return w
	}
	h.Traits.Kinds = []weir.Kind{weir.Bucket}
	h.Traits.NoShadow = true
	h.Leeway = lee
	return h
}

// TestLeewayIsTaken: a store that does what a leeway allows passes with it, and not without.
func TestLeewayIsTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rules func() *model.Rules
		with  conformance.Leeway
	}{
		{"removed buckets are forgotten", func() *model.Rules {
			f := &forgetful{turns: map[model.Key]int{}}
			r := &model.Rules{}
			r.KeyOf, r.Configured = f.key, f.configured
			return r
		}, conformance.Leeway{RemovedForgotten: true}},
		{"full buckets are kept", func() *model.Rules {
			r := &model.Rules{}
			r.Forgotten = func(model.Bucket, int64) bool { return false }
			return r
		}, conformance.Leeway{FullKept: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const seed, ops = 1, 10_000
			with, without := bucketsOnly(c.rules, c.with), bucketsOnly(c.rules, conformance.Leeway{})
			if got := conformance.FirstDifference(t, with, seed, ops); got != "" {
				t.Errorf("with the leeway: %s", got)
			}
			if conformance.FirstDifference(t, without, seed, ops) == "" {
				t.Error("without the leeway: no difference was found")
			}
			if titles := failing(t, with); len(titles) > 0 {
				t.Errorf("with the leeway: failed %q", titles)
			}
			if titles := failing(t, without); len(titles) == 0 {
				t.Error("without the leeway: no case failed")
			} else {
				t.Logf("without the leeway: %q", titles)
			}
		})
	}
}

// failing are the cases about changed limits that a harness with buckets only fails.
func failing(t *testing.T, h conformance.Harness) []string {
	t.Helper()
	var titles []string
	for _, c := range conformance.Cases() {
		if !strings.HasPrefix(c.Line, "8.") || !slices.Equal(c.Needs.Kinds, h.Traits.Kinds) {
			continue
		}
		if conformance.Record(t, func(t conformance.T) { c.Run(t, h) }).Failed {
			titles = append(titles, c.Title())
		}
	}
	return titles
}
