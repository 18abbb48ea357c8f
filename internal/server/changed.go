package server

import (
	"crypto/tls"
	"log/slog"
	"slices"

	"github.com/weir-limiter/weir"
)

// reloadCause is why files were read again, for the log.
type reloadCause string

const (
	causeSignal     reloadCause = "signal"
	causeFileChange reloadCause = "file_change"
)

// changeCounts is the number of names that were added, given another meaning, and removed.
type changeCounts struct{ added, changed, removed int }

// attrs returns the counts as fields with these names.
func (c changeCounts) attrs(added, changed, removed string) []slog.Attr {
	return []slog.Attr{
		slog.Int(added, c.added), slog.Int(changed, c.changed), slog.Int(removed, c.removed),
	}
}

// countChanges compares two maps.
func countChanges[V any](before, after map[string]V, same func(a, b V) bool) (c changeCounts) {
	for name, b := range before {
		if a, ok := after[name]; !ok {
			c.removed++
		} else if !same(a, b) {
			c.changed++
		}
	}
	c.added = len(after) - (len(before) - c.removed)
	return c
}

// limitChanges returns what is different in a limits file, as fields. It says nothing of changes that
// administrators made in between.
func limitChanges(before, after *weir.Definitions) []slog.Attr {
	if before == nil {
		before = &weir.Definitions{}
	}
	system := !sameLimits(before.System, after.System) ||
		before.OnUnavailable != after.OnUnavailable || !before.Retention.Same(after.Retention)
	attrs := []slog.Attr{slog.Bool("system_changed", system)}
	attrs = append(attrs, countChanges(before.Resources, after.Resources, sameLimits).
		attrs("resources_added", "resources_changed", "resources_removed")...)
	return append(attrs, countChanges(before.Entities, after.Entities, weir.EntityDefinition.Same).
		attrs("entities_added", "entities_changed", "entities_removed")...)
}

// sameLimits compares normalized limits.
func sameLimits(a, b []weir.Limit) bool {
	return slices.EqualFunc(a, b, func(a, b weir.Limit) bool { return a.Same(b) })
}

// tokenChanges returns what is different in a file of bearer tokens, as fields, by the names of their
// owners.
func tokenChanges(before, after []tokenEntry) []slog.Attr {
	return countChanges(tokensByName(before), tokensByName(after), func(a, b tokenEntry) bool {
		return a == b
	}).attrs("added", "changed", "removed")
}

func tokensByName(entries []tokenEntry) map[string]tokenEntry {
	byName := make(map[string]tokenEntry, len(entries))
	for _, e := range entries {
		byName[e.identity.Name] = e
	}
	return byName
}

// certificateChanges returns what is different in a certificate, as fields.
func certificateChanges(before, after *tls.Certificate) []slog.Attr {
	changed := before == nil || !slices.EqualFunc(before.Certificate, after.Certificate, slices.Equal)
	attrs := []slog.Attr{slog.Bool("changed", changed)}
	if after.Leaf != nil {
		attrs = append(attrs, slog.Time("not_after", after.Leaf.NotAfter.UTC()))
	}
	return attrs
}
