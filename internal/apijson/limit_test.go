package apijson

import (
	"math"
	"testing"
	"time"
)

func TestSecondsNumber(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Millisecond: "0.001", 10 * time.Millisecond: "0.01", 100 * time.Millisecond: "0.1",
		time.Second: "1", 1001 * time.Millisecond: "1.001", 1250 * time.Millisecond: "1.25",
		time.Minute: "60", 100 * time.Second: "100",
	} {
		if got := secondsNumber(d); string(got) != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestCeilUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		-1: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2,
		math.MaxInt64: math.MaxInt64/1_000_000 + 1,
	} {
		if got := CeilUnits(d, time.Millisecond); got != want {
			t.Errorf("%d is %d milliseconds, want %d", d, got, want)
		}
	}
}
