package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// Script is a world and what is done in it. Its text form is what a failing run prints and
// [Replay] accepts:
//
//	start 2026-03-29T00:30:00Z
//	option lifetime 5m0s
//	option memory 1m0s
//	option size 4
//	option depth 2
//	option leases 10
//	option share 3
//	option limits rpm=5:bucket
//	set base
//	system rpm=60:bucket/10/1s
//	resource gpt par=3:concurrency/30s
//	entity acme parent org cascade
//	entity org
//	limits acme gpt tpm=500:bucket
//	unavailable allow
//	set lowered
//	…
//	run
//	reserve …
//
// The first set is configured at first. Lines that begin with '#' are comments.
type Script struct {
	Start time.Time
	// Lifetime, Memory, Size, Depth and Limits, and Leases and Share, which bound live leases, are
	// options of the limiter.
	Lifetime, Memory           time.Duration
	Size, Depth, Leases, Share int
	Limits                     []weir.Limit
	// Sets are definitions to configure.
	Sets []Set
	Ops  []Op
}

// Set is a named configuration.
type Set struct {
	Name        string
	Definitions *weir.Definitions
}

// Setup returns the setup of the script's worlds.
func (s *Script) Setup() Setup {
	setup := Setup{Start: s.Start, Options: limiter.Options{
		Limits: s.Limits, LeaseLifetime: s.Lifetime, LeaseMemory: s.Memory,
		LeaseMemorySize: s.Size, CascadeDepth: s.Depth,
		MaxLeases: s.Leases, MaxLeasesPerCaller: s.Share,
	}}
	if len(s.Sets) > 0 {
		setup.Definitions = s.Sets[0].Definitions
	}
	return setup
}

func (s *Script) set(name string) *weir.Definitions {
	for i := range s.Sets {
		if s.Sets[i].Name == name {
			return s.Sets[i].Definitions
		}
	}
	return nil
}

// String returns the script's text.
func (s *Script) String() string {
	var b strings.Builder
	line := func(words ...string) { b.WriteString(strings.Join(words, " ") + "\n") }
	line("start", s.Start.UTC().Format(time.RFC3339Nano))
	if s.Lifetime != 0 {
		line("option lifetime", s.Lifetime.String())
	}
	if s.Memory != 0 {
		line("option memory", s.Memory.String())
	}
	for _, o := range []struct {
		name string
		n    int
	}{{"size", s.Size}, {"depth", s.Depth}, {"leases", s.Leases}, {"share", s.Share}} {
		if o.n != 0 {
			line("option", o.name, strconv.Itoa(o.n))
		}
	}
	if len(s.Limits) != 0 {
		line("option limits", limitsText(s.Limits))
	}
	for i := range s.Sets {
		line("set", word(s.Sets[i].Name))
		writeDefinitions(line, s.Sets[i].Definitions)
	}
	line("run")
	for i := range s.Ops {
		line(s.Ops[i].String())
	}
	return b.String()
}

func writeDefinitions(line func(words ...string), d *weir.Definitions) {
	if len(d.System) > 0 {
		line("system", limitsText(d.System))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Resources)) {
		if limits := d.Resources[name]; len(limits) > 0 {
			line("resource", word(name), limitsText(limits))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		e := d.Entities[name]
		words := []string{"entity", word(name)}
		if e.Parent != "" {
			words = append(words, "parent", word(e.Parent))
		}
		if e.Cascade {
			words = append(words, "cascade")
		}
		line(words...)
		for _, resource := range slices.Sorted(maps.Keys(e.Limits)) {
			if limits := e.Limits[resource]; len(limits) > 0 {
				line("limits", word(name), word(resource), limitsText(limits))
			}
		}
	}
	if d.OnUnavailable != "" {
		line("unavailable", word(string(d.OnUnavailable)))
	}
}

// ParseScript parses what [Script.String] wrote.
func ParseScript(text string) (*Script, error) {
	s := &Script{}
	running := false
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var err error
		switch {
		case running:
			var o Op
			o, err = ParseOp(line)
			s.Ops = append(s.Ops, o)
		case line == "run":
			running = true
		default:
			err = s.parseHeader(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return s, nil
}

func (s *Script) parseHeader(line string) error {
	in := scanner{rest: line}
	verb := in.name()
	in.expect(" ")
	switch verb {
	case "start":
		var err error
		if s.Start, err = time.Parse(time.RFC3339Nano, in.rest); err != nil {
			return err
		}
		s.Start = s.Start.UTC()
		return nil
	case "option":
		s.parseOption(&in)
		return in.done()
	case "set":
		s.Sets = append(s.Sets, Set{in.name(), &weir.Definitions{
			Resources: make(map[string][]weir.Limit),
			Entities:  make(map[string]weir.EntityDefinition),
		}})
		return in.done()
	}
	if len(s.Sets) == 0 {
		return errors.New("a definition stands before the first set")
	}
	parseDefinition(&in, verb, s.Sets[len(s.Sets)-1].Definitions)
	return in.done()
}

func (s *Script) parseOption(in *scanner) {
	option := in.name()
	in.expect(" ")
	switch option {
	case "lifetime":
		s.Lifetime = in.duration()
	case "memory":
		s.Memory = in.duration()
	case "size":
		s.Size = int(in.integer())
	case "depth":
		s.Depth = int(in.integer())
	case "leases":
		s.Leases = int(in.integer())
	case "share":
		s.Share = int(in.integer())
	case "limits":
		s.Limits = in.limits()
	default:
		in.fail("unknown option %q", option)
	}
}

func parseDefinition(in *scanner, verb string, d *weir.Definitions) {
	switch verb {
	case "system":
		d.System = in.limits()
	case "resource":
		name := in.name()
		in.expect(" ")
		d.Resources[name] = in.limits()
	case "entity":
		name := in.name()
		e := weir.EntityDefinition{Limits: make(map[string][]weir.Limit)}
		if in.skip(" parent ") {
			e.Parent = in.name()
		}
		e.Cascade = in.skip(" cascade")
		d.Entities[name] = e
	case "limits":
		entity := in.name()
		in.expect(" ")
		resource := in.name()
		in.expect(" ")
		limits := in.limits()
		if e, ok := d.Entities[entity]; ok {
			e.Limits[resource] = limits
			return
		}
		in.fail("no entity %q before its limits", entity)
	case "unavailable":
		d.OnUnavailable = weir.Policy(in.name())
	default:
		in.fail("unknown word %q", verb)
	}
}
