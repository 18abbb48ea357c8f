package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// limitSet reads limits by name, in the document's order. The service validates them.
func (d *reader) limitSet(v *value) []weir.Limit {
	limits := []weir.Limit{}
	d.members(v, func(m *value) { limits = append(limits, d.limit(m)) })
	return limits
}

// limit reads one limit. A zero that is written out is refused: in a [weir.Limit] it would mean the
// default.
func (d *reader) limit(v *value) weir.Limit {
	l := weir.Limit{Name: v.name}
	capacity := false
	d.fields(v, func(name string, v *value) bool {
		switch name {
		case "kind":
			l.Kind = weir.Kind(d.text(v))
		case "capacity":
			capacity = true
			l.Capacity = d.integer(v)
		case "refill_amount":
			if l.RefillAmount = d.integer(v); l.RefillAmount == 0 {
				d.refuse(v, "must be above zero")
			}
		case "refill_period":
			l.RefillPeriod = d.periodSeconds(v)
		case "window":
			l.Window = d.seconds(v)
		case "timeout":
			l.Timeout = d.seconds(v)
		case "every":
			l.Every = d.text(v)
		case "zone":
			l.Zone = d.text(v)
		case "enforce":
			l.Shadow = !d.boolean(v)
		default:
			return false
		}
		return true
	})
	if !capacity && v.what() == "an object" {
		d.missing(v.path() + ".capacity")
	}
	return l
}

// limitBodyOf is a limit as the wire says it.
func limitBodyOf(l *weir.Limit) limitBody {
	b := limitBody{
		Kind: l.Kind, Capacity: l.Capacity, RefillAmount: l.RefillAmount,
		Window: int64(l.Window / time.Second), Timeout: int64(l.Timeout / time.Second),
		Every: l.Every, Zone: l.Zone,
	}
	if l.RefillPeriod != 0 {
		b.RefillPeriod = secondsNumber(l.RefillPeriod)
	}
	if l.Shadow {
		b.Enforce = new(false)
	}
	return b
}

// limitBodies are limits by name; never nil, so that none is an empty object.
func limitBodies(limits []weir.Limit) map[string]limitBody {
	bodies := make(map[string]limitBody, len(limits))
	for i := range limits {
		bodies[limits[i].Name] = limitBodyOf(&limits[i])
	}
	return bodies
}

// secondsNumber writes a duration in seconds, with up to three digits behind the point.
func secondsNumber(d time.Duration) json.Number {
	ms := d.Milliseconds()
	text := strconv.FormatInt(ms/1000, 10)
	if rest := ms % 1000; rest != 0 {
		text += strings.TrimRight("."+strconv.FormatInt(1000+rest, 10)[1:], "0")
	}
	return json.Number(text)
}
