package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

func TestParseLimit(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	bucket := func(capacity, rate int64, period time.Duration) weir.Limit {
		return weir.Limit{Capacity: capacity, RefillAmount: rate, RefillPeriod: period}
	}
	budget := func(capacity int64, every, zone string) weir.Limit {
		return weir.Limit{Kind: weir.Budget, Capacity: capacity, Every: every, Zone: zone}
	}
	shadow := func(l weir.Limit) weir.Limit {
		l.Shadow = true
		return l
	}
	slots := weir.Limit{Kind: weir.Concurrency, Capacity: 20, Timeout: 5 * time.Minute}
	daily := weir.Limit{Kind: weir.Window, Capacity: 5000, Window: day}
	for _, tt := range []struct {
		in        string
		want      weir.Limit
		canonical string // if it differs from in
	}{
		{"rpm:600", bucket(600, 600, time.Minute), ""},
		{"tpm:100000/min:200000", bucket(200000, 100000, time.Minute), ""},
		{"tpm:100000:200000", bucket(200000, 100000, time.Minute), "tpm:100000/min:200000"},
		{"rps:10/s", bucket(10, 10, time.Second), ""},
		{"rps:10/sec", bucket(10, 10, time.Second), "rps:10/s"},
		{"rps:10/1s", bucket(10, 10, time.Second), "rps:10/s"},
		{"a.b-c_d:10/5min", bucket(10, 10, 5*time.Minute), ""},
		{"r:10/90s:7", bucket(7, 10, 90*time.Second), ""},
		{"r:10/120sec", bucket(10, 10, 2*time.Minute), "r:10/2min"},
		{"r:10/24hour", bucket(10, 10, day), "r:10/day"},
		{"r:10/60min", bucket(10, 10, time.Hour), "r:10/hour"},
		{"r:10/250ms", bucket(10, 10, 250*time.Millisecond), ""},
		{"r:10/36500day", bucket(10, 10, 36500*day), ""},
		{"r:9223372036854775", bucket(9223372036854775, 9223372036854775, time.Minute), ""},
		{"r:600:600", bucket(600, 600, time.Minute), "r:600"},
		{"r:007", bucket(7, 7, time.Minute), "r:7"},
		{"parallel:20:concurrency/300s", slots, ""},
		{"parallel:20:concurrency/5min", slots, "parallel:20:concurrency/300s"},
		{"day:5000:window/86400s", daily, ""},
		{"day:5000:window/day", daily, "day:5000:window/86400s"},
		{"usd_micros:50000000:budget/month", budget(50000000, "month", "UTC"), ""},
		{"u:5:budget/week@Europe/Berlin", budget(5, "week", "Europe/Berlin"), ""},
		{"u:5:budget/day@Etc/GMT+5", budget(5, "day", "Etc/GMT+5"), ""},
		{"u:5:budget/hour@UTC", budget(5, "hour", "UTC"), "u:5:budget/hour"},
		{"rpm:600:shadow", shadow(bucket(600, 600, time.Minute)), ""},
		{"u:5:budget/day@Asia/Tokyo:shadow", shadow(budget(5, "day", "Asia/Tokyo")), ""},
		{"shadow:5:7:shadow", shadow(bucket(7, 5, time.Minute)), "shadow:5/min:7:shadow"},
	} {
		tt.want.Name, _, _ = strings.Cut(tt.in, ":")
		if tt.want.Kind == "" {
			tt.want.Kind = weir.Bucket
		}
		got, err := manifest.ParseLimit(tt.in)
		if err != nil || !got.Same(tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tt.in, got, err, tt.want)
			continue
		}
		if tt.canonical == "" {
			tt.canonical = tt.in
		}
		if text := manifest.FormatLimit(got); text != tt.canonical {
			t.Errorf("%s: got %s, want %s", tt.in, text, tt.canonical)
		}
	}
}

