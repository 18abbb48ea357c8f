package model_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// TestRulesCanBeReplaced holds a wrong rule of each section against the right ones.
func TestRulesCanBeReplaced(t *testing.T) {
	t.Parallel()
	window := weir.Limit{Name: "n", Kind: weir.Window, Capacity: 5, Window: time.Minute}
	for _, c := range []struct {
		name  string
		spoil func(r *model.Rules)
		// play returns what differs.
		play func(d *desk) int64
		want int64 // with the right rules
	}{
		{"a unit is a tenth", func(r *model.Rules) {
			r.Units = func(*big.Int, int64) int64 { return 50 }
		}, (*desk).left, 5},
		{"whatever is asked fits", func(r *model.Rules) {
			r.Fits = func(weir.Kind, *big.Int, *big.Int) bool { return true }
		}, func(d *desk) int64 { d.reserve(4); d.reserve(4); return d.left() }, 1},
		{"nothing is taken", func(r *model.Rules) {
			r.TakenCost = func([]weir.Part) *big.Int { return new(big.Int) }
		}, func(d *desk) int64 { d.reserve(4); return d.left() }, 1},
		{"no wait", func(r *model.Rules) {
			r.RetryAfter = func([]weir.LimitStatus) time.Duration { return 0 }
		}, func(d *desk) int64 { d.reserve(4); _, wait := d.reserve(4); return int64(wait) }, int64(time.Minute)},
		{"a lease ends at once", func(r *model.Rules) {
			r.Ends = func(now, _ int64, _ []int64) int64 { return now }
		}, func(d *desk) int64 { l, _ := d.reserve(4); return int64(l.Expires.Sub(d.now)) }, int64(time.Hour)},
		{"a cancel keeps", func(r *model.Rules) {
			r.AtCancel = func(h *model.Holding) []weir.Part { return h.Parts }
		}, func(d *desk) int64 {
			l, _ := d.reserve(4)
			if _, err := d.Cancel(d.t.Context(), l.ID); err != nil {
				d.t.Fatal(err)
			}
			return d.left()
		}, 5},
		{"a change is ignored", func(r *model.Rules) {
			r.Configured = func(was, is *weir.Definitions) *weir.Definitions {
				if was != nil {
					return was
				}
				return is
			}
		}, func(d *desk) int64 {
			more := window
			more.Capacity = 9
			if err := d.Configure(&weir.Definitions{System: []weir.Limit{more}}); err != nil {
				d.t.Fatal(err)
			}
			return d.left()
		}, 9},
	} {
		if got := c.play(newDesk(t, nil, window)); got != c.want {
			t.Errorf("%s: the right rules give %d, want %d", c.name, got, c.want)
		}
		wrong := &model.Rules{}
		c.spoil(wrong)
		if got := c.play(newDesk(t, wrong, window)); got == c.want {
			t.Errorf("%s: the wrong rule gives %d too", c.name, got)
		}
	}
}
