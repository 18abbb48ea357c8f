package conformance

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// The directed cases are scripts in testdata, one topic a file. A file is a list of cases:
//
//	# 2.3 Slots return when the lease is settled, at the latest at their timeout.
//	line 2.3
//
//	case slots return at the timeout
//	system n=10:concurrency/1m
//	timed
//	L = admit a n=6 -> holds 1m
//	advance 10s
//	admit a n=4
//	returns a n=1 after 50s
//	left a n=5
//
// "line" names the line of docs/semantics.md that the cases below it check. A case begins with its
// setup, in the words of [Script]: start, option, system, resource, entity and limits. Four more
// words say what it needs of a harness (see [Needs]): "timed" exact answers and virtual time,
// "skew" time that steps back, "callers" callers or bounds on live leases, and "needs" the kinds
// that its requests bring. Other needs are derived: Lists from the steps; the kinds, shadow limits
// and the depth of a cascade from the definitions, including those that the case configures later.
// A bucket that is configured later beside other kinds adds no need. "each" makes a case for each
// of some words, which replace $k in its text:
//
//	case a shrink frees at once
//	each bucket window concurrency budget
//	system n=10:slow-$k
//
// The words slow-bucket, slow-window, slow-concurrency and slow-budget stand for limits that return
// nothing by themselves during a case. With a question mark, as in slow-window?, a store that lacks
// the kind gets a slow bucket instead.
//
// The steps follow. An indented line belongs to the step above it.
//
//	id X -10m               names a lease ID that carries the time ten minutes ago
//	L = admit REQUEST       expects an admission, and names the lease
//	deny REQUEST            expects a denial
//	fail CODE REQUEST       expects an error that is not a denial; fail any REQUEST accepts any code
//	returns REQUEST after D expects a denial until the last millisecond before D, then an admission
//	exactly 3 of 5 REQUEST  expects three admissions and then two denials
//	left ENTITY COSTS       expects COSTS to be available
//	adjust L SEQ TOTALS     and complete L TOTALS, cancel L, extend L: expect a receipt
//	status ENTITY RESOURCE  expects an answer; "-" asks for every resource
//	explain ENTITY RESOURCE expects the levels of the indented lines: "a system n=10,m=5"
//	advance D               lets time pass
//	configure               replaces the definitions by those of the indented lines
//	repeat N                plays the indented lines N times
//	for x in A B C          plays them once for each word, which $x stands for
//	for x in A B | C D      the same for texts of several words
//	when $k A B             plays them if the first word is one of the others
//	by CALLER               plays them in the name of a caller
//	where TRAIT             plays them on a store with the trait or [Leeway]; "where Remembers a n=10"
//	                        plays them if a has 10 of n available, too
//	unless TRAIT            plays them in all other cases
//
// A request is written as in [Op], on the resource m unless it names one: "a n=4", "a/gpt n=4 org
// n=1". "under L" before it uses the ID of lease L; "bring LIMITS" follows it. After " -> " come
// the expected parts of the answer, separated by commas. A code there means that the verb or the
// configure fails with it:
//
//	field costs.n           the error's field
//	retry 5s                the denial's retry-after
//	expires 1h, holds 1m    when the lease ends and its slots return, from now; "holds never"
//	at -1s                  when it was done, from now
//	same L                  the answer is the one that L got; "R = " names any verb's answer
//	new                     the lease's ID has about the current time and was not used before
//	order child.n parent.n  the limits that were judged, in order, "-" for none
//	exceeded n m            those of them that are exceeded, and no others
//	b.n available 3         something of a limit's status, of the first entity without "b.":
//	                        available, capacity, requested, level, kind, retry, the resource that it
//	                        is on, exceeded, waits, fits, shadow, real

//go:embed testdata/*.txt
var scripts embed.FS

// scriptedCases returns the cases of a script in testdata.
func scriptedCases(name string) []Case {
	file := path.Join("testdata", name+".txt")
	text, err := scripts.ReadFile(file)
	if err != nil {
		panic(err)
	}
	cases, err := parseCases(file, string(text))
	if err != nil {
		panic(err)
	}
	return cases
}

// textLine is a line of a script.
type textLine struct {
	at    string // its file and number
	text  string
	block []textLine // the indented lines below it
}

// parseCases parses a file of cases.
func parseCases(file, text string) ([]Case, error) {
	var cases []Case
	line, name := "", ""
	var body []textLine
	flush := func() error {
		if name == "" {
			return nil
		}
		made, err := expand(Case{Name: name, Line: line}, body)
		cases = append(cases, made...)
		name, body = "", nil
		return err
	}
	for i, text := range strings.Split(text, "\n") {
		at := file + ":" + strconv.Itoa(i+1)
		if comment := strings.Index(text, "# "); comment == 0 || comment > 0 && text[comment-1] == ' ' {
			text = text[:comment]
		}
		indent := len(text) - len(strings.TrimLeft(text, " "))
		text = strings.TrimSpace(text)
		word, rest, _ := strings.Cut(text, " ")
		switch {
		case text == "" || text == "#":
		case indent > 0:
			block := &body
			for ; indent > 0 && len(*block) > 0; indent -= 2 {
				block = &(*block)[len(*block)-1].block
			}
			if indent != 0 {
				return nil, fmt.Errorf("%s: %q is indented too far", at, text)
			}
			*block = append(*block, textLine{at: at, text: text})
		case word == "line" || word == "case":
			if err := flush(); err != nil {
				return nil, err
			}
			if word == "line" {
				line = rest
			} else {
				name = rest
			}
		default:
			body = append(body, textLine{at: at, text: text})
		}
	}
	return cases, flush()
}

