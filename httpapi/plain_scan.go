package httpapi

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
