package conformance

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// limitText writes a limit as
//
//	rpm=60:bucket/10/1s                60 units at most, 10 a second
//	day=1000:window/24h0m0s            each for a day
//	par=3:concurrency/30s              held for 30 seconds
//	usd=50:budget/month/Europe/Berlin  a calendar month
//	tpm=500:bucket:shadow              with the default refill; never denies
func limitText(l *weir.Limit) string {
	var b strings.Builder
	b.WriteString(word(l.Name) + "=" + strconv.FormatInt(l.Capacity, 10) + ":" + word(string(l.Kind)))
	switch l.Kind {
	case weir.Bucket:
		if l.RefillAmount != 0 || l.RefillPeriod != 0 {
			b.WriteString("/" + strconv.FormatInt(l.RefillAmount, 10) + "/" + l.RefillPeriod.String())
		}
	case weir.Window:
		b.WriteString("/" + l.Window.String())
	case weir.Concurrency:
		b.WriteString("/" + l.Timeout.String())
	case weir.Budget:
		b.WriteString("/" + word(l.Every))
		if l.Zone != "" {
			b.WriteString("/" + zoneWord(l.Zone))
		}
	}
	if l.Shadow {
		b.WriteString(":shadow")
	}
	return b.String()
}

// zoneWord returns the text of a zone. Zones have slashes, so they come last.
func zoneWord(zone string) string {
	s := scanner{rest: zone}
	if s.take("/+"); s.rest == "" {
		return zone
	}
	return strconv.Quote(zone)
}

func (s *scanner) limit() weir.Limit {
	l := weir.Limit{Name: s.name()}
	s.expect("=")
	l.Capacity = s.integer()
	s.expect(":")
	l.Kind = weir.Kind(s.name())
	switch l.Kind {
	case weir.Bucket:
		if s.skip("/") {
			l.RefillAmount = s.integer()
			s.expect("/")
			l.RefillPeriod = s.duration()
		}
	case weir.Window:
		l.Window = s.length()
	case weir.Concurrency:
		l.Timeout = s.length()
	case weir.Budget:
		s.budget(&l)
	}
	l.Shadow = s.skip(":shadow")
	return l
}

func (s *scanner) length() time.Duration {
	s.expect("/")
	return s.duration()
}

func (s *scanner) budget(l *weir.Limit) {
	s.expect("/")
	l.Every = s.name()
	if !s.skip("/") {
		return
	}
	if strings.HasPrefix(s.rest, `"`) {
		l.Zone = s.name()
	} else {
		l.Zone = s.take("/+")
	}
	if l.Zone == "" {
		s.fail("no zone")
	}
}

func limitsText(limits []weir.Limit) string {
	if len(limits) == 0 {
		return none
	}
	var words []string
	for i := range limits {
		words = append(words, limitText(&limits[i]))
	}
	return strings.Join(words, ",")
}

func (s *scanner) limits() []weir.Limit {
	if s.nothing() {
		return nil
	}
	limits := []weir.Limit{s.limit()}
	for s.skip(",") {
		limits = append(limits, s.limit())
	}
	return limits
}

// nothing skips none, and reports whether it was there.
func (s *scanner) nothing() bool {
	if s.rest == none || strings.HasPrefix(s.rest, none+" ") {
		s.rest = s.rest[len(none):]
		return true
	}
	return false
}
