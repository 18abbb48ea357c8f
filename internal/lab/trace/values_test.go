package trace

import (
	"math/big"
	"testing"
)

func TestNumberMS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		unit Unit
		ms   int64
		more bool
		bad  bool
	}{
		{"0", Seconds, 0, false, false},
		{"5", Seconds, 5000, false, false},
		{"1.5", Seconds, 1500, false, false},
		{"1.0009", Seconds, 1000, true, false},
		{"1.999999", Seconds, 1999, true, false},
		{"1.00", Seconds, 1000, false, false},
		{"007.25", Seconds, 7250, false, false},
		{"9223372036854775.807", Seconds, 9223372036854775807, false, false},
		{"9223372036854775.808", Seconds, 0, false, true},
		{"9223372036854776", Seconds, 0, false, true},
		{"1700000000123", Milliseconds, 1700000000123, false, false},
		{"7.0", Milliseconds, 7, false, false},
		{"7.01", Milliseconds, 7, true, false},
		{"1999", Microseconds, 1, true, false},
		{"2000.0", Microseconds, 2, false, false},
		{"1999999", Nanoseconds, 1, true, false},
		{"9223372036854775808", Nanoseconds, 0, false, true},
	} {
		ms, more, reason := numberMS(c.text, c.unit)
		if ms != c.ms || more != c.more || reason != "" != c.bad {
			t.Errorf("%s %s: got %d, %v, %q, want %d, %v, mistake %v",
				c.text, c.unit, ms, more, reason, c.ms, c.more, c.bad)
		}
	}
	for text, want := range map[string]bool{
		"0": true, "0.5": true, "12.000": true, "": false, ".": false, "1.": false, ".5": false,
		"-1": false, "+1": false, "1e3": false, "1,5": false, "1.2.3": false, "١": false, "\t1": false,
	} {
		if got := IsNumber(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestParseDurationMS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		unit Unit
		want int64 // below 0 for a mistake
	}{
		{"0", Milliseconds, 0}, {"250", Milliseconds, 250}, {"250.1", Milliseconds, 251},
		{"1.0001", Seconds, 1001}, {"1", Nanoseconds, 1}, {"1000000", Nanoseconds, 1},
		{"1.5s", Nanoseconds, 1500}, {"1us", Milliseconds, 1}, {"0s", Milliseconds, 0},
		{"59m59.999s", Milliseconds, MaxCallMS}, {"3600", Seconds, -1}, {"59m59.9991s", Seconds, -1},
		{"2562047h47m16.854775807s", Milliseconds, -1}, {"9223372036854775807", Milliseconds, -1},
		{"9223372036854775807.5", Milliseconds, -1},
		{"x", Milliseconds, -1}, {"+1s", Milliseconds, -1}, {"-1s", Milliseconds, -1}, {"-1", Seconds, -1},
	} {
		got, reason := parseDurationMS(c.text, c.unit)
		if (reason == "") != (c.want >= 0) || reason == "" && got != c.want {
			t.Errorf("%s in %s: got %d, %q, want %d", c.text, c.unit, got, reason, c.want)
		}
	}
}

// FuzzNumberMS checks that the milliseconds are those of exact arithmetic.
func FuzzNumberMS(f *testing.F) {
	for _, s := range []string{"0", "1.5", "9223372036854775807.9", "12.0009", "1.", "x"} {
		f.Add(s, uint8(0))
	}
	f.Fuzz(func(t *testing.T, text string, unit uint8) {
		u := []Unit{Seconds, Milliseconds, Microseconds, Nanoseconds}[unit%4]
		if !IsNumber(text) || len(text) > 100 {
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is a number and none", text)
		}
		if per := u.perMS(); per > 0 {
			exact.Quo(exact, big.NewRat(per, 1))
		} else {
			exact.Mul(exact, big.NewRat(1000, 1))
		}
		whole := new(big.Int).Quo(exact.Num(), exact.Denom())
		ms, more, reason := numberMS(text, u)
		switch {
		case reason != "":
			if exact.Cmp(big.NewRat(1<<62, 1_000_000)) < 0 {
				t.Errorf("%q %s: got %q for a number that fits", text, u, reason)
			}
		case !whole.IsInt64() || whole.Int64() != ms || more == exact.IsInt():
			t.Errorf("%q %s: got %d, %v, want %v of %v", text, u, ms, more, whole, exact)
		}
	})
}
