package replay

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Cost is the cost of a call on a limit: an amount for the call and for each input and output
// token. No part is negative.
type Cost struct {
	call, input, output int64
}

// builtinCosts are the default costs by the limit's name. The price is an example: 3 dollars for a
// million input tokens and 15 for a million output tokens.
var builtinCosts = map[string]Cost{
	"rpm":           {call: 1},
	"rpd":           {call: 1},
	"requests":      {call: 1},
	"calls":         {call: 1},
	"tpm":           {input: 1, output: 1},
	"tpd":           {input: 1, output: 1},
	"tokens":        {input: 1, output: 1},
	"itpm":          {input: 1},
	"input_tokens":  {input: 1},
	"otpm":          {output: 1},
	"output_tokens": {output: 1},
	"usd_micros":    {input: 3, output: 15},
}

// units returns the cost of one call; ok is false if it overflows 64 bits.
func (c Cost) units(input, output int64) (n int64, ok bool) {
	n = c.call
	for _, p := range [2][2]int64{{c.input, input}, {c.output, output}} {
		product, fits := multiply(p[0], p[1])
		if !fits || n > math.MaxInt64-product {
			return 0, false
		}
		n += product
	}
	return n, true
}

// String writes the cost as [ParseCost] reads it.
func (c Cost) String() string {
	var terms []string
	term := func(n int64, name string) {
		switch {
		case n == 1:
			terms = append(terms, name)
		case n > 1:
			terms = append(terms, strconv.FormatInt(n, 10)+"*"+name)
		}
	}
	if c.call > 0 {
		terms = append(terms, strconv.FormatInt(c.call, 10))
	}
	if c.input == c.output {
		term(c.input, "total")
	} else {
		term(c.input, "input")
		term(c.output, "output")
	}
	if terms == nil {
		return "0"
	}
	return strings.Join(terms, "+")
}

var (
	errTooLarge = errors.New("has a number that does not fit in 64 bits")
	errCostForm = errors.New("must be a sum like 1, total or 3*input+15*output")
)

// ParseCost reads a sum of terms: a whole number (for the call), input, output or total, or one of
// these times a whole number.
func ParseCost(s string) (Cost, error) {
	var sum Cost
	for term := range strings.SplitSeq(s, "+") {
		n, unit, err := parseTerm(term)
		if err != nil {
			return Cost{}, err
		}
		for _, p := range [][2]*int64{
			{&sum.call, &unit.call}, {&sum.input, &unit.input}, {&sum.output, &unit.output},
		} {
			if *p[1] > 0 && *p[0] > math.MaxInt64-n {
				return Cost{}, errTooLarge
			}
			*p[0] += n * *p[1]
		}
	}
	return sum, nil
}

// parseTerm reads a number, a word, or both around a star. Without a word the unit is the call.
func parseTerm(term string) (n int64, unit Cost, err error) {
	n = 1
	factors := strings.Split(term, "*")
	if len(factors) > 2 {
		return 0, unit, errCostForm
	}
	for _, f := range factors {
		f = strings.TrimSpace(f)
		word, isWord := map[string]Cost{
			"input": {input: 1}, "output": {output: 1}, "total": {input: 1, output: 1},
		}[f]
		switch {
		case isWord && unit != (Cost{}):
			return 0, unit, errCostForm
		case isWord:
			unit = word
		case f == "" || strings.Trim(f, "0123456789") != "":
			return 0, unit, errCostForm
		default:
			k, err := strconv.ParseInt(f, 10, 64)
			product, fits := multiply(n, k)
			if err != nil || !fits {
				return 0, unit, errTooLarge
			}
			n = product
		}
	}
	if unit == (Cost{}) {
		unit.call = 1
	}
	return n, unit, nil
}

// Costs are costs by the limit's name, besides those that are built in. It is the value of a flag
// that may be repeated.
type Costs map[string]Cost

// Set reads NAME=EXPR.
func (f Costs) Set(s string) error {
	name, text, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("must be NAME=EXPR, like tpm=total")
	}
	if _, twice := f[name]; twice {
		return fmt.Errorf("%s is given twice", name)
	}
	c, err := ParseCost(text)
	if err != nil {
		return err
	}
	f[name] = c
	return nil
}

// String returns nothing: there is no default to show.
func (f Costs) String() string { return "" }

// Type names the value in the help.
func (f Costs) Type() string { return "NAME=EXPR" }

// find returns the cost of a call on a limit.
func (f Costs) find(limit string) (Cost, bool) {
	if c, ok := f[limit]; ok {
		return c, true
	}
	c, ok := builtinCosts[limit]
	return c, ok
}
