package apijson

import (
	"strings"

	"github.com/weir-limiter/weir"
)

// maxPlain is the length of the longest document that is read in its plain form.
const maxPlain = 4096

// plainScan reads JSON in its plain form: objects, strings of printable ASCII without escapes, and
// integers of at most eighteen digits. Whatever else there is, it gives up, and the whole document
// is read again by the general reader (ADR 13). It never says what is wrong.
type plainScan struct {
	text []byte
	at   int
}

// skip passes over white space, and is false at the end.
func (s *plainScan) skip() bool {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
		default:
			return true
		}
	}
	return false
}

// take passes over one character, if it is the next one.
func (s *plainScan) take(c byte) bool {
	if !s.skip() || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// str reads a string that is not empty. It is a piece of the document.
func (s *plainScan) str() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	from := s.at
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[from : s.at-1], s.at-1 > from
		case c < ' ' || c > '~' || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// integer reads a whole number. What follows it is looked at by whoever reads on.
func (s *plainScan) integer() (int64, bool) {
	negative := s.take('-')
	if !negative && !s.skip() {
		return 0, false
	}
	from, n := s.at, int64(0)
	for ; s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9'; s.at++ {
		if s.at-from == 18 {
			return 0, false
		}
		n = n*10 + int64(s.text[s.at]-'0')
	}
	digits := s.at - from
	if digits == 0 || digits > 1 && s.text[from] == '0' {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// object reads an object; member reads the value of the member with a name.
func (s *plainScan) object(member func(name []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		name, ok := s.str()
		if !ok || !s.take(':') || !member(name) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// document reads the object that is the whole of the document.
func (s *plainScan) document(member func(name []byte) bool) bool {
	return len(s.text) <= maxPlain && s.object(member) && !s.skip()
}

// strOnce reads a string that must not have been read before.
func (s *plainScan) strOnce(into *[]byte) bool {
	if *into != nil {
		return false
	}
	text, ok := s.str()
	*into = text
	return ok
}

// integerOnce reads a number that must not have been read before.
func (s *plainScan) integerOnce(into *int64, given *bool) bool {
	if *given {
		return false
	}
	n, ok := s.integer()
	*into, *given = n, true
	return ok
}

// scanLeaseID reads an ID that is one, and not zero.
func scanLeaseID(text []byte, id *weir.LeaseID) bool {
	parsed, err := weir.ParseLeaseID(string(text))
	*id = parsed
	return err == nil && !parsed.IsZero()
}

// maxPlainCosts is how many costs an object in plain form may have: what fits a small map.
const maxPlainCosts = 8

// plainCosts are amounts by name as they stand in a document, in its own bytes.
type plainCosts struct {
	given   bool
	n       int
	names   [maxPlainCosts][]byte
	amounts [maxPlainCosts]int64
}

// read reads the object, which must not have been read before.
func (c *plainCosts) read(s *plainScan) bool {
	if c.given {
		return false
	}
	c.given = true
	return s.object(func(name []byte) bool {
		if c.n == maxPlainCosts || c.has(name) {
			return false
		}
		n, ok := s.integer()
		c.names[c.n], c.amounts[c.n] = name, n
		c.n++
		return ok
	})
}

func (c *plainCosts) has(name []byte) bool {
	for _, other := range c.names[:c.n] {
		if string(other) == string(name) {
			return true
		}
	}
	return false
}

// length is how many bytes the names have.
func (c *plainCosts) length() int {
	n := 0
	for _, name := range c.names[:c.n] {
		n += len(name)
	}
	return n
}

// costs makes a map of them, with names that are kept together; nil where the object was not there.
func (c *plainCosts) costs(k *keptText) weir.Costs {
	if !c.given {
		return nil
	}
	costs := make(weir.Costs, c.n)
	for i, name := range c.names[:c.n] {
		costs[k.keep(name)] = c.amounts[i]
	}
	return costs
}

// keptText copies pieces of a document, whose memory is used again, into one string: it keeps as
// many bytes as they have, whatever stood between them.
type keptText struct{ all strings.Builder }

// newKeptText makes room for the pieces of a known length together.
func newKeptText(length int) *keptText {
	k := &keptText{}
	k.all.Grow(length)
	return k
}

// keep returns a copy of a piece.
func (k *keptText) keep(piece []byte) string {
	from := k.all.Len()
	k.all.Write(piece)
	return k.all.String()[from:]
}
