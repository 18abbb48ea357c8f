package oldtable

import (
	"fmt"
	"maps"
	"strings"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Carry returns the item of the present layout for an old entity, record of usage or event of the
// audit, in a namespace. It keeps all attributes.
func Carry(kind Kind, ns string, item schema.Item) (schema.Item, error) {
	item = inNamespace(ns, item)
	var made schema.Item
	var err error
	switch kind {
	case Entity:
		var e *schema.Entity
		if e, err = schema.ParseEntity(item); err == nil {
			made, err = e.Item()
		}
	case Usage:
		var u *schema.Usage
		if u, err = schema.ParseUsage(item); err == nil {
			made = u.Item()
		}
	case Audit:
		var e *schema.AuditEvent
		if e, err = schema.ParseAuditEvent(item); err == nil {
			made, err = e.Item()
		}
	default:
		err = fmt.Errorf("kind %d is not carried over", kind)
	}
	if err != nil {
		return nil, client.Unreadable(err)
	}
	return made, nil
}

// inNamespace returns a copy of an item whose partition is that of a namespace.
func inNamespace(ns string, item schema.Item) schema.Item {
	item = maps.Clone(item)
	item[schema.AttrPK] = schema.String(ns + "/" + client.TextOf(item, schema.AttrPK))
	return item
}

// The attributes of an item that holds one limit of a place.
const (
	attrLimitCapacity = "capacity"
	attrLimitBurst    = "burst"
	attrLimitAmount   = "refill_amount"
	attrLimitPeriod   = "refill_period_seconds"
)

// Place is the old items of one place of the configuration, and what they mean.
type Place struct {
	// Config is the item of the present layout.
	Config *schema.Config
	// Counted reports whether the registries know the place: those of releases that have one
	// item for all limits of a place count entities.
	Counted bool
	items   []schema.Item
}

// ParsePlace parses the old items of a place, in a namespace: the item with all of its limits,
// nil if there is none, and the items with one limit each. A limit that the former has wins.
// The highest balance of a limit was its burst, and is its capacity now.
func ParsePlace(ns string, k Key, all schema.Item, each []schema.Item) (*Place, error) {
	c := &schema.Config{Namespace: ns, Entity: k.Entity, Resource: k.Resource}
	p := &Place{Config: c, Counted: all != nil, items: each}
	if all != nil {
		p.items = append([]schema.Item{all}, each...)
		item := inNamespace(ns, all)
		err := mergeBursts(item)
		if err == nil {
			p.Config, err = schema.ParseConfig(item)
		}
		if err != nil {
			return nil, client.Unreadable(err)
		}
	}
	limits := append([]schema.Limit(nil), p.Config.Limits...)
	for _, item := range each {
		key, err := schema.KeyOf(item)
		if err != nil {
			return nil, client.Unreadable(err)
		}
		r := &reader{item: item}
		l := schema.Limit{
			Name: ParseKey(key).Limit, Refill: r.number(attrLimitAmount, 0),
			Seconds: r.number(attrLimitPeriod, 0),
		}
		capacity := r.number(attrLimitCapacity, 0)
		if l.Capacity = max(capacity, r.number(attrLimitBurst, capacity)); r.err != nil {
			return nil, r.err
		}
		if p.Config.Limit(l.Name) == nil {
			limits = append(limits, l)
		}
	}
	p.Config.SetLimits(limits)
	return p, nil
}

// mergeBursts raises the capacities of an item's limits to their bursts, which it removes.
func mergeBursts(item schema.Item) error {
	for _, name := range attributes(item) {
		limit, field, ok := schema.ParseLimitAttribute(name)
		if !ok || field != fieldBurst {
			continue
		}
		r := &reader{item: item}
		capacity := schema.LimitAttribute(limit, schema.FieldCapacity)
		highest := max(r.number(capacity, 0), r.number(name, 0))
		if r.err != nil {
			return r.err
		}
		item[capacity] = schema.Number(highest)
		delete(item, name)
	}
	return nil
}

// Items returns the number of old items.
func (p *Place) Items() int { return len(p.items) }

// Remove adds the deletion of the old items to a transaction.
func (p *Place) Remove(t *client.Transaction) {
	for _, item := range p.items {
		key, _ := schema.KeyOf(item) // it was parsed before
		RemoveItem(t, key)
	}
}

// RemoveItem adds the deletion of an old item, which must exist, to a transaction.
func RemoveItem(t *client.Transaction, key schema.Key) {
	e := &client.Expression{}
	e.RequireExists(schema.AttrPK)
	t.Remove(key, e)
}

// RegistryUpdate returns the key of the present registry for an old one, and the update that
// adds the old names or counts to it.
func RegistryUpdate(ns string, item schema.Item) (schema.Key, *client.Expression, error) {
	carried := inNamespace(ns, item)
	key, err := schema.KeyOf(carried)
	e := registryKeys(ns)
	switch {
	case err != nil:
	case key.SK == schema.SKResources:
		var r *schema.Resources
		if r, err = schema.ParseResources(carried); err == nil && len(r.Names) > 0 {
			names := e.Value(schema.StringSet(r.Names...))
			e.Add = append(e.Add, e.Name(schema.AttrResources)+" "+names)
		}
	default:
		var r *schema.EntityConfigResources
		if r, err = schema.ParseEntityConfigResources(carried); err == nil {
			for _, name := range attributes(carried) {
				e.AddNumber(name, r.Counts[name])
			}
		}
	}
	if err != nil {
		return key, nil, client.Unreadable(err)
	}
	return key, e, nil
}

// CountUpdate returns the update that adds an entity with limits of its own on a resource to the
// registry; nil if the registry cannot count the resource.
func CountUpdate(ns, resource string) *client.Expression {
	if schema.RegistryKeeps(resource) {
		return nil
	}
	e := registryKeys(ns)
	e.AddNumber(resource, 1)
	return e
}

// registryKeys returns an update that gives a registry the keys of the index by namespace.
func registryKeys(ns string) *client.Expression {
	e := &client.Expression{}
	e.SetIfAbsent(schema.AttrGSI4PK, schema.String(ns))
	e.SetIfAbsent(schema.AttrGSI4SK, schema.String(schema.SystemPK(ns)))
	return e
}

// UsageUpdate returns the update that adds a record of usage to the present one, which may exist
// already: weir may have counted in the same window.
func UsageUpdate(ns string, item schema.Item) (schema.Key, *client.Expression, error) {
	made, err := Carry(Usage, ns, item)
	if err != nil {
		return schema.Key{}, nil, err
	}
	key, err := schema.KeyOf(made)
	if err != nil {
		return key, nil, client.Unreadable(err)
	}
	e := &client.Expression{}
	for _, name := range attributes(made) {
		n, notNumber := schema.Int64(made[name])
		switch {
		case name == schema.AttrPK || name == schema.AttrSK:
		case notNumber == nil && name != schema.AttrTTL && !strings.HasPrefix(name, "GSI"):
			e.AddNumber(name, n)
		default:
			e.SetIfAbsent(name, made[name])
		}
	}
	return key, e, nil
}
