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

// MaxMistakes bounds how many mistakes of one request are reported.
const MaxMistakes = 16

// The bounds of one request, which are the engine's. What is above them is refused without reading
// it.
const (
	maxCharges = 16
	maxCosts   = 32
)

// reader reads typed values and collects the mistakes in them. After a mistake the values mean
// nothing.
type reader struct{ mistakes []error }

// err returns the mistakes, joined; nil if there are none.
func (d *reader) err() error { return Join(d.mistakes) }

func (d *reader) add(err error) {
	if err != nil && !d.full() {
		d.mistakes = append(d.mistakes, err)
	}
}

// full reports whether there are as many mistakes as are reported, so that reading on is useless.
func (d *reader) full() bool { return len(d.mistakes) >= MaxMistakes }

func (d *reader) refuse(v *value, reason string) {
	d.add(Invalid(v.path(), string(v.text), reason))
}

// fields reads an object with known members. The function take reads one of them, and returns false
// for an unknown name.
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

// members reads an object with members of any name.
func (d *reader) members(v *value, take func(v *value)) {
	if !d.is(v, "an object") {
		return
	}
	d.add(v.each(func(m *value) bool { take(m); return !d.full() }))
}

// bounded reads an array, or an object with members of any name. Members above the bound are
// counted, but not read.
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

// elements reads an array that has an element for each charge.
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

// require refuses the object of if one of its members was not given.
func (d *reader) require(of *value, member string, given *value) {
	if given != nil || of.what() != "an object" {
		return
	}
	if of.of != nil {
		member = of.path() + "." + member
	}
	d.add(Invalid(member, "", "must be given"))
}

// text reads a string, which must not be empty.
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

// integer reads a whole number of 64 bits. It refuses other notations, such as 1e3 or 1.0.
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

// seconds reads a whole number of seconds. It refuses zero, which would mean the default.
func (d *reader) seconds(v *value) time.Duration {
	before := len(d.mistakes)
	n := d.integer(v)
	if len(d.mistakes) > before {
		return 0
	}
	return d.duration(v, n, int64(time.Second))
}

// periodSeconds reads seconds with at most three decimals.
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

// leaseID reads a ULID, which must not be zero.
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

// costs reads amounts by limit name. The service validates names and signs.
func (d *reader) costs(v *value) weir.Costs {
	costs := weir.Costs{}
	if d.is(v, "an object") {
		d.bounded(v, maxCosts, func(m *value) { costs[m.name] = d.integer(m) })
	}
	return costs
}

// amounts reads the amounts of an update. They may be more than a request has costs, because a
// concurrency limit that applies is taken without being named.
func (d *reader) amounts(v *value) weir.Costs {
	costs := weir.Costs{}
	d.members(v, func(m *value) { costs[m.name] = d.integer(m) })
	return costs
}

// What follows writes requests. The server judges them; refused here is only what the wire would
// silently change, in the limiter's words.

// Write returns the JSON of a body. It cannot fail for strings and whole numbers.
func Write(body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, Invalid("body", "", "cannot be written as JSON: "+err.Error())
	}
	return text, nil
}

// Read reads an answer. Members that are not known are skipped: a newer server may have added them.
func Read[T any](body []byte) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return out, nil
}
