package chart

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir/internal/text"
)

// size returns the size at which a value is drawn: 0 if it is negative.
func size(v int64) uint64 { return uint64(max(v, 0)) }

// sum adds values. It stops at the largest number.
func sum(values []uint64) uint64 {
	var total uint64
	for _, v := range values {
		next, carry := bits.Add64(total, v, 0)
		if carry != 0 {
			return math.MaxUint64
		}
		total = next
	}
	return total
}

// plus adds two non-negative numbers. It stops at the largest number.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// scale returns the position of a value on a scale from 0 to top with the given length, rounded.
func scale(v, top uint64, length int) int {
	if length <= 0 || top == 0 {
		return 0
	}
	if v >= top {
		return length
	}
	hi, lo := bits.Mul64(v, uint64(length))
	lo, carry := bits.Add64(lo, top/2, 0)
	q, _ := bits.Div64(hi+carry, lo, top)
	return int(q)
}

// niceTop returns the top of a scale for values up to a largest one: a round number whose half is
// round too, so that both can be labels.
func niceTop(largest uint64) uint64 {
	if largest <= 1 {
		return 1
	}
	if largest <= 8 {
		return largest + largest%2
	}
	const tenths = 10
	for unit := uint64(1); ; unit *= 10 {
		for _, m := range []uint64{10, 12, 16, 20, 24, 30, 40, 50, 60, 80} {
			hi, top := bits.Mul64(m, unit)
			if hi != 0 {
				return math.MaxUint64
			}
			if top >= largest {
				return top
			}
		}
		if unit > math.MaxUint64/tenths {
			return math.MaxUint64
		}
	}
}

// roundTop returns niceTop for values of a unit.
func roundTop(largest uint64, unit string) uint64 {
	const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
	if unit != Milliseconds || largest <= 8*second {
		return niceTop(largest)
	}
	for _, top := range []uint64{
		10 * second, 20 * second, 30 * second, minute, 2 * minute, 4 * minute, 10 * minute,
		20 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 12 * hour, day,
	} {
		if largest <= top {
			return top
		}
	}
	hi, top := bits.Mul64(niceTop((largest-1)/day+1), day)
	if hi != 0 {
		return math.MaxUint64
	}
	return top
}

// compact writes a number in a few characters: 1.2k, 340M. It keeps three digits.
func compact(v uint64) string {
	digits := strconv.FormatUint(v, 10)
	if len(digits) <= 3 {
		return digits
	}
	group := (len(digits) - 1) / 3
	whole := len(digits) - 3*group
	rest := strings.TrimRight(digits[whole:3], "0")
	if rest != "" {
		rest = "." + rest
	}
	return digits[:whole] + rest + string("kMGTPE"[group-1])
}

// exact writes a value in full, with its unit.
func exact(v int64, unit string) string {
	switch unit {
	case "":
		return text.FormatInt(v)
	case Milliseconds:
		return duration(v)
	}
	return text.FormatInt(v) + " " + unit
}

// plain writes a value in full, without its unit unless it is a duration.
func plain(v int64, unit string) string {
	if unit == Milliseconds {
		return duration(v)
	}
	return text.FormatInt(v)
}

// short writes a value beside a scale.
func short(v uint64, unit string) string {
	const day, most = 86_400_000, 999
	switch {
	case unit == Milliseconds && v/day > most:
		return compact(v/day) + " d"
	case unit == Milliseconds:
		return duration(int64(v))
	}
	return compact(v)
}

// duration writes milliseconds with their two largest units: 12 ms, 1.5 s, 3 min 20 s, 2 h.
func duration(ms int64) string {
	if ms < 0 {
		if ms == math.MinInt64 {
			ms++
		}
		return "-" + duration(-ms)
	}
	const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
	two := func(large, small int64, names [2]string) string {
		out := text.FormatInt(ms/large) + " " + names[0]
		if rest := ms % large / small; rest > 0 {
			out += " " + strconv.FormatInt(rest, 10) + " " + names[1]
		}
		return out
	}
	switch {
	case ms < second:
		return strconv.FormatInt(ms, 10) + " ms"
	case ms < minute:
		out := strconv.FormatInt(ms/second, 10)
		if tenth := ms % second / 100; tenth > 0 {
			out += "." + strconv.FormatInt(tenth, 10)
		}
		return out + " s"
	case ms < hour:
		return two(minute, second, [2]string{"min", "s"})
	case ms < day:
		return two(hour, minute, [2]string{"h", "min"})
	}
	return two(day, hour, [2]string{"d", "h"})
}
