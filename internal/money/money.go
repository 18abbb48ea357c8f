// Package money recognizes limits on money by their names, and says how to write amounts of money,
// which weir counts in whole numbers.
package money

import (
	"strconv"
	"strings"
	"unicode"
)

// Micros is how many millionths a unit of a currency has.
const Micros = 1_000_000

// Unit is what the name of a limit says about its unit.
type Unit struct {
	// Currency is such as "USD", or "units of the currency" if the name does not say which. It is
	// empty if the limit is not on money, or on cents.
	Currency string
	// InMicros reports whether the name says that the limit counts millionths.
	InMicros bool
}

// UnitOf returns what the name of a limit says about its unit: the limit is on money if one of the
// words of the name is a currency, or money, cost or spend. A name that says cents is not recognized,
// because amounts in cents look like any others.
func UnitOf(name string) Unit {
	var u Unit
	for _, word := range words(name) {
		switch word {
		case "usd", "eur", "gbp", "jpy", "cny", "inr", "chf", "cad", "aud":
			u.Currency = strings.ToUpper(word)
		case "dollar", "dollars":
			u.Currency = "USD"
		case "euro", "euros":
			u.Currency = "EUR"
		case "money", "cost", "costs", "spend", "spending":
			if u.Currency == "" {
				u.Currency = "units of the currency"
			}
		case "micro", "micros":
			u.InMicros = true
		case "cent", "cents":
			return Unit{}
		}
	}
	return u
}

// words returns the words of a name, in lower case.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name),
		func(r rune) bool { return !unicode.IsLetter(r) })
}

// Example returns the name of a limit that counts the currency in millionths, such as "usd_micros".
func (u Unit) Example() string {
	if len(u.Currency) == len("USD") {
		return strings.ToLower(u.Currency) + "_micros"
	}
	return "usd_micros"
}

// Hint returns how to write an amount of a limit that was refused because it is not a whole number:
// the end of a sentence, with "; " before it. It returns "" if the name of the limit does not say that
// the limit is on money, or if the amount is a whole number. The limit may have a full name.
func Hint(limit, amount string) string {
	u := UnitOf(limit[strings.LastIndexByte(limit, '#')+1:])
	if u.Currency == "" || amount == "" || strings.Trim(amount, "0123456789") == "" {
		return ""
	}
	given, micros := "1", int64(Micros)
	if plain := strings.Trim(amount, "$€£¥ "); plain != "" {
		if n, ok := parseMicros(plain); ok {
			given, micros = plain, n
		}
	}
	in := ""
	if !u.InMicros {
		in = ", in a limit with a name such as " + u.Example()
	}
	return "; money is counted in whole millionths" + in + ": write " + strconv.FormatInt(micros, 10) + " for " + given +
		" " + u.Currency
}

// maxDigits bounds the digits before the decimal point, so that the millionths fit an int64.
const maxDigits = 12

// parseMicros returns an amount above zero with at most six decimals in millionths. It returns false
// for any other text.
func parseMicros(s string) (n int64, ok bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole == "" || len(whole) > maxDigits || len(fraction) > 6 || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+fraction+"000000"[len(fraction):], 10, 64)
	return n, err == nil && n > 0
}
