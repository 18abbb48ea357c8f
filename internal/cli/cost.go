package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// cost is what a call costs on a limit: so much for the call, and for each token that goes in or
// comes out. No part is negative.
type cost struct {
	call, input, output int64
}

// builtinCosts are the costs of limits by name, where no flag says otherwise. The price is an
// example: 3 dollars for a million input tokens and 15 for a million output tokens.
var builtinCosts = map[string]cost{
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

// units is the cost of one call; ok is false where it is more than 64 bits hold.
func (c cost) units(input, output int64) (n int64, ok bool) {
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

// multiply multiplies numbers of at least 0.
func multiply(a, b int64) (product int64, ok bool) {
	if a > 0 && b > math.MaxInt64/a {
		return 0, false
	}
	return a * b, true
}

// String writes the cost as [parseCost] reads it.
func (c cost) String() string {
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

// parseCost reads a sum of terms: a whole number (for the call), input, output or total, or one of
// these times a whole number.
func parseCost(s string) (cost, error) {
	var sum cost
	for text := range strings.SplitSeq(s, "+") {
		t, err := parseTerm(text)
		if err != nil {
			return cost{}, err
		}
		for _, p := range []struct {
			into *int64
			n    int64
		}{{&sum.call, t.call}, {&sum.input, t.input}, {&sum.output, t.output}} {
			if *p.into > math.MaxInt64-p.n {
				return cost{}, errTooLarge
			}
			*p.into += p.n
		}
	}
	return sum, nil
}

var (
	errTooLarge = errors.New("has a number of more than 64 bits")
	errCostForm = errors.New("must be a sum like 1, total or 3*input+15*output")
)

// parseTerm reads factors around a star, of which at most one is a word.
func parseTerm(text string) (cost, error) {
	n := int64(1)
	word := cost{call: 1}
	worded := false
	factors := strings.Split(text, "*")
	if len(factors) > 2 {
		return cost{}, errCostForm
	}
	for _, f := range factors {
		f = strings.TrimSpace(f)
		named, isWord := map[string]cost{
			"input": {input: 1}, "output": {output: 1}, "total": {input: 1, output: 1},
		}[f]
		switch {
		case isWord && worded:
			return cost{}, errCostForm
		case isWord:
			word, worded = named, true
		case f == "" || strings.Trim(f, "0123456789") != "":
			return cost{}, errCostForm
		default:
			k, err := strconv.ParseInt(f, 10, 64)
			product, fits := multiply(n, k)
			if err != nil || !fits {
				return cost{}, errTooLarge
			}
			n = product
		}
	}
	return cost{n * word.call, n * word.input, n * word.output}, nil
}

// costFlag is a repeatable flag: what a call costs on limits by name.
type costFlag map[string]cost

// Set reads NAME=EXPR.
func (f costFlag) Set(s string) error {
	name, text, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("must be NAME=EXPR, like tpm=total")
	}
	if _, twice := f[name]; twice {
		return fmt.Errorf("%s is given twice", name)
	}
	c, err := parseCost(text)
	if err != nil {
		return err
	}
	f[name] = c
	return nil
}

// String returns nothing: there is no default to show.
func (f costFlag) String() string { return "" }

// Type names the value in the help.
func (f costFlag) Type() string { return "NAME=EXPR" }

// find returns what a call costs on a limit.
func (f costFlag) find(limit string) (cost, bool) {
	if c, ok := f[limit]; ok {
		return c, true
	}
	c, ok := builtinCosts[limit]
	return c, ok
}
