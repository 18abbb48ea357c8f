package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// scanner reads the text form of operations. It keeps its first error in err and reads nothing
// after that.
type scanner struct {
	rest string
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
	s.rest = ""
}

// skip skips a prefix and reports whether it was there.
func (s *scanner) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(s.rest, prefix)
	if ok {
		s.rest = rest
	}
	return ok
}

func (s *scanner) expect(prefix string) {
	if !s.skip(prefix) {
		s.fail("%q does not begin with %q", s.rest, prefix)
	}
}

// done returns the error, or one for text that is left over.
func (s *scanner) done() error {
	if s.rest != "" {
		s.fail("%q is left over", s.rest)
	}
	return s.err
}

// take reads the characters of a plain word and those in more.
func (s *scanner) take(more string) string {
	n := 0
	for n < len(s.rest) && (isPlain(s.rest[n]) || strings.IndexByte(more, s.rest[n]) >= 0) {
		n++
	}
	word := s.rest[:n]
	s.rest = s.rest[n:]
	return word
}

// name reads a plain word, or a quoted string.
func (s *scanner) name() string {
	if !strings.HasPrefix(s.rest, `"`) {
		word := s.take("")
		if word == "" {
			s.fail("%q does not begin with a name", s.rest)
		}
		return word
	}
	quoted, err := strconv.QuotedPrefix(s.rest)
	if err != nil {
		s.fail("%q: %v", s.rest, err)
		return ""
	}
	s.rest = s.rest[len(quoted):]
	word, err := strconv.Unquote(quoted)
	if err != nil {
		s.fail("%q: %v", quoted, err)
	}
	return word
}

func (s *scanner) integer() int64 {
	word := s.take("")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		s.fail("%v", err)
	}
	return n
}

func (s *scanner) duration() time.Duration {
	word := s.take("µ")
	d, err := time.ParseDuration(word)
	if err != nil {
		s.fail("%v", err)
	}
	return d
}

// word returns the text that scanner.name reads as the name.
func word(name string) string {
	plain := name != "" && name != none
	for i := range len(name) {
		plain = plain && isPlain(name[i])
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}

// none stands for nothing: no costs, no resource.
const none = "-"

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("_.-@", c) >= 0
}
