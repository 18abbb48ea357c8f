package manifest

import (
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/metadata"
)

// The metadata of an entity are texts by name. Values of other types, which only another program
// writes, are in metadata_json, an object of JSON in quotes: YAML has no form of them that all
// programs agree about.

// metadata decodes the texts in the metadata of an entity.
func (d *decoder) metadata(n *node, path string, e *weir.EntityDefinition) {
	d.names(n, path, keyFault, func(name, path string, n *node) {
		if n.kind != scalarNode {
			d.found.add(n.at, path, "", "must be text, not "+n.kindName())
			return
		}
		d.addMetadata(n, path, e, name, n.text)
	})
	d.checkMetadata(n, path, e)
}

// metadataJSON decodes the other values in the metadata of an entity.
func (d *decoder) metadataJSON(n *node, path string, e *weir.EntityDefinition) {
	if n.kind != scalarNode {
		d.found.add(n.at, path, "", "must be an object of JSON in quotes, not "+n.kindName())
		return
	}
	values, err := metadata.Parse([]byte(n.text))
	if err != nil {
		d.found.add(n.at, path, n.text, err.Error())
		return
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		d.addMetadata(n, path+"."+quote(name), e, name, values[name])
	}
	d.checkMetadata(n, path, e)
}

// addMetadata adds an entry to the metadata of an entity.
func (d *decoder) addMetadata(n *node, path string, e *weir.EntityDefinition, name string, value any) {
	if _, given := e.Metadata[name]; given {
		d.found.add(n.at, path, name, "is given twice, in metadata and in metadata_json")
		return
	}
	if e.Metadata == nil {
		e.Metadata = map[string]any{}
	}
	e.Metadata[name] = value
}

// checkMetadata records what is wrong with the metadata of an entity as a whole.
func (d *decoder) checkMetadata(n *node, path string, e *weir.EntityDefinition) {
	reason := reasonOf(&weir.Definitions{
		Entities: map[string]weir.EntityDefinition{"a": {Metadata: e.Metadata}},
	})
	if reason != "" {
		d.found.add(n.at, path, "", reason)
		e.Metadata = nil
	}
}

// keyFault returns what is wrong with a name in metadata, or "".
func keyFault(name string) string {
	if name == "" {
		return "must not be empty"
	}
	return ""
}

// displayNameFault returns what is wrong with the name of an entity for people, or "".
func displayNameFault(name string) string {
	return reasonOf(&weir.Definitions{Entities: map[string]weir.EntityDefinition{"a": {Name: name}}})
}

// metadata writes the metadata of an entity.
func (w *writer) metadata(m map[string]any) {
	texts, others := metadata.Split(m)
	if len(texts) > 0 {
		w.line(2, "metadata:")
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			w.line(3, "%s: %s", scalar(name), quoted(texts[name]))
		}
	}
	if len(others) > 0 {
		w.line(2, "metadata_json: %s", quoted(metadata.JSON(others)))
	}
}

// nameJSON returns the name of an entity as JSON; empty if it has none.
func nameJSON(name string) string {
	if name == "" {
		return ""
	}
	return metadata.JSON(name)
}

// metadata adds the changes of the metadata of an entity. The values are JSON, so that an empty
// text is not nothing.
func (d *differ) metadata(at Change, before, after map[string]any) {
	for _, name := range names(before, after) {
		at.Attribute, at.Was, at.Is = "metadata."+name, "", ""
		if sameEntry(before, after, name) {
			continue
		}
		if was, ok := before[name]; ok {
			at.Was = metadata.JSON(was)
		}
		if is, ok := after[name]; ok {
			at.Is = metadata.JSON(is)
		}
		d.attribute(at)
	}
}

// sameEntry reports whether two metadata have the same value of a name. DynamoDB returns some
// numbers in another form than it got them.
func sameEntry(a, b map[string]any, name string) bool {
	was, inA := a[name]
	is, inB := b[name]
	return inA && inB && metadata.Equal(map[string]any{name: was}, map[string]any{name: is})
}