func TestParseLimitMistakes(t *testing.T) {
	t.Parallel()
	const form = "must be NAME:RATE[/PERIOD][:CAPACITY] or NAME:CAPACITY:KIND/PERIOD"
	const kinds = "kind must be window, concurrency or budget, and a bucket's capacity a number"
	const period = "period must be [N]s, [N]min, [N]hour or [N]day"
	for _, tt := range []struct{ in, want string }{
		{"", form},
		{"rpm", form},
		{"shadow", form},
		{"rpm:shadow", form},
		{"rpm:1:2:3", form},
		{"rpm:1:2:shadow:shadow", form},
		{":600", "name must not be empty"},
		{"1rpm:600", "name must not begin with '1'"},
		{"wcu:600", "name is reserved"},
		{"rpm:", "rate is missing"},
		{"rpm:/min", "rate is missing"},
		{"rpm:0", "rate must be above zero"},
		{"rpm:0/min:100", "rate must be above zero"},
		{"rpm:-5", "rate must be a whole number in decimal digits"},
		{"rpm:+5", "rate must be a whole number in decimal digits"},
		{"rpm:1.5", "rate must be a whole number in decimal digits"},
		{"rpm:1_000", "rate must be a whole number in decimal digits"},
		{
			"usd_micros:0.50:budget/month", "capacity must be a whole number in decimal digits; " +
				"money is counted in whole millionths: write 500000 for 0.50 USD",
		},
		{
			"usd:$20", "rate must be a whole number in decimal digits; money is counted in whole millionths, " +
				"in a limit with a name such as usd_micros: write 20000000 for 20 USD",
		},
		{"rpm:９", "rate must be a whole number in decimal digits"},
		{"rpm:9223372036854775808", "rate must be a whole number within 64 bits"},
		{"rpm:600/", period},
		{"rpm:600/h", period},
		{"rpm:600/Min", period},
		{"rpm:600/1.5min", period},
		{"rpm:600/0min", "period must be above zero"},
		{"rpm:600/36501day", "refill_period must be at most a hundred years"},
		{"rpm:600/9223372036854775807day", "refill_period must be at most a hundred years"},
		{"rpm:600/min/min", period},
		{"rpm:600/min:", "capacity is missing"},
		{"rpm:600:", "capacity is missing"},
		{"rpm::600", "rate is missing"},
		{"rpm::window/60s", "capacity is missing"},
		{"rpm:600/min:0", "capacity must be above zero"},
		{"rpm:600/min:x", "capacity must be a whole number in decimal digits"},
		{"rpm:600:x", kinds},
		{"rpm:600:bucket/min", kinds},
		{"p:20:concurrency", period},
		{"p:20:concurrency/", period},
		{"p:0:concurrency/300s", "capacity must be above zero"},
		{"p:20:concurrency/1500ms", "timeout must be whole seconds"},
		{"d:5:window/500ms", "window must be whole seconds"},
		{"u:5:budget", "every must be hour, day, week or month"},
		{"u:5:budget/year", "every must be hour, day, week or month"},
		{"u:5:budget/2day", "every must be hour, day, week or month"},
		{"u:5:budget/day@", "needs a zone after '@'"},
		{"u:5:budget/day@Mars/Olympus", "zone is not a known IANA time zone"},
		{"u:5:budget/day@Local", "zone must be the name of an IANA time zone, not the machine's own zone"},
	} {
		got, err := manifest.ParseLimit(tt.in)
		want := fmt.Sprintf("weir: invalid: limit %q: %s", tt.in, tt.want)
		typed := errors.Is(err, weir.Invalid)
		if !typed || err.Error() != want || got != (weir.Limit{}) {
			t.Errorf("%s: got %+v, %v, want %s", tt.in, got, err, want)
		}
	}
}

func TestParseLimitReportsEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := manifest.ParseLimit("u x:5:budget/year@Mars")
	want := `weir: invalid: limit "u x:5:budget/year@Mars": name must not contain ' '
weir: invalid: limit "u x:5:budget/year@Mars": every must be hour, day, week or month
weir: invalid: limit "u x:5:budget/year@Mars": zone is not a known IANA time zone`
	if fmt.Sprint(err) != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = manifest.ParseLimit(strings.Repeat("x", 1000))
	if got := fmt.Sprint(err); len(got) > 300 || !strings.Contains(got, "(1000 bytes)") {
		t.Errorf("got %s, want it shortened", got)
	}
}

// FuzzParseLimit checks that no input panics, that a refusal has a reason, and that what is parsed
// is the same after it is formatted and parsed again.
func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{
		"rpm:600", "tpm:100000/min:200000", "parallel:20:concurrency/300s", "day:5000:window/86400s",
		"usd_micros:50000000:budget/month@Europe/Berlin:shadow", "a:1/3ms:7", "x:9223372036854775/36500day",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := manifest.ParseLimit(s)
		if err != nil {
			if e, ok := errors.AsType[*weir.Error](err); !ok || e.Reason == "" {
				t.Errorf("%q: got %v, want a *weir.Error with a reason", s, err)
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Errorf("%q: got %+v: %v", s, l, err)
		}
		text := manifest.FormatLimit(l)
		back, err := manifest.ParseLimit(text)
		if err != nil || !back.Same(l) {
			t.Errorf("%q: written as %q, read back as %+v, %v, want %+v", s, text, back, err, l)
		}
		if again := manifest.FormatLimit(back); again != text {
			t.Errorf("%q: written as %q, then as %q", s, text, again)
		}
	})
}
