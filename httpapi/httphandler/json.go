package httphandler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
	"github.com/weir-limiter/weir/internal/money"
)

// Bounds on one request. The first two are the engine's. A bodyReader refuses what exceeds a bound
// without reading it.
const (
	maxCharges = 16
	maxCosts   = 32
	// maxMembers bounds the members of one object or array. It is above what any valid request
	// needs.
	maxMembers = 1024
)

// bodyReader reads the bodies of requests. It refuses unknown and repeated members, and reports
// every mistake with its path, up to [apijson.MaxMistakes]. It uses no more memory than the length
// of the body.
//
// Each method reads one value of the body, in the order of the text. A jsontext.Decoder finds the
// end and the path of the value. A method also consumes a value of the wrong type, and records a
// mistake. After a mistake the values that were read are meaningless, but reading continues to find
// further mistakes. After a syntax error the methods do nothing, and only the syntax error is
// reported.
//
// A bodyReader can be used again, for one body at a time.
type bodyReader struct {
	decoder   jsontext.Decoder
	text      []byte
	buffer    bytes.Buffer // passes the text to the decoder, which does not copy it
	last      []byte       // the text of the last value
	malformed bool         // the text is not JSON
	mistakes  []error
	kept      strings.Builder
}

// begin starts reading a body.
func (d *bodyReader) begin(text []byte) error {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return apijson.Invalid("body", "", "must be a JSON object, but is empty")
	case !utf8.Valid(text):
		return apijson.Invalid("body", string(text), "must be valid UTF-8")
	}
	d.text, d.buffer, d.malformed = text, *bytes.NewBuffer(text), false
	// The bodyReader reports repeated members and lone surrogates itself, so that it can continue
	// after one.
	d.decoder.Reset(&d.buffer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return nil
}

// end finishes reading and returns the mistakes in the body, joined, or nil if there are none. It
// resets everything except malformed.
func (d *bodyReader) end() error {
	if !d.malformed {
		_, err := d.decoder.ReadToken()
		d.malformed = !errors.Is(err, io.EOF)
	}
	err := apijson.Join(d.mistakes)
	if d.malformed {
		err = syntaxError(d.text)
	}
	d.text, d.buffer, d.last, d.mistakes, d.kept = nil, bytes.Buffer{}, nil, nil, strings.Builder{}
	return err
}

// syntaxError returns the error of a body that is not JSON, with the message of [encoding/json].
func syntaxError(text []byte) error {
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	reason := "is not valid JSON: " + fmt.Sprint(err)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		reason += " at byte " + strconv.FormatInt(syntax.Offset, 10)
	}
	return apijson.Invalid("body", string(text), reason)
}

func (d *bodyReader) add(err error) {
	if !d.full() {
		d.mistakes = append(d.mistakes, err)
	}
}

// full reports whether the maximum number of mistakes is recorded, so that reading can stop.
func (d *bodyReader) full() bool { return len(d.mistakes) >= apijson.MaxMistakes }

// refuse records a mistake in the last value.
func (d *bodyReader) refuse(reason string) { d.refuseAs(string(d.last), reason) }

// refuseAs records a mistake at the last value's path, and reports value instead of its text.
func (d *bodyReader) refuseAs(value any, reason string) {
	d.add(apijson.Invalid(d.path(), value, reason))
}

// require records a mistake if a member of the last object is missing.
func (d *bodyReader) require(member string, given bool) {
	if given {
		return
	}
	if at := d.path(); at != "body" {
		member = at + "." + member
	}
	d.add(apijson.Invalid(member, "", "must be given"))
}

// path returns the path of the last value or name, such as "charges[1].costs.tpm".
func (d *bodyReader) path() string {
	var path []byte
	level := 0
	for part := range d.decoder.StackPointer().Tokens() {
		level++
		if kind, _ := d.decoder.StackIndex(level); kind == jsontext.KindBeginArray {
			path = append(append(append(path, '['), part...), ']')
			continue
		}
		if level > 1 {
			path = append(path, '.')
		}
		path = append(path, apijson.Shorten(part)...)
	}
	if level == 0 {
		return "body"
	}
	return string(path)
}

