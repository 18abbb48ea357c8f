package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// checks are the expected parts of an answer.
type checks struct {
	code               weir.Code
	field, same, order string
	exceeded           string
	retry              *time.Duration
	at, expires, holds *time.Duration
	never              bool // the lease holds no slots
	fresh              bool // the lease ID is a new one
	limits             []limitCheck
	words              []string // the first word of each check, "code" for a code and "limit" for a limit
}

// lookedAt are the checks that each verb evaluates. Any other check would pass whatever the answer
// is, so it is refused.
var lookedAt = map[string]string{
	"admit": "expires holds at same new order exceeded limit", "deny": "retry order exceeded limit",
	"fail": "field", "configure": "code field", opExplain: "code field",
	"status": "code field same order exceeded limit", opAdjust: settleChecks, opComplete: settleChecks,
	opCancel: settleChecks, opExtend: settleChecks,
}

const settleChecks = "code field expires holds at same"

// checkAllowed returns an error for a check that a verb does not evaluate.
func (c *checks) checkAllowed(verb string) error {
	for _, word := range c.words {
		if !slices.Contains(strings.Fields(lookedAt[verb]), word) {
			return fmt.Errorf("%s does not look at %q", verb, word)
		}
	}
	return nil
}

// limitCheck is the expected status of a limit: words and their values.
type limitCheck struct {
	entity, limit string
	words         []string
}

func parseChecks(text string) (*checks, error) {
	c := &checks{}
	if text == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(text, ", ") {
		word, rest, _ := strings.Cut(part, " ")
		in := &scanner{rest: rest}
		if code, ok := codeWord(word); ok {
			c.code, c.words = code, append(c.words, "code")
			if in.skip("field ") {
				c.field, in.rest = in.rest, ""
			}
		} else if err := c.parse(word, in); err != nil {
			return nil, err
		}
		if err := in.done(); err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
	}
	return c, nil
}

func (c *checks) parse(word string, in *scanner) error {
	duration := func() *time.Duration {
		d := in.within()
		return &d
	}
	all := func() string {
		text := in.rest
		in.rest = ""
		return text
	}
	c.words = append(c.words, word)
	switch word {
	case "field":
		c.field = all()
	case "same":
		c.same = all()
	case "order":
		c.order = all()
	case "exceeded":
		c.exceeded = all()
	case "retry":
		c.retry = duration()
	case "new":
		c.fresh = true
	case "at":
		c.at = duration()
	case "expires":
		c.expires = duration()
	case "holds":
		if c.never = in.skip("never"); !c.never {
			c.holds = duration()
		}
	default:
		entity, limit, ok := strings.Cut(word, ".")
		if !ok {
			entity, limit = "", word
		}
		l := limitCheck{entity, limit, strings.Fields(all())}
		if len(l.words) == 0 {
			return fmt.Errorf("nothing is said of %s", word)
		}
		c.limits = append(c.limits, l)
		c.words[len(c.words)-1] = "limit"
	}
	return nil
}

// answered checks the error of a call, and reports whether there is an answer to check further.
func (p *scriptPlayer) answered(err error, c *checks) bool {
	p.Helper()
	if c.code == "" {
		if err != nil {
			p.Fatalf("at %s: got %v, want an answer", p.clock(), err)
		}
		return true
	}
	if err == nil {
		p.Fatalf("at %s: got an answer, want %q", p.clock(), c.code)
	}
	if e := p.refused(c.code, err); c.field != "" {
		p.equal("field", e.Field, c.field)
	}
	return false
}

// instants checks when something was done and when it ends.
func (p *scriptPlayer) instants(c *checks, at, expires, holds time.Time) {
	p.Helper()
	now := p.Now().Truncate(time.Millisecond)
	for _, i := range []struct {
		what string
		got  time.Time
		want *time.Duration
	}{{"done", at, c.at}, {"expires", expires, c.expires}, {"holds until", holds, c.holds}} {
		if i.want != nil {
			p.equalTime(i.what, i.got, now.Add(*i.want))
		}
	}
	if c.never && !holds.IsZero() {
		p.Fatalf("holds until %v, want never", holds)
	}
}

// statuses checks the statuses of an answer.
func (p *scriptPlayer) statuses(c *checks, got []weir.LimitStatus) {
	p.Helper()
	if c.order != "" {
		p.equal("order", strings.ReplaceAll(strings.Join(order(got), ","), " ", "."),
			strings.ReplaceAll(strings.TrimPrefix(c.order, none), " ", ","))
	}
	for i := range got {
		if got[i].Superseded {
			p.Fatalf("%s of %s is superseded", got[i].Limit, got[i].Entity)
		}
	}
	if c.exceeded != "" {
		p.equal("exceeded", strings.Join(exceeded(got), " "), c.exceeded)
	}
	for _, l := range c.limits {
		i := slices.IndexFunc(got, func(st weir.LimitStatus) bool {
			return st.Limit == l.limit && (l.entity == "" || st.Entity == l.entity)
		})
		if i < 0 {
			p.Fatalf("got %v, want something of %s", order(got), l.limit)
		}
		p.checkStatus(&got[i], l.words)
	}
}

// checkStatus checks one status by words.
func (p *scriptPlayer) checkStatus(st *weir.LimitStatus, words []string) {
	p.Helper()
	flags := map[string]bool{
		"exceeded": st.Exceeded, "fits": !st.Exceeded && !st.AtLeast && st.RetryAfter == 0,
		"shadow": st.Shadow, "real": !st.Shadow,
		"waits": st.RetryAfter >= time.Millisecond,
	}
	values := map[string]string{
		"available": strconv.FormatInt(st.Available, 10), "capacity": strconv.FormatInt(st.Capacity, 10),
		"requested": strconv.FormatInt(st.Requested, 10), "level": string(st.Level),
		"kind": string(st.Kind), "on": st.Resource, "retry": st.RetryAfter.String(),
	}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if flag, ok := flags[word]; ok {
			p.equal(st.Limit+" "+word, flag, true)
			continue
		}
		value, ok := values[word]
		if !ok || len(words) == 0 {
			p.Fatalf("%q is no word for a status", word)
		}
		want := words[0]
		if d, err := time.ParseDuration(want); word == "retry" && err == nil {
			want = d.String()
		}
		p.equal(st.Limit+" "+word, value, want)
		words = words[1:]
	}
}
