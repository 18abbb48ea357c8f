package httphandler

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/internal/metadata"
)

// policy reads an [apijson.Policy].
func (d *bodyReader) policy(text []byte) (policy weir.Policy, err error) {
	err = d.only(text, "on_unavailable", func() { policy = weir.Policy(d.string()) })
	return policy, err
}

// retention reads an [apijson.Retention]. The service validates its settings.
func (d *bodyReader) retention(text []byte) (r weir.Retention, err error) {
	if err := d.begin(text); err != nil {
		return r, err
	}
	d.fields(func(name []byte) bool {
		switch string(name) {
		case "usage_days":
			r.UsageDays = new(d.integer())
		case "audit_days":
			r.AuditDays = new(d.integer())
		case "ttl_multiplier":
			r.TTLMultiplier = new(d.integer())
		default:
			return false
		}
		return true
	})
	return r, d.end()
}

// limitSet reads an [apijson.LimitSet]. An empty object removes the limits.
func (d *bodyReader) limitSet(text []byte) (limits []weir.Limit, err error) {
	err = d.only(text, "limits", func() { limits = d.limits() })
	return limits, err
}

// only reads a body that has exactly one member.
func (d *bodyReader) only(text []byte, member string, read func()) error {
	if err := d.begin(text); err != nil {
		return err
	}
	given := false
	if d.fields(func(name []byte) bool {
		if string(name) != member {
			return false
		}
		given = true
		read()
		return true
	}) {
		d.require(member, given)
	}
	return d.end()
}

// limits reads limits by name, in the order of the document. The service validates them.
func (d *bodyReader) limits() []weir.Limit {
	limits := []weir.Limit{}
	if d.is(jsontext.KindBeginObject) {
		d.each(func(name []byte) { limits = append(limits, d.limit(d.keep(name))) })
	}
	return limits
}

// limit reads one limit. It refuses an explicit zero for a field of [weir.Limit] whose zero value
// means the default.
func (d *bodyReader) limit(name string) weir.Limit {
	l := weir.Limit{Name: name}
	capacity := false
	if d.fields(func(name []byte) bool {
		switch string(name) {
		case "kind":
			l.Kind = weir.Kind(d.string())
		case "capacity":
			capacity, l.Capacity = true, d.amount(l.Name)
		case "refill_amount":
			if l.RefillAmount = d.amount(l.Name); l.RefillAmount == 0 {
				d.refuse("must be above zero")
			}
		case "refill_period":
			l.RefillPeriod = d.periodSeconds()
		case "window":
			l.Window = d.seconds()
		case "timeout":
			l.Timeout = d.seconds()
		case "every":
			l.Every = d.string()
		case "zone":
			l.Zone = d.string()
		case "enforce":
			l.Shadow = !d.boolean()
		default:
			return false
		}
		return true
	}) {
		d.require("capacity", capacity)
	}
	return l
}

// entity reads an [apijson.EntityChange]. The service validates the name and the metadata.
func (d *bodyReader) entity(text []byte) (*change.Entity, error) {
	if err := d.begin(text); err != nil {
		return nil, err
	}
	e := &change.Entity{}
	d.fields(func(name []byte) bool {
		switch string(name) {
		case "parent":
			e.Parent = d.string()
		case "cascade":
			e.Cascade = d.boolean()
		case "name":
			if d.is(jsontext.KindString) {
				e.Name = new(string(d.unquoted())) // empty removes it
			}
		case "metadata":
			e.Metadata = d.metadata()
		default:
			return false
		}
		return true
	})
	return e, d.end()
}

// metadata reads the metadata of an entity: an object of any values.
func (d *bodyReader) metadata() map[string]any {
	m := map[string]any{}
	if !d.is(jsontext.KindBeginObject) {
		return m
	}
	d.each(func(name []byte) {
		key := string(name)
		value := d.value()
		if d.malformed {
			return
		}
		v, err := metadata.ParseValue(value)
		if err != nil {
			d.refuse(err.Error())
			return
		}
		m[key] = v
	})
	return m
}
