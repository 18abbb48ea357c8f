package kernel_test

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir/kernel"
)

// scannedZones have every sort of clock change: at, before and after midnight, by minutes, half
// hours, hours and whole days, and offsets with odd seconds.
var scannedZones = []string{
	"Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia", "America/Asuncion",
	"America/Caracas", "America/Godthab", "America/Havana", "America/Juneau",
	"America/Metlakatla", "America/New_York", "America/Santiago", "America/Sao_Paulo",
	"America/Scoresbysund", "America/St_Johns", "Antarctica/Casey", "Antarctica/Troll",
	"Asia/Amman", "Asia/Beirut", "Asia/Dhaka", "Asia/Gaza", "Asia/Kathmandu",
	"Asia/Kolkata", "Asia/Manila", "Asia/Pyongyang", "Asia/Singapore", "Asia/Tehran",
	"Atlantic/Azores", "Australia/Lord_Howe", "Europe/Amsterdam", "Europe/Berlin",
	"Europe/Dublin", "Europe/London", "Europe/Moscow", "Pacific/Apia", "Pacific/Auckland",
	"Pacific/Chatham", "Pacific/Enderbury", "Pacific/Kwajalein", "Pacific/Norfolk",
}

// wallClock defines periods by what a wall clock shows, without using the bounds of UTC offsets. A
// scan reads it second by second near changes.
type wallClock struct {
	every string
	reach time.Duration // how far around a clock change to scan
}

var wallClocks = []wallClock{
	{"hour", 3 * 24 * time.Hour},
	{"day", 5 * 24 * time.Hour},
	{"week", 22 * 24 * time.Hour},
	{"month", 70 * 24 * time.Hour},
}

// reading is the display of a wall clock at one instant.
type reading struct {
	label  int64 // number of the period that the clock shows; grows with local time
	offset int64 // seconds from UTC
}

func (c wallClock) read(sec int64, zone *time.Location) reading {
	t := time.Unix(sec, 0).In(zone)
	_, off := t.Zone()
	offset := int64(off)
	hours := floorDiv(sec+offset, 3600)
	switch c.every {
	case "hour":
		return reading{hours, offset}
	case "day":
		return reading{floorDiv(hours, 24), offset}
	case "week":
		return reading{floorDiv(floorDiv(hours, 24)+3, 7), offset} // 1970 began on a Thursday
	default:
		return reading{int64(t.Year())*12 + int64(t.Month()), offset}
	}
}

// scan finds the starts of periods by walking through time.
type scan struct {
	wallClock
	zone    *time.Location
	last    reading
	highest int64 // the latest label seen
	starts  []int64
}

// steps are strides in seconds. A stride is divided into smaller ones only if the clock shows
// something else after it.
var steps = []int64{6 * 3600, 900, 60, 1}

func (s *scan) run(from, to int64, steps []int64) {
	for at := from; at < to; at += steps[0] {
		next := min(at+steps[0], to)
		r := s.read(next, s.zone)
		if r == s.last {
			continue
		}
		if len(steps) > 1 {
			s.run(at, next, steps[1:])
			continue
		}
		// A date's period starts when the date comes for the first time. An hour starts when its
		// number comes, or when the clock goes back into it.
		starts := r.label > s.highest
		if s.every == "hour" {
			starts = r.label != s.last.label || r.offset < s.last.offset
		}
		if starts {
			s.starts = append(s.starts, next)
		}
		s.last, s.highest = r, max(s.highest, r.label)
	}
}

// startsAround returns the starts of the periods around a clock change. The first two days only
// find out which date is the latest.
func (c wallClock) startsAround(change int64, zone *time.Location) []int64 {
	const lesson = 48 * 3600
	reach := int64(c.reach / time.Second)
	from := change - reach - lesson
	s := scan{wallClock: c, zone: zone, last: c.read(from, zone)}
	s.highest = s.last.label
	s.run(from, change+reach, steps)
	for len(s.starts) > 0 && s.starts[0] < from+lesson {
		s.starts = s.starts[1:]
	}
	return s.starts
}

// changeKind classifies clock changes by the offsets before and after, the time of day, and whether
// a week or month starts nearby.
type changeKind struct {
	was, is, timeOfDay int64
	weekEdge           time.Weekday // Sunday or Monday, else Tuesday
	monthEdge          int          // 1 on the last day, 2 on the first, else 0
}

func kindOf(change, was, is int64) changeKind {
	local := time.Unix(change+was, 0).UTC()
	k := changeKind{was: was, is: is, timeOfDay: (change + was) % (24 * 3600)}
	k.weekEdge = min(local.Weekday(), time.Tuesday)
	if tomorrow := local.AddDate(0, 0, 1).Day(); tomorrow <= 2 {
		k.monthEdge = tomorrow
	}
	return k
}

// clockChanges returns one instant of each kind of clock change in a zone.
func clockChanges(zone *time.Location) []int64 {
	const stride = 4 * 24 * 3600
	at := time.Date(1840, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	last := time.Date(2045, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	offset := func(sec int64) int64 {
		_, off := time.Unix(sec, 0).In(zone).Zone()
		return int64(off)
	}
	seen := make(map[changeKind]bool)
	var changes []int64
	for was := offset(at); at < last; at += stride {
		if offset(at+stride) == was {
			continue
		}
		low, high := at, at+stride // the offset at low is the old one, and that at high is not
		for high-low > 1 {
			if middle := (low + high) / 2; offset(middle) == was {
				low = middle
			} else {
				high = middle
			}
		}
		if k := kindOf(high, was, offset(high)); !seen[k] {
			seen[k] = true
			changes = append(changes, high)
		}
		was = offset(at + stride)
	}
	return changes
}

// TestPeriodAgainstScan compares Period with the scan around every kind of clock change.
func TestPeriodAgainstScan(t *testing.T) {
	t.Parallel()
	for _, name := range scannedZones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			changes := clockChanges(zone)
			compared := 0
			for _, c := range wallClocks {
				in := kernel.Calendar{Every: c.every, Zone: zone}
				for _, change := range changes {
					compared += comparePeriods(t, in, change, c.startsAround(change, zone))
				}
			}
			t.Logf("%d kinds of clock change, %d periods compared", len(changes), compared)
			if len(changes) == 0 || compared < 100*len(changes) {
				t.Errorf("only %d clock changes and %d periods", len(changes), compared)
			}
		})
	}
}

// comparePeriods calls Period for instants throughout each period that the scan found.
func comparePeriods(t *testing.T, c kernel.Calendar, change int64, starts []int64) int {
	t.Helper()
	for i := range len(starts) - 1 {
		start, end := time.Unix(starts[i], 0), time.Unix(starts[i+1], 0)
		length := end.Sub(start)
		probes := []time.Time{
			start, start.Add(1), start.Add(length / 3), start.Add(length / 2), end.Add(-1),
		}
		if starts[i] < change && change < starts[i+1] {
			probes = append(probes, time.Unix(change, -1), time.Unix(change, 0), time.Unix(change, 1))
		}
		for _, at := range probes {
			gotStart, gotEnd := c.Period(at)
			if !gotStart.Equal(start) || !gotEnd.Equal(end) {
				t.Fatalf("%s in %s at %v: got %v to %v, want %v to %v", c.Every, c.Zone, at.UTC(),
					gotStart.UTC(), gotEnd.UTC(), start.UTC(), end.UTC())
			}
		}
	}
	return len(starts) - 1
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
