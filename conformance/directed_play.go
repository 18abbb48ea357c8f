package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// scriptPlayer plays a scripted case in a world.
type scriptPlayer struct {
	*caseWorld

	ids     map[string]weir.LeaseID
	answers map[string]answer     // the named ones
	made    map[weir.LeaseID]bool // the leases that were admitted
}

func newPlayer(s *caseWorld) *scriptPlayer {
	return &scriptPlayer{s, map[string]weir.LeaseID{}, map[string]answer{}, map[weir.LeaseID]bool{}}
}

func (p *scriptPlayer) play(steps []instruction) {
	p.Helper()
	for _, s := range steps {
		at := *p.caseWorld
		at.T = lineT{p.T, s.textLine}
		s.do(&scriptPlayer{&at, p.ids, p.answers, p.made})
		p.latest = at.latest
	}
}

// lineT is a T that puts the script's line before a failure.
type lineT struct {
	T

	line textLine
}

func (t lineT) Errorf(format string, args ...any) {
	t.Helper()
	t.T.Errorf("%s: %s: "+format, append([]any{t.line.at, t.line.text}, args...)...)
}

func (t lineT) Fatalf(format string, args ...any) {
	t.Helper()
	t.T.Fatalf("%s: %s: "+format, append([]any{t.line.at, t.line.text}, args...)...)
}

// parseStep parses a step. It replaces the names of slow limits, and adds what the step needs to
// needs.
func parseStep(l textLine, known *strings.Replacer, needs *Needs) (instruction, error) {
	text, wanted, _ := strings.Cut(known.Replace(l.text), " -> ")
	name, rest, ok := strings.Cut(text, " = ")
	if !ok {
		name, rest = "", text
	}
	in := &scanner{rest: rest}
	verb := in.take("")
	in.skip(" ")
	checks, err := parseChecks(wanted)
	var do func(p *scriptPlayer)
	if err == nil {
		do, err = parseVerb(verb, in, &stepParts{l, name, checks, known, needs})
	}
	if err == nil {
		err = errors.Join(in.done(), checks.checkAllowed(verb))
	}
	if err != nil {
		return instruction{}, fmt.Errorf("%s: %s: %w", l.at, l.text, err)
	}
	return instruction{l, do}, nil
}

// stepParts are the parts of a step around its own words.
type stepParts struct {
	line   textLine
	name   string // the name of its lease or answer
	checks *checks
	known  *strings.Replacer
	needs  *Needs
}

