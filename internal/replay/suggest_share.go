package replay

import (
	"errors"
	"strconv"
	"strings"
)

// wholeShare is all calls, as a [Share].
const wholeShare = 100_000

// Share is a share of calls, less than all of them, in thousandths of a per cent. It is the value
// of a flag.
type Share struct {
	thousandths int64
}

// Set reads the flag's text: 1% or 0.125%.
func (s *Share) Set(text string) error {
	number, signed := strings.CutSuffix(text, "%")
	whole, decimals, _ := strings.Cut(number, ".")
	if !signed || !isNumber(number) || len(decimals) > 3 || len(whole) > 2 {
		return errors.New("must be a share of the calls, from 0% to less than 100%, " +
			"like 1% or 0.25%, with at most three decimals")
	}
	n, err := strconv.ParseInt(whole+(decimals + "000")[:3], 10, 64)
	if err != nil {
		return err // no number of five digits is too large
	}
	*s = Share{n}
	return nil
}

// String returns the flag's text.
func (s *Share) String() string { return shareText(s.thousandths) + "%" }

// Type names the values in the help.
func (s *Share) Type() string { return "SHARE" }

// of is the largest whole number of calls that is at most that share of so many.
func (s Share) of(calls int64) int64 { return s.thousandths * calls / wholeShare }

// shareText writes thousandths of a per cent without zeros at the end.
func shareText(thousandths int64) string {
	text := strconv.FormatInt(thousandths/1000, 10)
	if rest := thousandths % 1000; rest > 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(1000+rest, 10)[1:], "0")
	}
	return text
}

// shareOf is a part of some calls, in thousandths of a per cent, rounded up: what is more than
// none does not look like none.
func shareOf(part, calls int64) string {
	if calls == 0 {
		return "0"
	}
	return shareText((part*wholeShare + calls - 1) / calls)
}
