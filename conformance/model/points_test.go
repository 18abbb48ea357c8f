package model_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// TestPointsReplaceValues sets a point of each section and expects an answer that differs from the
// right one.
func TestPointsReplaceValues(t *testing.T) {
	t.Parallel()
	window := weir.Limit{Name: "n", Kind: weir.Window, Capacity: 5, Window: time.Minute}
	for _, c := range []struct {
		name  string
		wrong model.Points
		// play returns the value that differs.
		play func(d *modelWorld) int64
		want int64 // if nothing is wrong
	}{
		{"statuses", model.Points{Status: func(_ *model.Judged, right weir.LimitStatus) weir.LimitStatus {
			right.Available = 50
			return right
		}}, (*modelWorld).left, 5},
		{"judging", model.Points{Fits: func(*model.Judged, bool) bool { return true }},
			func(d *modelWorld) int64 { d.reserve(4); d.reserve(4); return d.left() }, 1},
		{"taking", model.Points{Taking: func(j *model.JudgedRequest, right []*model.Take) []*model.Take {
			if !j.Denied {
				right[0].Parts[0].Units = 0
			}
			return right
		}}, func(d *modelWorld) int64 { d.reserve(4); return d.left() }, 1},
		{"instants", model.Points{Until: func(t model.Expiry, right int64) int64 {
			if t.Cause == model.Leased {
				return t.From
			}
			return right
		}}, func(d *modelWorld) int64 { l, _ := d.reserve(4); return int64(l.Expires.Sub(d.now)) }, int64(time.Hour)},
		{"checks", model.Points{Refuse: func(c model.Check, right error) error {
			if c.Line == "3.5" {
				return nil
			}
			return right
		}}, func(d *modelWorld) int64 {
			_, err := d.Reserve(d.t.Context(), &weir.Request{
				Entity: "e", Resource: "r", Costs: weir.Costs{"n": 6},
			})
			_, denied := errors.AsType[*weir.DeniedError](err)
			return map[bool]int64{true: 1}[denied]
		}, 0},
		{"settling", model.Points{StandFor: func(s *model.UpdatedHolding, _ []driver.Part) []driver.Part {
			return s.Parts
		}}, func(d *modelWorld) int64 {
			l, _ := d.reserve(4)
			if _, err := d.Cancel(d.t.Context(), l.ID); err != nil {
				d.t.Fatal(err)
			}
			return d.left()
		}, 5},
	} {
		if got := c.play(newModelWorld(t, nil, window)); got != c.want {
			t.Errorf("%s: the right model gives %d, want %d", c.name, got, c.want)
		}
		if got := c.play(newModelWorld(t, &c.wrong, window)); got == c.want {
			t.Errorf("%s: the wrong model gives %d too", c.name, got)
		}
	}
}
