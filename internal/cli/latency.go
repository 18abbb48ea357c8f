package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxCallMS bounds how long a call lasts: less than a lease lives, so that it can be settled.
const maxCallMS = 60*60*1000 - 1

// latency is how long calls last: a part for each, and a part for each token it generates. It is the
// value of a flag.
type latency struct {
	base, perToken time.Duration
}

// parseLatency reads "400ms+15ms", or the first part alone.
func parseLatency(s string) (latency, error) {
	base, perToken, both := strings.Cut(s, "+")
	if !both {
		perToken = "0"
	}
	var l latency
	var errs [2]error
	l.base, errs[0] = parsePart(base)
	l.perToken, errs[1] = parsePart(perToken)
	switch {
	case errs[0] != nil:
		return latency{}, errs[0]
	case errs[1] != nil:
		return latency{}, errs[1]
	case l.base > maxCallMS*time.Millisecond:
		return latency{}, errors.New("must be less than an hour: a lease lives no longer")
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
func (l latency) ms(generated int64) (ms int64, ok bool) {
	const most = maxCallMS * time.Millisecond
	if l.base > most || generated > 0 && l.perToken > (most-l.base)/time.Duration(generated) {
		return 0, false
	}
	d := l.base + l.perToken*time.Duration(generated)
	return int64((d + time.Millisecond - 1) / time.Millisecond), true
}

// String returns the flag's text.
func (l *latency) String() string {
	if l.perToken == 0 {
		return l.base.String()
	}
	return l.base.String() + "+" + l.perToken.String()
}

// Set reads the flag's text.
func (l *latency) Set(s string) error {
	parsed, err := parseLatency(s)
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}

// Type names the value in the help.
func (l *latency) Type() string { return "BASE+PER_TOKEN" }
