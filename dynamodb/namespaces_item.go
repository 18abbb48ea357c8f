package dynamodb

import (
	"context"
	"maps"
	"strings"

	"github.com/weir-limiter/weir/internal/schema"
)

// readNamespace reads either item of a namespace. The Python library deletes and recovers without
// looking whether the item that leads back is there, and so makes one without a name: that is read
// too, for all others must still be listed.
func readNamespace(item schema.Item) (*schema.Namespace, error) {
	key, err := schema.KeyOf(item)
	if err != nil {
		return nil, unreadable(err)
	}
	if id, back := strings.CutPrefix(key.SK, schema.SKNamespaceIDPrefix); back {
		whole := schema.Item{
			schema.AttrNamespaceID: schema.String(id), schema.AttrNamespaceName: schema.String(""),
		}
		maps.Copy(whole, item)
		item = whole
	}
	n, err := schema.ParseNamespace(item)
	if err != nil {
		return nil, unreadable(err)
	}
	return n, nil
}

// nameOf searches all names for one that leads to an ID; empty if none does.
func (c *tableClient) nameOf(ctx context.Context, id string) (string, error) {
	byName, err := c.registry(ctx, schema.SKNamespacePrefix)
	if err != nil {
		return "", err
	}
	for _, n := range byName {
		if n.ID == id {
			return n.Name, nil
		}
	}
	return "", nil
}

// restoreReverse gives the item that leads back to a name what it lacks of it.
func (e *expression) restoreReverse(n *schema.Namespace) {
	back := *n
	back.Reverse = true
	whole := back.Item()
	for _, a := range []string{
		schema.AttrNamespaceID, schema.AttrNamespaceName, schema.AttrCreatedAt,
		schema.AttrGSI4PK, schema.AttrGSI4SK,
	} {
		if v, ok := whole[a]; ok {
			e.setIfAbsent(a, v)
		}
	}
}
