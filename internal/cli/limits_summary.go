package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

// limitsFile is what was found in one limits file.
type limitsFile struct {
	File    string          `json:"file"`
	Valid   bool            `json:"valid"`
	Errors  []limitsMistake `json:"errors,omitempty"`
	Summary *limitsSummary  `json:"summary,omitempty"`
	Hidden  []hiddenLimits  `json:"hidden,omitempty"`
}

// limitsMistake is one mistake. A mistake of the file as a whole has no line.
type limitsMistake struct {
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
}

// limitsSummary counts what a file declares.
type limitsSummary struct {
	Namespace     string      `json:"namespace"`
	OnUnavailable weir.Policy `json:"on_unavailable"`
	Entities      int         `json:"entities"`
	WithParent    int         `json:"entities_with_parent"`
	Cascading     int         `json:"entities_cascading"`
	Resources     int         `json:"resources"`
	Limits        int         `json:"limits"`
	Kinds         kindCounts  `json:"limits_by_kind"`
	Shadow        int         `json:"limits_shadow"`
}

// kindCounts counts limits by kind.
type kindCounts struct {
	Bucket      int `json:"bucket"`
	Window      int `json:"window"`
	Concurrency int `json:"concurrency"`
	Budget      int `json:"budget"`
}

func (c *kindCounts) count(k weir.Kind) {
	switch k {
	case weir.Bucket:
		c.Bucket++
	case weir.Window:
		c.Window++
	case weir.Concurrency:
		c.Concurrency++
	case weir.Budget:
		c.Budget++
	}
}

func summarize(m *manifest.Manifest) *limitsSummary {
	d := m.Definitions
	s := &limitsSummary{
		Namespace: m.Namespace, OnUnavailable: d.OnUnavailable,
		Entities: len(d.Entities), Resources: len(d.Resources),
	}
	for _, e := range d.Entities {
		if e.Parent != "" {
			s.WithParent++
		}
		if e.Cascade {
			s.Cascading++
		}
	}
	for _, l := range d.All {
		s.Limits++
		s.Kinds.count(l.Kind)
		if l.Shadow {
			s.Shadow++
		}
	}
	return s
}

// table prints the counts; what is hidden is told below them.
func (s *limitsSummary) table(b *bytes.Buffer, hidden int) {
	t := text.Table{Indent: "  "}
	t.Add("namespace", s.Namespace)
	t.Add("on_unavailable", string(s.OnUnavailable))
	entities := text.FormatInt(int64(s.Entities))
	if s.WithParent > 0 {
		entities += fmt.Sprintf(" (%s, %s cascading)",
			text.Plural(s.WithParent, "with a parent", "with a parent"), text.FormatInt(int64(s.Cascading)))
	}
	t.Add("entities", entities)
	t.Add("resources", text.FormatInt(int64(s.Resources)))
	var kinds []string
	for _, k := range []struct {
		name string
		n    int
	}{
		{"bucket", s.Kinds.Bucket}, {"window", s.Kinds.Window},
		{"concurrency", s.Kinds.Concurrency}, {"budget", s.Kinds.Budget},
	} {
		if k.n > 0 {
			kinds = append(kinds, text.FormatInt(int64(k.n))+" "+k.name)
		}
	}
	limits := text.FormatInt(int64(s.Limits))
	if len(kinds) > 0 {
		limits += " (" + strings.Join(kinds, ", ") + ")"
	}
	if s.Shadow > 0 {
		limits += fmt.Sprintf(", %s of them shadow", text.FormatInt(int64(s.Shadow)))
	}
	t.Add("limits", limits)
	if hidden > 0 {
		t.Add("hidden", "")
	} else {
		t.Add("hidden", "nothing")
	}
	t.Write(b)
}

// hiddenLimits says which limits a level hides; see [manifest.HiddenLimits].
type hiddenLimits struct {
	Entities []string      `json:"entities,omitempty"`
	Resource string        `json:"resource"`
	Level    weir.Level    `json:"level"`
	Hidden   []hiddenLevel `json:"hidden"`

	text string
}

// hiddenLevel is a level that is hidden: which of its limits the winner has too, and which ones
// nothing stands in for.
type hiddenLevel struct {
	Level      weir.Level `json:"level"`
	Overridden []string   `json:"overridden,omitempty"`
	Lost       []string   `json:"lost,omitempty"`
}

func describeHidden(h *manifest.HiddenLimits) hiddenLimits {
	out := hiddenLimits{Entities: h.Entities, Resource: h.Resource, Level: h.Level, text: h.String()}
	for _, l := range h.Hidden {
		out.Hidden = append(out.Hidden, hiddenLevel{l.Level, l.Overridden, l.Lost})
	}
	return out
}
