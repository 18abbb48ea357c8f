package metadata

import (
	"strconv"
	"strings"
)

// NumberForm returns a number as its digits without zeros at the ends, and the exponent of the
// last digit: 1.50 is 15e-1, and zero is 0. DynamoDB returns a number in another form than it got.
func NumberForm(text string) string {
	lower := strings.ToLower(text)
	mantissa, power, _ := strings.Cut(lower, "e")
	exponent, err := strconv.Atoi(strings.TrimPrefix(power, "+"))
	if power != "" && err != nil {
		return text
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	exponent += len(digits) - len(short)
	if negative {
		short = "-" + short
	}
	return short + "e" + strconv.Itoa(exponent)
}
