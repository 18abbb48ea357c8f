package dynamodb

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// dated returns a transport whose answers have a Date that is off by the result of skew.
func dated(skew func() time.Duration, more ...string) http.RoundTripper {
	return script(reply{by: func(*http.Request) reply { return stamped(writeSucceeds(), skew(), more...) }})
}

// stamped returns an answer with a Date that is off by skew.
func stamped(answer reply, skew time.Duration, more ...string) reply {
	answer.header = http.Header{"Date": {time.Now().Add(skew).UTC().Format(http.TimeFormat)}}
	for _, name := range more {
		answer.header.Set(name, "1")
	}
	return answer
}

// TestClockOffset checks that many answers together give the offset with an error well below a
// second.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		skew     time.Duration
		headers  []string
		reported bool
	}{
		"the same":            {0, nil, false},
		"nearly the same":     {1900 * time.Millisecond, nil, false},
		"a bit behind":        {-1900 * time.Millisecond, nil, false},
		"ten minutes fast":    {-10 * time.Minute, nil, true},
		"ten minutes slow":    {10 * time.Minute, nil, true},
		"a little too far":    {2500 * time.Millisecond, nil, true},
		"out of a cache":      {10 * time.Minute, []string{"Age"}, false},
		"a little too fast":   {-2500 * time.Millisecond, nil, true},
		"far from everything": {-400 * 24 * time.Hour, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := wired(t, dated(func() time.Duration { return tc.skew }, tc.headers...))
				for range 40 {
					if err := sendUpdate(t.Context(), c); err != nil {
						t.Fatal(err)
					}
					time.Sleep(230 * time.Millisecond)
				}
				got := (&Store{client: c}).ClockOffset()
				switch {
				case !tc.reported && got != 0:
					t.Errorf("got %v, want nothing", got)
				case tc.reported && (got-tc.skew).Abs() > 150*time.Millisecond:
					t.Errorf("got %v, want %v to a tenth of a second or so", got, tc.skew)
				}
			})
		})
	}
}

// TestClockSet checks that a change of the table's clock is noticed at the next answer.
func TestClockSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var skew time.Duration
		c := wired(t, dated(func() time.Duration { return skew }))
		for _, step := range []time.Duration{0, -time.Hour, -time.Hour, 0, time.Minute} {
			skew = step
			if err := sendUpdate(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if got := c.Clock.Offset(); (got - step).Abs() > time.Second {
				t.Errorf("after %v: got %v", step, got)
			}
			time.Sleep(300 * time.Millisecond)
		}
	})
}

// TestClockRefused checks that the Date of a refusal counts too, and that an answer without a Date
// gives no offset.
func TestClockRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refusing := script(stamped(fails("ConditionalCheckFailedException", ""), time.Hour))
		c := wired(t, refusing)
		if kind := client.OutcomeOf(sendUpdate(t.Context(), c)).Kind; kind != client.WriteRefused {
			t.Fatalf("got kind %d", kind)
		}
		if got := c.Clock.Offset(); (got - time.Hour).Abs() > time.Second {
			t.Errorf("got %v, want an hour", got)
		}
		dateless := wired(t, script(writeSucceeds()))
		if err := sendUpdate(t.Context(), dateless); err != nil || dateless.Clock.Known.Load() != nil {
			t.Errorf("got %v and %v out of nothing", err, dateless.Clock.Known.Load())
		}
	})
}
