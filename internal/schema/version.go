package schema

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"

	"github.com/weir-limiter/weir/internal/metadata"
	"github.com/weir-limiter/weir/internal/version"
)

// notInVersion returns the attributes of a configuration item that its version leaves out: keys,
// the edition, what no limit depends on, and the settings of a namespace that have no version.
func notInVersion() []string {
	return []string{
		AttrPK, AttrSK, AttrGSI3PK, AttrGSI3SK, AttrGSI4PK, AttrGSI4SK, AttrEntity, AttrResource,
		AttrConfigVersion, AttrEdition, AttrOnUnavailable, AttrRetention, AttrUsageRetention,
		AttrTTLMultiplier,
	}
}

// EntityVersionAttributes returns the attributes of a META that its version covers. Those that
// change with the children of the entity are not among them.
func EntityVersionAttributes() []string {
	return []string{
		AttrName, AttrParent, AttrCascade, AttrMetadata, AttrCreatedAt, AttrPInc, AttrPGen,
	}
}

// PlaceVersion returns the version of a configuration item: a hash of its content. Both weir and
// the Python library change it with every change of the limits. It is empty if item is nil.
func PlaceVersion(item Item) string {
	if item == nil {
		return ""
	}
	content := maps.Clone(item)
	for _, name := range notInVersion() {
		delete(content, name)
	}
	return version.Of(versionForm(TypedJSON(content)))
}

// EntityVersion returns the version of an entity: a hash of its META, which may be nil, and of
// its configuration items by resource. It is empty if there are none.
func EntityVersion(meta Item, configs map[string]Item) string {
	if meta == nil && len(configs) == 0 {
		return ""
	}
	content := make(map[string]any, len(configs)+1)
	if meta != nil {
		covered := Item{}
		for _, name := range EntityVersionAttributes() {
			if value, ok := meta[name]; ok {
				covered[name] = value
			}
		}
		content[SKMeta] = versionForm(TypedJSON(covered))
	}
	for resource, item := range configs {
		content[SKConfig+"#"+resource] = PlaceVersion(item)
	}
	return version.Of(content)
}

// versionForm returns typed JSON with all numbers in one form, because DynamoDB writes some
// numbers in another form than it got them.
func versionForm(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if text, ok := member.(string); ok && name == "N" && len(v) == 1 {
				out[name] = metadata.NumberForm(text)
				continue
			}
			out[name] = versionForm(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = versionForm(v[i])
		}
		return out
	}
	return value
}

// editionBytes is the number of random bytes of an edition.
const editionBytes = 8

// NewEdition returns a random edition of a configuration item, see [Config.Edition].
func NewEdition(random io.Reader) (string, error) {
	var b [editionBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("edition: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