// value reads a value of any type and returns its text.
func (d *bodyReader) value() []byte {
	if d.malformed {
		return nil
	}
	text, err := d.decoder.ReadValue()
	d.last, d.malformed = text, err != nil
	return text
}

// is reports whether the next value has the type want. If not, it consumes the value and records a
// mistake.
func (d *bodyReader) is(want jsontext.Kind) bool {
	got := d.decoder.PeekKind()
	if got == want {
		return true
	}
	if d.value(); !d.malformed {
		d.refuse("must be " + typeOf(want) + ", not " + typeOf(got))
	}
	return false
}

// typeOf returns the name of a type, with its article.
func typeOf(k jsontext.Kind) string {
	switch k {
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindNull:
		return "null"
	}
	return "a number"
}

// each reads an object or array. It calls read for every member or element, with the name of the
// member; read must consume the value. It skips the rest after a repeated name, after too many
// members, and after the maximum number of mistakes. In the first two cases it records a mistake
// and returns false.
func (d *bodyReader) each(read func(name []byte)) bool {
	isObject := d.decoder.PeekKind() == jsontext.KindBeginObject
	d.delimiter()
	from := d.decoder.InputOffset() - 1
	var names nameSet
	repeated, n := false, 0
	for ; n < maxMembers && !d.full() && d.more(); n++ {
		var name []byte
		if isObject {
			name = d.unquoted()
			if repeated = !names.add(name); repeated {
				d.refuseAs(string(name), "is given twice")
				break
			}
		}
		read(name)
	}
	tooMany := n == maxMembers && !d.full() && d.more()
	for d.more() {
		d.skip()
	}
	if d.delimiter(); !d.malformed {
		d.last = d.text[from:d.decoder.InputOffset()]
	}
	if tooMany {
		d.refuseAs(">"+strconv.Itoa(maxMembers), "has too many members")
	}
	return !repeated && !tooMany
}

// more reports whether the object or array has another name or value.
func (d *bodyReader) more() bool {
	if d.malformed {
		return false
	}
	switch d.decoder.PeekKind() {
	case jsontext.KindEndObject, jsontext.KindEndArray, jsontext.KindInvalid:
		return false
	}
	return true
}

// delimiter reads the opening or closing bracket of an object or array.
func (d *bodyReader) delimiter() {
	if !d.malformed {
		_, err := d.decoder.ReadToken()
		d.malformed = err != nil
	}
}

// skip consumes a name or a value of any type.
func (d *bodyReader) skip() {
	if !d.malformed {
		d.malformed = d.decoder.SkipValue() != nil
	}
}

// fields reads an object with known members. It calls read for each member; read returns false for
// an unknown name. The result is false if the value is not an object.
func (d *bodyReader) fields(read func(name []byte) bool) bool {
	if !d.is(jsontext.KindBeginObject) {
		return false
	}
	d.each(func(name []byte) {
		if !read(name) {
			d.refuseAs(string(name), "is not a known field")
			d.skip()
		}
	})
	return true
}

// bounded reads an object with members of any name, or an array, and returns the number of members.
// It counts members beyond the bound but does not read them.
func (d *bodyReader) bounded(most int, read func(name []byte)) (n int) {
	whole := d.each(func(name []byte) {
		if n++; n <= most {
			read(name)
		} else {
			d.skip()
		}
	})
	if whole && n > most {
		d.refuseAs(n, "a request has at most "+strconv.Itoa(most))
	}
	return n
}

// elements reads an array that must have at least least elements, and at most one for each charge.
func (d *bodyReader) elements(least int, read func()) {
	if d.is(jsontext.KindBeginArray) && d.bounded(maxCharges, func([]byte) { read() }) < least {
		d.refuse("must not be empty")
	}
}

// unquoted reads a string or the name of a member. The result may share memory with the body.
func (d *bodyReader) unquoted() []byte {
	quoted := d.value()
	if d.malformed {
		return nil
	}
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	s, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil { // a name must not change on its way
		d.refuseAs(string(s), "must be valid UTF-8, not half of a surrogate pair")
	}
	return s
}

