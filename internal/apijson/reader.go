package apijson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// MaxMistakes bounds how many mistakes of one request are told.
const MaxMistakes = 16

// The bounds of one request, as the limiter has them: what is above is refused without reading it.
const (
	maxCharges = 16
	maxCosts   = 32
)

// reader takes typed values out of a document and gathers every mistake on the way. What it returns
// is worth nothing once there is a mistake.
type reader struct{ mistakes []error }

// err returns the mistakes, joined; nil if there are none.
func (d *reader) err() error { return Join(d.mistakes) }

func (d *reader) add(err error) {
	if err != nil && !d.full() {
		d.mistakes = append(d.mistakes, err)
	}
}

// full is whether no more mistakes are told, so that there is nothing left to read for.
func (d *reader) full() bool { return len(d.mistakes) >= MaxMistakes }

func (d *reader) refuse(v *value, reason string) {
	d.add(Invalid(v.path(), string(v.text), reason))
}

// fields reads an object whose members take knows by name; it returns false for a name that it does
// not know.
func (d *reader) fields(v *value, take func(name string, v *value) bool) {
	if !d.is(v, "an object") {
		return
	}
	d.add(v.each(func(m *value) bool {
		if !take(m.name, m) {
			d.add(Invalid(m.path(), m.name, "is no field here"))
		}
		return !d.full()
	}))
}

// members reads an object whose names are free.
func (d *reader) members(v *value, take func(v *value)) {
	if !d.is(v, "an object") {
		return
	}
	d.add(v.each(func(m *value) bool { take(m); return !d.full() }))
}

// bounded reads an array, or an object whose names are free, of which a request may have only so
// many members: those above are counted, not read.
func (d *reader) bounded(v *value, most int, take func(v *value)) {
	n := 0
	err := v.each(func(m *value) bool {
		if n++; n <= most {
			take(m)
		}
		return !d.full()
	})
	if err == nil && n > most {
		err = Invalid(v.path(), n, "at most "+strconv.Itoa(most)+" in a request")
	}
	d.add(err)
}

// elements reads an array with an element for each charge.
func (d *reader) elements(v *value, take func(v *value)) {
	if d.is(v, "an array") {
		d.bounded(v, maxCharges, take)
	}
}

func (d *reader) is(v *value, what string) bool {
	if got := v.what(); got != what {
		d.refuse(v, "must be "+what+", is "+got)
		return false
	}
	return true
}

// require refuses an object of if it lacks a member: then given is nil.
func (d *reader) require(of *value, member string, given *value) {
	if given != nil || of.what() != "an object" {
		return
	}
	if of.of != nil {
		member = of.path() + "." + member
	}
	d.add(Invalid(member, "", "must be given"))
}

// text reads a string that is not empty.
func (d *reader) text(v *value) string {
	if !d.is(v, "a string") {
		return ""
	}
	s := unquote(v.text)
	if s == "" {
		d.add(Invalid(v.path(), "", "must not be empty"))
	}
	return s
}

func (d *reader) boolean(v *value) bool {
	return d.is(v, "a boolean") && v.text[0] == 't'
}

// integer reads a whole number of 64 bits, written as one.
func (d *reader) integer(v *value) int64 {
	if !d.is(v, "a number") {
		return 0
	}
	if bytes.ContainsAny(v.text, ".eE") {
		d.refuse(v, "must be written as a whole number, without fraction or exponent")
		return 0
	}
	n, err := strconv.ParseInt(string(v.text), 10, 64)
	if err != nil {
		d.refuse(v, "must fit a signed integer of 64 bits")
	}
	return n
}

// seconds reads a whole number of seconds, not zero: zero would mean the default.
func (d *reader) seconds(v *value) time.Duration {
	before := len(d.mistakes)
	n := d.integer(v)
	if len(d.mistakes) > before {
		return 0
	}
	return d.duration(v, n, int64(time.Second))
}

// periodSeconds reads seconds with at most three digits behind the point.
func (d *reader) periodSeconds(v *value) time.Duration {
	if !d.is(v, "a number") {
		return 0
	}
	whole, fraction, _ := strings.Cut(string(v.text), ".")
	if len(fraction) > 3 || bytes.ContainsAny(v.text, "eE") {
		d.refuse(v, "must be seconds with at most three digits behind the point, without exponent")
		return 0
	}
	n, err := strconv.ParseInt(whole+fraction+"000"[len(fraction):], 10, 64)
	if err != nil {
		d.refuse(v, "must be at most a hundred years")
		return 0
	}
	return d.duration(v, n, int64(time.Millisecond))
}

func (d *reader) duration(v *value, n, unit int64) time.Duration {
	switch {
	case n == 0:
		d.refuse(v, "must be above zero")
		return 0
	case n > math.MaxInt64/unit || n < math.MinInt64/unit:
		d.refuse(v, "must be at most a hundred years")
		return 0
	}
	return time.Duration(n * unit)
}

// leaseID reads a ULID that is not zero.
func (d *reader) leaseID(v *value) weir.LeaseID {
	if !d.is(v, "a string") {
		return weir.LeaseID{}
	}
	id, err := weir.ParseLeaseID(unquote(v.text))
	if err != nil {
		d.add(err)
	} else if id.IsZero() {
		d.add(Invalid(v.path(), id, "must not be zero"))
	}
	return id
}

// costs reads amounts by limit name. Names and signs are judged by the service.
func (d *reader) costs(v *value) weir.Costs {
	costs := weir.Costs{}
	if d.is(v, "an object") {
		d.bounded(v, maxCosts, func(m *value) { costs[m.name] = d.integer(m) })
	}
	return costs
}

// amounts reads costs in a settlement, which may also name the slots that were taken unasked.
func (d *reader) amounts(v *value) weir.Costs {
	costs := weir.Costs{}
	d.members(v, func(m *value) { costs[m.name] = d.integer(m) })
	return costs
}

// What follows writes requests. The server judges them; refused here is only what the wire would
// silently change, in the limiter's words.

// Write encodes a body. Only strings and whole numbers go in, so that it cannot fail.
func Write(body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, Invalid("body", "", "cannot be written as JSON: "+err.Error())
	}
	return text, nil
}

// Read decodes an answer. Fields that are not known are a newer server's.
func Read[T any](body []byte) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return out, nil
}