// expand returns a case for each word of "each", or one case if there is no "each".
func expand(c Case, body []textLine) ([]Case, error) {
	i := slices.IndexFunc(body, func(l textLine) bool { return strings.HasPrefix(l.text, "each ") })
	if i < 0 {
		made, err := scriptedCase(c, body)
		return []Case{made}, err
	}
	words := strings.Fields(body[i].text)[1:]
	var cases []Case
	for _, w := range words {
		each := c
		each.Name += ": " + w
		made, err := scriptedCase(each, substitute(slices.Delete(slices.Clone(body), i, i+1), "k", w))
		if err != nil {
			return nil, err
		}
		cases = append(cases, made)
	}
	return cases, nil
}

// substitute returns lines with a variable replaced by a word.
func substitute(lines []textLine, variable, word string) []textLine {
	out := slices.Clone(lines)
	for i := range out {
		out[i].text = strings.ReplaceAll(out[i].text, "$"+variable, word)
		out[i].block = substitute(out[i].block, variable, word)
	}
	return out
}

// scriptedCase returns the case of some lines, with what it needs.
func scriptedCase(c Case, body []textLine) (Case, error) {
	buckets := &Harness{Traits: driver.Traits{Kinds: []weir.Kind{weir.Bucket}}}
	p, err := parsePlay(body, buckets)
	if err != nil {
		return c, err
	}
	c.Needs = p.needs
	c.Run = func(t T, h Harness) {
		t.Helper()
		p, err := parsePlay(body, &h)
		if err != nil {
			t.Fatalf("%v", err)
		}
		onWorld(p.setup, func(s *caseWorld) { newPlayer(s).play(p.steps) })(t, h)
	}
	return c, nil
}

// scriptRun is a case as it is played on a harness.
type scriptRun struct {
	needs Needs
	setup Setup
	steps []instruction
}

// instruction is one line of a case.
type instruction struct {
	textLine

	do func(p *scriptPlayer)
}

// parsePlay parses the lines of a case for a harness.
func parsePlay(body []textLine, h *Harness) (*scriptRun, error) {
	var p scriptRun
	var steps []textLine
	header := Script{Sets: []Set{newSet()}}
	known := kindWords(h)
	for i := range body {
		l := &body[i]
		switch word, _, _ := strings.Cut(l.text, " "); word {
		case "timed":
			p.needs.Virtual, p.needs.Exact = true, true
		case "skew":
			p.needs.Skew, p.needs.Exact = true, true
		case "callers":
			p.needs.Callers = true
		case "needs":
			for _, k := range strings.Fields(l.text)[1:] {
				p.needs.Kinds = append(p.needs.Kinds, weir.Kind(k))
			}
		case "start", "option", "system", "resource", "entity", "limits":
			if err := header.parseHeader(known.Replace(l.text)); err != nil {
				return nil, fmt.Errorf("%s: %w", l.at, err)
			}
		default:
			steps = append(steps, *l)
		}
	}
	p.setup = header.Setup()
	p.needs.addFor(p.setup.Definitions, p.setup.Options.Limits)
	for _, l := range steps {
		s, err := parseStep(l, known, &p.needs)
		if err != nil {
			return nil, err
		}
		p.steps = append(p.steps, s)
	}
	return &p, nil
}

func newSet() Set {
	return Set{Definitions: &weir.Definitions{
		Resources: make(map[string][]weir.Limit), Entities: make(map[string]weir.EntityDefinition),
	}}
}

// kindWords returns a replacer that replaces the names of slow limits with their text.
func kindWords(h *Harness) *strings.Replacer {
	slow := map[weir.Kind]string{
		weir.Bucket: "bucket/1/240h", weir.Window: "window/240h",
		weir.Concurrency: "concurrency/240h", weir.Budget: "budget/month",
	}
	var words []string
	for _, k := range allKinds() {
		instead := k
		if !slices.Contains(h.Traits.Kinds, k) {
			instead = weir.Bucket
		}
		words = append(words, "slow-"+string(k)+"?", slow[instead], "slow-"+string(k), slow[k])
	}
	return strings.NewReplacer(words...)
}

// addFor adds the needs of definitions, and of more limits.
func (n *Needs) addFor(d *weir.Definitions, more []weir.Limit) {
	all := slices.Concat(d.System, more)
	for _, name := range slices.Sorted(maps.Keys(d.Resources)) {
		all = append(all, d.Resources[name]...)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		e := d.Entities[name]
		for _, resource := range slices.Sorted(maps.Keys(e.Limits)) {
			all = append(all, e.Limits[resource]...)
		}
		depth := 0
		for e := e; e.Cascade && e.Parent != "" && depth < len(d.Entities); e = d.Entities[e.Parent] {
			depth++
		}
		n.Depth = max(n.Depth, depth)
	}
	for _, l := range all {
		if !slices.Contains(n.Kinds, l.Kind) {
			n.Kinds = append(n.Kinds, l.Kind)
		}
		n.Shadow = n.Shadow || l.Shadow
	}
}

// within reads a duration with an optional sign.
func (s *scanner) within() time.Duration {
	sign := time.Duration(1)
	if s.skip("-") {
		sign = -1
	} else {
		s.skip("+")
	}
	return sign * s.duration()
}
