package apijson

import (
	"strings"

	"github.com/weir-limiter/weir"
)

// maxPlain is the length of the longest document that is scanned.
const maxPlain = 4096

// plainScan reads JSON in plain form: objects, strings of printable ASCII without escapes, and
// integers of at most eighteen digits. At anything else it gives up without a reason, and the
// reader reads the whole document again (ADR 13).
type plainScan struct {
	text []byte
	at   int
}

// skip passes over white space. It returns false at the end of the document.
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

// take passes over the character c and returns true, if c is the next one.
func (s *plainScan) take(c byte) bool {
	if !s.skip() || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// str reads a string that is not empty. The result refers to the document.
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

// integer reads a whole number. It does not look at what follows.
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

// object reads an object. The function member reads the value of one member.
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

// document reads the object that makes up the whole document.
func (s *plainScan) document(member func(name []byte) bool) bool {
	return len(s.text) <= maxPlain && s.object(member) && !s.skip()
}

// strOnce reads a string, unless into holds one already.
func (s *plainScan) strOnce(into *[]byte) bool {
	if *into != nil {
		return false
	}
	text, ok := s.str()
	*into = text
	return ok
}

// integerOnce reads a number, unless one was given already.
func (s *plainScan) integerOnce(into *int64, given *bool) bool {
	if *given {
		return false
	}
	n, ok := s.integer()
	*into, *given = n, true
	return ok
}

// scanLeaseID parses a lease ID and returns false if it is malformed or zero.
func scanLeaseID(text []byte, id *weir.LeaseID) bool {
	parsed, err := weir.ParseLeaseID(string(text))
	*id = parsed
	return err == nil && !parsed.IsZero()
}

// maxPlainCosts bounds the costs of an object in plain form: a map of eight has one group.
const maxPlainCosts = 8

// plainCosts are amounts by name. The names refer to the document.
type plainCosts struct {
	given   bool
	n       int
	names   [maxPlainCosts][]byte
	amounts [maxPlainCosts]int64
}

// read reads the object, unless it was given already.
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

// length returns how many bytes all names have.
func (c *plainCosts) length() int {
	n := 0
	for _, name := range c.names[:c.n] {
		n += len(name)
	}
	return n
}

// costs returns the amounts with names that are kept in k, or nil if the object was not given.
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

// keptText copies parts of a document into one string, because the memory of the document is used
// again.
type keptText struct{ all strings.Builder }

// newKeptText returns a keptText for parts with a known total length.
func newKeptText(length int) *keptText {
	k := &keptText{}
	k.all.Grow(length)
	return k
}

// keep returns a copy of a part.
func (k *keptText) keep(piece []byte) string {
	from := k.all.Len()
	k.all.Write(piece)
	return k.all.String()[from:]
}
