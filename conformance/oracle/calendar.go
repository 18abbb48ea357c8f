package oracle

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // for machines without zones
)

// twoDays in minutes is more than any local clock has gone back since 1970.
const twoDays = 2 * 24 * 60

// period is a stretch of time in epoch minutes; next is the start of the period after it.
type period struct{ start, next int64 }

// calendar finds the periods of one length in one zone by walking over instants, minute by minute.
// It keeps what it found.
type calendar struct {
	every string
	zone  *time.Location
	found []period
}

func (c *checker) calendar(every, zone string) (*calendar, error) {
	known := []string{"hour", "day", "week", "month"}
	if !slices.Contains(known, every) || zone == "Local" {
		return nil, fmt.Errorf("every %q or zone %q is unknown", every, zone)
	}
	key := every + " " + zone
	if c.calendars[key] == nil {
		location, err := time.LoadLocation(zone)
		if err != nil {
			return nil, err
		}
		c.calendars[key] = &calendar{every: every, zone: location}
	}
	return c.calendars[key], nil
}

// period is the one in force at an instant in epoch ms.
func (c *calendar) period(atMS int64) period {
	minute := atMS / 60_000
	for _, p := range slices.Backward(c.found) {
		if p.start <= minute && minute < p.next {
			return p
		}
	}
	p := period{minute, minute + 1}
	for !c.starts(p.start) {
		p.start--
	}
	for !c.starts(p.next) {
		p.next++
	}
	c.found = append(c.found, p)
	return p
}

// starts says whether a period starts with a minute: another local hour or the same one again, or
// the first instant of a local date that lies in a period not begun before.
func (c *calendar) starts(minute int64) bool {
	if c.every == "hour" {
		now, before := c.local(minute), c.local(minute-1)
		_, offset := now.Zone()
		_, offsetBefore := before.Zone()
		return now.Hour() != before.Hour() || offset < offsetBefore
	}
	number := c.number(minute)
	for back := int64(1); back <= twoDays; back++ {
		if c.number(minute-back) >= number {
			return false
		}
	}
	return true
}

func (c *calendar) local(minute int64) time.Time { return time.Unix(minute*60, 0).In(c.zone) }

// number counts the days, weeks or months by the local date of a minute.
func (c *calendar) number(minute int64) int64 {
	year, month, day := c.local(minute).Date()
	if c.every == "month" {
		return int64(year)*12 + int64(month)
	}
	days := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60)
	if c.every == "week" {
		const thursday = 3 // the epoch began on one, counted from Monday
		return (days + thursday) / 7
	}
	return days
}
