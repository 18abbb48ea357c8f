package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// utc is the zone of a budget without a zone.
const utc = "UTC"

// Format returns a limits file that [Parse] parses to an equal configuration. It leaves out levels
// without limits, which have no meaning. Its errors, joined, are mistakes in the definitions, and
// refill periods that are not whole seconds, which a file cannot express; each is a [*weir.Error]
// with code [weir.Invalid].
func Format(namespace string, d *weir.Definitions) ([]byte, error) {
	d, err := d.Normalize()
	if err != nil {
		return nil, err
	}
	w := &writer{}
	if reason := identifier.CheckNamespace(namespace); reason != "" {
		w.refuse("namespace", namespace, reason)
	}
	w.line(0, "version: %d", formatVersion)
	w.line(0, "namespace: %s", scalar(namespace))
	w.line(0, "system:")
	w.line(1, "on_unavailable: %s", d.OnUnavailable)
	w.retention(d.Retention)
	w.limits(1, "system", d.System)
	w.resources(0, "", d.Resources)
	w.entities(d.Entities)
	if err := errors.Join(w.errs...); err != nil {
		return nil, err
	}
	return w.text.Bytes(), nil
}

// writer collects the text of a file and the errors.
type writer struct {
	text bytes.Buffer
	errs []error
}

func (w *writer) refuse(field, value, reason string) {
	w.errs = append(w.errs, &weir.Error{
		Code: weir.Invalid, Field: field, Value: clip.Text(value), Reason: reason,
	})
}

func (w *writer) line(depth int, format string, args ...any) {
	w.text.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&w.text, format, args...)
	w.text.WriteByte('\n')
}

func (w *writer) retention(r weir.Retention) {
	var fields []string
	for name, value := range r.All {
		if value != nil {
			fields = append(fields, name+": "+strconv.FormatInt(*value, 10))
		}
	}
	if len(fields) > 0 {
		w.line(1, "retention: {%s}", strings.Join(fields, ", "))
	}
}

func (w *writer) entities(entities map[string]weir.EntityDefinition) {
	if len(entities) == 0 {
		return
	}
	w.line(0, "entities:")
	for _, name := range slices.Sorted(maps.Keys(entities)) {
		e := entities[name]
		if e.Parent == "" && e.Name == "" && len(e.Metadata) == 0 && !anyLimits(e.Limits) {
			w.line(1, "%s: {}", scalar(name))
			continue
		}
		w.line(1, "%s:", scalar(name))
		if e.Parent != "" {
			w.line(2, "parent: %s", scalar(e.Parent))
		}
		if e.Cascade {
			w.line(2, "cascade: true")
		}
		if e.Name != "" {
			w.line(2, "name: %s", quoted(e.Name))
		}
		w.metadata(e.Metadata)
		w.resources(2, "entities."+name+".", e.Limits)
	}
}

func anyLimits(levels map[string][]weir.Limit) bool {
	for _, limits := range levels {
		if len(limits) > 0 {
			return true
		}
	}
	return false
}

func (w *writer) resources(depth int, path string, levels map[string][]weir.Limit) {
	if !anyLimits(levels) {
		return
	}
	w.line(depth, "resources:")
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if len(levels[name]) > 0 {
			w.line(depth+1, "%s:", scalar(name))
			w.limits(depth+2, path+"resources."+name, levels[name])
		}
	}
}

func (w *writer) limits(depth int, path string, limits []weir.Limit) {
	if len(limits) == 0 {
		return
	}
	w.line(depth, "limits:")
	for i := range limits {
		l := &limits[i]
		if l.RefillPeriod%time.Second != 0 {
			w.refuse(path+".limits."+l.Name+".refill_period", l.RefillPeriod.String(),
				"must be whole seconds in a limits file")
		}
		w.line(depth+1, "%s: {%s}", scalar(l.Name), strings.Join(limitText(l), ", "))
	}
}

// limitText returns the fields of a limit that are not their defaults.
func limitText(l *weir.Limit) []string {
	var fields []string
	add := func(name, value string, wanted bool) {
		if wanted {
			fields = append(fields, name+": "+value)
		}
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	seconds := func(d time.Duration) string { return number(int64(d / time.Second)) }
	bucket := l.Kind == weir.Bucket
	add("kind", string(l.Kind), !bucket)
	add("capacity", number(l.Capacity), true)
	add("refill_amount", number(l.RefillAmount), bucket && l.RefillAmount != l.Capacity)
	add("refill_period", seconds(l.RefillPeriod), bucket && l.RefillPeriod != time.Minute)
	add("window", seconds(l.Window), l.Kind == weir.Window)
	add("timeout", seconds(l.Timeout), l.Kind == weir.Concurrency)
	add("every", l.Every, l.Kind == weir.Budget)
	add("zone", scalar(l.Zone), l.Kind == weir.Budget && l.Zone != utc)
	add("enforce", "false", l.Shadow)
	return fields
}

// scalar returns an identifier, in quotes if another program could take it for anything but text.
func scalar(s string) string {
	plain := s != "" && (s[0] == '_' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
	for i := range len(s) {
		c := s[i]
		plain = plain && (c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' ||
			strings.IndexByte("_-./", c) >= 0)
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		plain = false
	}
	if plain {
		return s
	}
	return quoted(s)
}

// quoted returns a text in quotes. The escapes of Go are also escapes of YAML.
func quoted(s string) string { return strconv.Quote(s) }