// keep returns a copy of a part of the body, because the next request overwrites the body. All
// copies of one body share one allocation.
func (d *bodyReader) keep(part []byte) string {
	if d.kept.Cap() == 0 {
		d.kept.Grow(min(len(d.text), 48))
	}
	from := d.kept.Len()
	d.kept.Write(part)
	return d.kept.String()[from:]
}

// string reads a string, which must not be empty.
func (d *bodyReader) string() string {
	if !d.is(jsontext.KindString) {
		return ""
	}
	s := d.keep(d.unquoted())
	if s == "" && !d.malformed {
		d.refuseAs("", "must not be empty")
	}
	return s
}

func (d *bodyReader) boolean() bool {
	if d.decoder.PeekKind() == jsontext.KindFalse {
		d.value()
		return false
	}
	return d.is(jsontext.KindTrue) && d.value() != nil
}

// integer reads an integer of 64 bits. It refuses other notations, such as 1e3 or 1.0.
func (d *bodyReader) integer() int64 { return d.amount("") }

// amount reads an integer of 64 bits that is an amount of a limit. The mistake says how to write money
// if the limit's name says that the limit is on money.
func (d *bodyReader) amount(limit string) int64 {
	if !d.is(jsontext.KindNumber) {
		return 0
	}
	text := d.value()
	if bytes.ContainsAny(text, ".eE") {
		d.refuse("must be written as a whole number, without fraction or exponent" + money.Hint(limit, string(text)))
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil && !d.malformed {
		d.refuse("must fit in a signed 64-bit integer")
	}
	return n
}

// seconds reads a whole number of seconds. It refuses zero, which would mean the default.
func (d *bodyReader) seconds() time.Duration {
	before := len(d.mistakes)
	n := d.integer()
	if len(d.mistakes) > before {
		return 0
	}
	return d.duration(n, int64(time.Second))
}

// periodSeconds reads seconds with at most three decimals.
func (d *bodyReader) periodSeconds() time.Duration {
	if !d.is(jsontext.KindNumber) {
		return 0
	}
	text := string(d.value())
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > 3 || strings.ContainsAny(text, "eE") {
		d.refuse("must be seconds with at most three digits after the decimal point, without exponent")
		return 0
	}
	n, err := strconv.ParseInt(whole+fraction+"000"[len(fraction):], 10, 64)
	if err != nil {
		d.refuse("must be at most a hundred years")
		return 0
	}
	return d.duration(n, int64(time.Millisecond))
}

func (d *bodyReader) duration(n, unit int64) time.Duration {
	switch {
	case n == 0:
		d.refuse("must be above zero")
		return 0
	case n > math.MaxInt64/unit || n < math.MinInt64/unit:
		d.refuse("must be at most a hundred years")
		return 0
	}
	return time.Duration(n * unit)
}

// leaseID reads a ULID, which must not be zero.
func (d *bodyReader) leaseID() weir.LeaseID {
	if !d.is(jsontext.KindString) {
		return weir.LeaseID{}
	}
	id, err := weir.ParseLeaseID(string(d.unquoted()))
	if err != nil {
		d.add(err)
	} else if id.IsZero() {
		d.refuseAs(id, "must not be zero")
	}
	return id
}

// costs reads amounts by limit name, and bounds their number by most. The service validates the
// names and signs.
func (d *bodyReader) costs(most int) weir.Costs {
	costs := weir.Costs{}
	if d.is(jsontext.KindBeginObject) {
		d.bounded(most, func(name []byte) {
			limit := d.keep(name)
			costs[limit] = d.amount(limit)
		})
	}
	return costs
}

// nameSet is a set of member names. It compares the first few one by one and keeps the rest in a
// map.
type nameSet struct {
	few  [8][]byte
	n    int                 // the number of names in few
	many map[string]struct{} // the others
}

// add returns false if a name was added before.
func (s *nameSet) add(name []byte) bool {
	for _, other := range s.few[:s.n] {
		if bytes.Equal(other, name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	if s.many == nil {
		s.many = make(map[string]struct{})
	}
	if _, given := s.many[string(name)]; given {
		return false
	}
	s.many[string(name)] = struct{}{}
	return true
}
