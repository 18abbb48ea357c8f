package replay

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxCallMS bounds how long a call lasts: less than a lease lives, so that it can be settled.
const maxCallMS = 60*60*1000 - 1

// Latency is how long calls last: a part for each, and a part for each token it generates. It is
// the value of a flag.
type Latency struct {
	Base, PerToken time.Duration
}

// ParseLatency reads "400ms+15ms", or the first part alone.
func ParseLatency(s string) (Latency, error) {
	base, perToken, both := strings.Cut(s, "+")
	if !both {
		perToken = "0"
	}
	var l Latency
	var errs [2]error
	l.Base, errs[0] = parsePart(base)
	l.PerToken, errs[1] = parsePart(perToken)
	switch {
	case errs[0] != nil:
		return Latency{}, errs[0]
	case errs[1] != nil:
		return Latency{}, errs[1]
	case l.Base > maxCallMS*time.Millisecond:
		return Latency{}, errors.New("must be less than an hour: a lease lives no longer")
	}
	return l, nil
}

func parsePart(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil || strings.HasPrefix(s, "+"):
		return 0, errors.New("must be BASE+PER_TOKEN, like 400ms+15ms")
	case d < 0:
		return 0, fmt.Errorf("%s must not be negative", s)
	}
	return d, nil
}

// ms is how long a call lasts, in milliseconds, rounded up; ok is false for an hour or more.
func (l Latency) ms(generated int64) (ms int64, ok bool) {
	const most = maxCallMS * time.Millisecond
	if l.Base > most || generated > 0 && l.PerToken > (most-l.Base)/time.Duration(generated) {
		return 0, false
	}
	d := l.Base + l.PerToken*time.Duration(generated)
	return int64((d + time.Millisecond - 1) / time.Millisecond), true
}

// String returns the flag's text.
func (l *Latency) String() string {
	if l.PerToken == 0 {
		return l.Base.String()
	}
	return l.Base.String() + "+" + l.PerToken.String()
}

// Set reads the flag's text.
func (l *Latency) Set(s string) error {
	parsed, err := ParseLatency(s)
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}

// Type names the value in the help.
func (l *Latency) Type() string { return "BASE+PER_TOKEN" }