func (o *stepParts) block() ([]instruction, error) {
	var steps []instruction
	for _, l := range o.line.block {
		s, err := parseStep(l, o.known, o.needs)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func parseVerb(verb string, in *scanner, o *stepParts) (func(p *scriptPlayer), error) {
	switch verb {
	case "repeat":
		n := int(in.integer())
		steps, err := o.block()
		return func(p *scriptPlayer) {
			for range n {
				p.play(steps)
			}
		}, err
	case "for":
		return parseFor(in, o)
	case "when":
		words := strings.Fields(in.rest)
		in.rest = ""
		steps, err := o.block()
		if len(words) == 0 || !slices.Contains(words[1:], words[0]) {
			steps = nil
		}
		return func(p *scriptPlayer) { p.play(steps) }, err
	case "where", "unless":
		return parseWhere(verb, in, o)
	case "by":
		return parseBy(in, o)
	case "advance":
		d := in.within()
		return func(p *scriptPlayer) { p.Advance(d) }, nil
	case "id":
		name, d := in.name(), time.Duration(0)
		if in.skip(" ") {
			d = in.within()
		}
		return func(p *scriptPlayer) { p.ids[name] = weir.NewLeaseID(p.Now().Add(d)) }, nil
	case "configure":
		return parseConfigure(o)
	case "left":
		entity := in.name()
		in.expect(" ")
		costs := in.costs()
		return func(p *scriptPlayer) { p.expectAvailable(entity, costs) }, nil
	case "status":
		entity := in.name()
		in.expect(" ")
		name := in.name()
		if name == none {
			name, o.needs.Lists = "", true
		}
		return func(p *scriptPlayer) {
			limits, err := p.Status(p.Context(), entity, name)
			if p.answered(err, o.checks) {
				p.statuses(o.checks, limits)
				p.named(o.name, o.checks, answer{limits: limits})
			}
		}, nil
	case opExplain:
		return parseExplain(in, o)
	case opAdjust, opComplete, opCancel, opExtend:
		return parseSettle(verb, in, o)
	default:
		return parseReserve(verb, in, o)
	}
}

func parseFor(in *scanner, o *stepParts) (func(p *scriptPlayer), error) {
	variable := in.name()
	in.expect(" in ")
	words := strings.Split(in.rest, " | ")
	if len(words) == 1 {
		words = strings.Fields(in.rest)
	}
	in.rest = ""
	var steps []instruction
	for _, w := range words {
		each := *o
		each.line.block = substitute(o.line.block, variable, w)
		s, err := each.block()
		if err != nil {
			return nil, err
		}
		steps = append(steps, s...)
	}
	return func(p *scriptPlayer) { p.play(steps) }, nil
}

func parseConfigure(o *stepParts) (func(p *scriptPlayer), error) {
	header := Script{Sets: []Set{newSet()}}
	for _, l := range o.line.block {
		if err := header.parseHeader(o.known.Replace(l.text)); err != nil {
			return nil, fmt.Errorf("%s: %w", l.at, err)
		}
	}
	d := header.Sets[0].Definitions
	if o.checks.code == "" {
		first := o.needs.Kinds
		o.needs.addFor(d, nil)
		o.needs.Kinds = slices.DeleteFunc(o.needs.Kinds, func(k weir.Kind) bool {
			// Every store has buckets.
			return k == weir.Bucket && len(first) > 0 && !slices.Contains(first, k)
		})
	}
	return func(p *scriptPlayer) { p.answered(p.Configure(d), o.checks) }, nil
}

func parseSettle(verb string, in *scanner, o *stepParts) (func(p *scriptPlayer), error) {
	lease, seq := in.name(), int64(0)
	if verb == opAdjust {
		in.expect(" ")
		seq = in.integer()
	}
	var totals []weir.Costs
	if verb == opAdjust || verb == opComplete {
		totals = in.totals()
	}
	return func(p *scriptPlayer) {
		id, ctx := p.id(lease), p.Context()
		var r *weir.Receipt
		var err error
		switch verb {
		case opAdjust:
			r, err = p.Adjust(ctx, id, seq, totals)
		case opComplete:
			r, err = p.Complete(ctx, id, totals)
		case opCancel:
			r, err = p.Cancel(ctx, id)
		default:
			r, err = p.Extend(ctx, id)
		}
		if p.answered(err, o.checks) {
			p.equal("lease ID", r.LeaseID, id)
			p.instants(o.checks, r.At, r.Expires, r.HoldsUntil)
			p.named(o.name, o.checks, answer{receipt: r})
		}
	}, nil
}

// id returns the lease ID of a name.
func (p *scriptPlayer) id(name string) weir.LeaseID {
	p.Helper()
	id, ok := p.ids[name]
	if !ok {
		p.Fatalf("no lease is called %s", name)
	}
	return id
}

// reserveStep is a step that reserves.
type reserveStep struct {
	verb         string
	code         weir.Code // the code that fail expects; empty for any
	ideal, tries int       // the two numbers of exactly
	wait         time.Duration
	request      *weir.Request
	under, name  string // the name of the lease ID to use, and of the lease
	checks       *checks
}

func parseReserve(verb string, in *scanner, o *stepParts) (func(p *scriptPlayer), error) {
	v := reserveStep{verb: verb, name: o.name, checks: o.checks}
	switch verb {
	case "fail":
		var ok bool
		if word := in.take(""); word != "any" {
			if v.code, ok = codeWord(word); !ok {
				return nil, errors.New("no such code")
			}
		}
		in.expect(" ")
	case "exactly":
		v.ideal = int(in.integer())
		in.expect(" of ")
		v.tries = int(in.integer())
		in.expect(" ")
	case "admit", "deny", "returns":
	default:
		return nil, fmt.Errorf("unknown verb %q", verb)
	}
	if in.err != nil {
		return nil, in.err
	}
	text, after, timed := strings.Cut(in.rest, " after ")
	in.rest = ""
	var err error
	v.request, v.under, err = parseRequest(text)
	if verb == "returns" && err == nil {
		if !timed {
			return nil, errors.New("no wait")
		}
		v.wait, err = time.ParseDuration(after)
	}
	return v.play, err
}

func (v *reserveStep) play(p *scriptPlayer) {
	r := *v.request
	if v.under != "" {
		r.LeaseID = p.id(v.under)
	}
	switch v.verb {
	case "admit":
		l := p.admit(&r)
		p.judge(v, l)
		if v.name != "" {
			p.ids[v.name] = l.ID
		}
	case "deny":
		d := p.deny(&r)
		if v.checks.retry != nil {
			p.equal("retry-after", exactWait(d), *v.checks.retry)
		}
		if v.under != "" {
			p.equal("lease ID", d.LeaseID, r.LeaseID)
		}
		p.statuses(v.checks, d.Limits)
	case "fail":
		if e := p.fail(v.code, &r); v.checks.field != "" {
			p.equal("field", e.Field, v.checks.field)
		}
	case "returns":
		p.expectRetryAfter(&r, v.wait)
	default:
		p.exactly(&r, v.ideal, v.tries)
	}
}

// judge checks the answer to a reservation.
func (p *scriptPlayer) judge(v *reserveStep, l *weir.Lease) {
	p.Helper()
	if v.under != "" {
		p.equal("lease ID", l.ID, p.id(v.under))
	}
	p.instants(v.checks, l.ReservedAt, l.Expires, l.HoldsUntil)
	p.statuses(v.checks, l.Limits)
	if off := l.ID.Time().Sub(p.Now()).Abs(); v.checks.fresh &&
		(l.ID.IsZero() || p.made[l.ID] || off > time.Minute) {
		p.Fatalf("got the lease ID %v, want one of about now that was not there before", l.ID)
	}
	p.made[l.ID] = true
	p.named(v.name, v.checks, answer{lease: l})
}

// named stores an answer under a name, and compares it with the answer that it is expected to
// equal.
func (p *scriptPlayer) named(name string, c *checks, got answer) {
	p.Helper()
	if name != "" {
		p.answers[name] = got
	}
	if c.same == "" {
		return
	}
	first, ok := p.answers[c.same]
	if !ok {
		p.Fatalf("no answer is called %s", c.same)
	}
	if l := got.lease; l != nil && first.lease != nil {
		p.equal("answer", l.Limits, first.lease.Limits)
		p.equalTime("reserved at", l.ReservedAt, first.lease.ReservedAt)
	} else if !(comparison{}).same(got, first) {
		p.Fatalf("got %v, want as before %v", got, first)
	}
}

// parseRequest parses a request, and the name of the lease ID to use.
func parseRequest(text string) (r *weir.Request, under string, err error) {
	in := &scanner{rest: " " + text}
	if in.skip(" under ") {
		under = in.name()
	}
	r = &weir.Request{}
	r.Keyed, r.Charges, r.Limits = in.charges(resource)
	if len(r.Charges) == 1 && !r.Keyed {
		c := r.Charges[0]
		r.Charges, r.Entity, r.Resource, r.Costs = nil, c.Entity, c.Resource, c.Costs
	}
	return r, under, in.done()
}

// codeWord returns the code that a word stands for: its text with underscores for spaces.
func codeWord(word string) (weir.Code, bool) {
	for _, c := range []weir.Code{
		weir.Invalid, weir.UnknownLimit, weir.NoLimits, weir.NotFound, weir.UnknownLease, weir.Conflict,
		weir.Ended, weir.NeverSatisfiable, weir.Unavailable, weir.Superseded, weir.Overloaded,
		weir.PermissionDenied, weir.Unsupported,
	} {
		if strings.ReplaceAll(string(c), " ", "_") == word {
			return c, true
		}
	}
	return "", false
}
