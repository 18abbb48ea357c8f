package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// Op is one operation of a [Script]. Its text form is a line:
//
//	advance 1.5s
//	reserve 01JQ… acme/gpt rpm=1,tpm=500 org/gpt - bring tpm=50:window/1m0s
//	reserve 01JQ… keyed acme/gpt rpm=1 org/gpt rpm=1
//	adjust 01JQ… 2 tpm=20 ; -
//	complete 01JQ… tpm=812
//	cancel 01JQ…
//	extend 01JQ…
//	status acme gpt
//	explain acme gpt
//	configure lowered
//
// A name that is not plain is quoted, "-" stands for nothing, and a reservation that brings no
// lease ID says "new".
type Op struct {
	// Verb is the first word.
	Verb string
	// By is how far time advances; below zero it steps back.
	By time.Duration
	// ID is the lease's ID; zero in a reserve that says "new".
	ID weir.LeaseID
	// Keyed, Charges and Bring belong to a reserve.
	Keyed   bool
	Charges []weir.Charge
	Bring   []weir.Limit
	// Seq and Totals belong to an adjust; Totals also to a complete.
	Seq    int64
	Totals []weir.Costs
	// Entity and Resource belong to a status or an explain.
	Entity, Resource string
	// Set names the definitions that are configured.
	Set string
}

// The verbs of an [Op] that are not verbs of a lease.
const (
	opAdvance   = "advance"
	opStatus    = "status"
	opExplain   = "explain"
	opConfigure = "configure"
)

const (
	opReserve  = string(weir.VerbReserve)
	opAdjust   = string(weir.VerbAdjust)
	opComplete = string(weir.VerbComplete)
	opCancel   = string(weir.VerbCancel)
	opExtend   = string(weir.VerbExtend)
)

const (
	newID = "new"
	keyed = "keyed"
)

// String returns the operation's line.
func (o Op) String() string {
	switch o.Verb {
	case opAdvance:
		return o.Verb + " " + o.By.String()
	case opReserve:
		return o.reserveText()
	case opAdjust:
		return o.Verb + " " + o.ID.String() + " " + strconv.FormatInt(o.Seq, 10) + totalsText(o.Totals)
	case opComplete:
		return o.Verb + " " + o.ID.String() + totalsText(o.Totals)
	case opCancel, opExtend:
		return o.Verb + " " + o.ID.String()
	case opStatus, opExplain:
		if o.Resource == "" {
			return o.Verb + " " + word(o.Entity) + " " + none
		}
		return o.Verb + " " + word(o.Entity) + " " + word(o.Resource)
	default:
		return o.Verb + " " + word(o.Set)
	}
}

func (o Op) reserveText() string {
	id := newID
	if !o.ID.IsZero() {
		id = o.ID.String()
	}
	words := []string{o.Verb, id}
	if o.Keyed {
		words = append(words, keyed)
	}
	for _, c := range o.Charges {
		words = append(words, word(c.Entity)+"/"+word(c.Resource), costsText(c.Costs))
	}
	if len(o.Bring) > 0 {
		words = append(words, "bring", limitsText(o.Bring))
	}
	return strings.Join(words, " ")
}

func costsText(c weir.Costs) string {
	if len(c) == 0 {
		return none
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		words = append(words, word(name)+"="+strconv.FormatInt(c[name], 10))
	}
	return strings.Join(words, ",")
}

func totalsText(totals []weir.Costs) string {
	var b strings.Builder
	for i, c := range totals {
		if i > 0 {
			b.WriteString(" ;")
		}
		b.WriteString(" " + costsText(c))
	}
	return b.String()
}

// ParseOp parses a line that [Op.String] wrote.
func ParseOp(line string) (Op, error) {
	s := scanner{rest: line}
	o := Op{Verb: s.name()}
	s.expect(" ")
	switch o.Verb {
	case opAdvance:
		o.By = s.duration()
	case opReserve:
		s.reserve(&o)
	case opAdjust:
		o.ID = s.leaseID()
		s.expect(" ")
		o.Seq = s.integer()
		o.Totals = s.totals()
	case opComplete:
		o.ID = s.leaseID()
		o.Totals = s.totals()
	case opCancel, opExtend:
		o.ID = s.leaseID()
	case opStatus, opExplain:
		o.Entity = s.name()
		s.expect(" ")
		if !s.nothing() {
			o.Resource = s.name()
		}
	case opConfigure:
		o.Set = s.name()
	default:
		s.fail("unknown verb %q", o.Verb)
	}
	if err := s.done(); err != nil {
		return Op{}, fmt.Errorf("%q: %w", line, err)
	}
	return o, nil
}

func (s *scanner) leaseID() weir.LeaseID {
	id, err := weir.ParseLeaseID(s.take(""))
	if err != nil {
		s.fail("%w", err)
	}
	return id
}

func (s *scanner) reserve(o *Op) {
	if !s.skip(newID) {
		o.ID = s.leaseID()
	}
	o.Keyed, o.Charges, o.Bring = s.charges("")
}

// charges reads the charges of a request and the limits that it brings. A charge without a resource
// is on the usual one; if usual is empty, each charge names its own.
func (s *scanner) charges(usual string) (isKeyed bool, charges []weir.Charge, bring []weir.Limit) {
	if isKeyed = s.skip(" " + keyed + " "); isKeyed {
		s.rest = " " + s.rest
	}
	for s.skip(" ") {
		if len(charges) > 0 && s.skip("bring ") {
			return isKeyed, charges, s.limits()
		}
		c := weir.Charge{Entity: s.name(), Resource: usual}
		if usual == "" || strings.HasPrefix(s.rest, "/") {
			s.expect("/")
			c.Resource = s.name()
		}
		s.expect(" ")
		c.Costs = s.costs()
		charges = append(charges, c)
	}
	if len(charges) == 0 {
		s.fail("nothing is charged")
	}
	return isKeyed, charges, nil
}

func (s *scanner) costs() weir.Costs {
	if s.nothing() {
		return nil
	}
	c := make(weir.Costs)
	for {
		name := s.name()
		if _, twice := c[name]; twice {
			s.fail("%q comes twice", name)
		}
		s.expect("=")
		c[name] = s.integer()
		if !s.skip(",") {
			return c
		}
	}
}

func (s *scanner) totals() []weir.Costs {
	if !s.skip(" ") {
		return nil
	}
	totals := []weir.Costs{s.costs()}
	for s.skip(" ; ") {
		totals = append(totals, s.costs())
	}
	return totals
}
