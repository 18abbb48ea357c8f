package admin

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// WriteLimits replaces the limits of a place. The other attributes of the place's item stay. The
// item, the registry of places, the declaration of the entity and the audit change in one
// transaction.
func (a *Admin) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	_, err := a.ChangeLimits(ctx, now, at, limits, change.Options{})
	return err
}

// ChangeLimits is WriteLimits on condition that the place is as o requires. It returns the new
// version.
func (a *Admin) ChangeLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit, o change.Options,
) (version string, err error) {
	if err := a.running.Enter(); err != nil {
		return "", err
	}
	defer a.running.End()
	if err := checkLimitCount("limits", limits); err != nil {
		return "", err
	}
	stored, err := StoredLimits(limits)
	if err != nil {
		return "", err
	}
	if at.Entity != "" && schema.RegistryKeeps(at.Resource) {
		return "", client.Fault(weir.Invalid, "resource", at.Resource,
			"cannot have limits of an entity: the table uses "+
				"this name in its registry")
	}
	err = a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		version, err = a.planLimits(ctx, t, at, stored, o)
		return err
	})
	if err != nil {
		return "", err
	}
	return version, a.buckets.ApplyConfigChange(ctx, bucketitem.ConfigChange{
		Kind: bucketitem.LimitsChanged, At: at, Now: now,
	})
}

// PlanLimits plans the writes that give a place these limits.
func (a *Admin) PlanLimits(
	ctx context.Context, t *Change, at weir.Subject, limits []schema.Limit,
) error {
	_, err := a.planLimits(ctx, t, at, limits, change.Options{})
	return err
}

// planLimits plans the writes that give a place these limits if it is as o requires. It returns the
// version that the place then has.
func (a *Admin) planLimits(
	ctx context.Context, t *Change, at weir.Subject, limits []schema.Limit, o change.Options,
) (version string, err error) {
	target := &schema.Config{Namespace: a.config.Namespace, Entity: at.Entity, Resource: at.Resource}
	keys := []schema.Key{
		schema.SystemConfigKey(a.config.Namespace), target.Key(), schema.EntityConfigResourcesKey(a.config.Namespace),
	}
	if at.Entity != "" {
		keys = append(keys, schema.MetaKey(a.config.Namespace, at.Entity))
	}
	items, err := a.Client.BatchGet(ctx, keys, true)
	if err != nil {
		return "", err
	}
	if err := t.setRetention(items[0]); err != nil {
		return "", err
	}
	old := items[1]
	if !o.IsZero() && o.Check(placeVersion(old), "") == nil {
		if old, err = a.mark(ctx, target.Key(), old); err != nil {
			return "", err
		}
	}
	if c, err := client.Parse(old, schema.ParseConfig); err != nil {
		return "", err
	} else if c != nil {
		target = c
	}
	current, before := placeVersion(old), target.Limits
	target.SetLimits(limits)
	if version = ""; len(limits) > 0 {
		version = schema.PlaceVersion(target.Item())
	}
	if err := o.Check(current, change.PlaceName(at)); err != nil {
		if len(limits) == 0 || o.IfAbsent || current != version {
			return "", err
		}
		return version, nil // without a write, for which nothing would be required
	}
	declared := at.Entity == "" || items[3] != nil
	if len(limits) == 0 && current == "" || declared && reflect.DeepEqual(target.Item(), old) {
		return version, nil // nothing changes, for example on a repeated call
	}
	e := unchangedElsewhere(old, target)
	if target.Edition = ""; !o.IsZero() {
		if old != nil {
			e.RequireUnchanged(old, schema.AttrEdition)
		}
		if target.Edition, err = schema.NewEdition(rand.Reader); err != nil {
			return "", err
		}
	}
	if err := t.putLimits(at, target, e, old, items[2]); err != nil {
		return "", err
	}
	if !declared && len(limits) > 0 {
		if err := t.declareNew(at.Entity); err != nil {
			return "", err
		}
	}
	return version, t.addLimitsEvent(at, target, before)
}

// declareNew declares an entity without a parent.
func (t *Change) declareNew(name string) error {
	e, err := NewEntity(t.namespace, name, t.now)
	if err != nil {
		return err
	}
	return t.declare(e)
}

// putLimits replaces a place's item, which may be nil, by another under a condition, and keeps the
// registries.
func (t *Change) putLimits(
	at weir.Subject, target *schema.Config, condition *client.Expression, old, registry schema.Item,
) error {
	gone := len(target.Limits) == 0 && isEmpty(target)
	if gone {
		t.Remove(target.Key(), condition)
	} else {
		t.Put(target.Item(), condition)
	}
	switch {
	case at.Entity != "" && gone:
		return t.unregister(registry, at.Resource)
	case at.Entity != "" && old == nil:
		t.register(at.Resource)
	case at.Entity == "" && at.Resource != "":
		t.listResource(at.Resource, len(target.Limits) > 0)
	}
	return nil
}

// addLimitsEvent adds an audit event for a change of a place's limits.
func (t *Change) addLimitsEvent(at weir.Subject, c *schema.Config, before []schema.Limit) error {
	system := at == weir.Subject{}
	owner := auditOwner(at)
	switch {
	case len(c.Limits) > 0 && system:
		details := schema.SystemLimitsDetails(c.Limits, c.OnUnavailable)
		return t.addAuditEvent(schema.ActionLimitsSet, owner, "", details)
	case len(c.Limits) > 0:
		return t.addAuditEvent(schema.ActionLimitsSet, owner, at.Resource, schema.LimitsDetails(c.Limits))
	case system:
		details := schema.SystemDeletedDetails(before, c.OnUnavailable)
		return t.addAuditEvent(schema.ActionLimitsDeleted, owner, "", details)
	}
	return t.addAuditEvent(schema.ActionLimitsDeleted, owner, at.Resource, nil)
}

// WritePolicy sets the system's policy. Its limits stay.
func (a *Admin) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	err := a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		key := schema.SystemConfigKey(a.config.Namespace)
		item, err := a.Client.GetItem(ctx, key, true)
		if err != nil {
			return err
		}
		if err := t.setRetention(item); err != nil {
			return err
		}
		system, err := client.Parse(item, schema.ParseConfig)
		if err != nil {
			return err
		}
		if system == nil {
			system = &schema.Config{Namespace: a.config.Namespace}
		}
		if system.OnUnavailable == string(p) {
			return nil
		}
		system.OnUnavailable = string(p)
		e := &client.Expression{}
		e.SetText(schema.AttrOnUnavailable, string(p))
		e.SetIfAbsent(schema.AttrConfigVersion, schema.Number(1))
		e.SetIfAbsent(schema.AttrGSI4PK, schema.String(a.config.Namespace))
		e.SetIfAbsent(schema.AttrGSI4SK, schema.String(key.PK))
		t.Update(key, e)
		return t.addAuditEvent(schema.ActionLimitsSet, schema.AuditSystem, "",
			schema.SystemLimitsDetails(system.Limits, system.OnUnavailable))
	})
	if err != nil {
		return err
	}
	return a.buckets.ApplyConfigChange(ctx, bucketitem.ConfigChange{
		Kind: bucketitem.PolicyChanged, Now: now,
	})
}

// unchangedElsewhere returns the condition under which an item may be replaced by target: every
// attribute that does not belong to its limits is still as it was read.
func unchangedElsewhere(read schema.Item, target *schema.Config) *client.Expression {
	e := &client.Expression{}
	if read == nil {
		e.RequireAbsent(schema.AttrPK)
		return e
	}
	e.RequireExists(schema.AttrPK)
	for _, a := range []string{
		schema.AttrDisabled, schema.AttrCascade, schema.AttrOnUnavailable, schema.AttrRetention,
		schema.AttrUsageRetention, schema.AttrTTLMultiplier,
	} {
		e.RequireUnchanged(read, a)
	}
	for a := range target.Extra {
		if a != schema.AttrDisabled {
			e.RequireUnchanged(read, a)
		}
	}
	return e
}

// isEmpty reports whether a configuration item says nothing and can be deleted.
func isEmpty(c *schema.Config) bool {
	return c.Access == schema.AccessInherit && c.Cascade == nil && c.OnUnavailable == "" &&
		c.RetentionDays == 0 && c.UsageRetentionDays == 0 && c.TTLMultiplier == nil && len(c.Extra) == 0
}

// register counts an entity's first configuration on a resource in the registry.
func (t *Change) register(resource string) {
	key := schema.EntityConfigResourcesKey(t.namespace)
	e := t.inNamespace(key)
	e.AddNumber(resource, 1)
	t.Update(key, e)
}

// unregister takes an entity's configurations out of the registry. read is the registry item as it
// was read; it may be nil. A resource with no configurations left is removed.
func (t *Change) unregister(read schema.Item, resources ...string) error {
	counts := map[string]int64{}
	r, err := client.Parse(read, schema.ParseEntityConfigResources)
	if err != nil {
		return err
	}
	if r != nil {
		counts = r.Counts
	}
	key := schema.EntityConfigResourcesKey(t.namespace)
	e := t.inNamespace(key)
	changes := false
	for _, resource := range resources {
		n, counted := counts[resource]
		switch {
		case !counted:
			continue // the program that wrote the configuration did not count it
		case n > 1:
			e.AddNumber(resource, -1)
			e.Require(resource, ">", 1)
		default:
			e.RemoveAll(resource)
			e.Require(resource, "<=", 1)
		}
		changes = true
	}
	if changes {
		t.Update(key, e)
	}
	return nil
}

// listResource adds a resource to the list of resources with limits, or removes it.
func (t *Change) listResource(resource string, listed bool) {
	key := schema.ResourcesKey(t.namespace)
	e := t.inNamespace(key)
	update := *e.Update()
	clause := " DELETE "
	if listed {
		clause = " ADD "
	}
	update += clause + e.Name(schema.AttrResources) + " " + e.Value(schema.StringSet(resource))
	t.UpdateBy(key, &update, e)
}

// inNamespace begins the update of an item that may not exist yet. It sets the keys by which the
// namespace's index lists the item.
func (t *Change) inNamespace(key schema.Key) *client.Expression {
	e := &client.Expression{}
	e.SetIfAbsent(schema.AttrGSI4PK, schema.String(t.namespace))
	e.SetIfAbsent(schema.AttrGSI4SK, schema.String(key.PK))
	return e
}

// ConfiguredResources returns, in order, the resources that have limits of their own.
func (a *Admin) ConfiguredResources(ctx context.Context, consistent bool) ([]string, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	r, err := client.Get(ctx, a.Client, schema.ResourcesKey(a.config.Namespace), consistent,
		schema.ParseResources)
	if err != nil || r == nil {
		return nil, err
	}
	return r.Names, nil
}

// EntityConfigResources returns, in order, the resources for which entities have limits of their
// own, including [weir.DefaultResource].
func (a *Admin) EntityConfigResources(ctx context.Context, consistent bool) ([]string, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	key := schema.EntityConfigResourcesKey(a.config.Namespace)
	r, err := client.Get(ctx, a.Client, key, consistent, schema.ParseEntityConfigResources)
	if err != nil || r == nil {
		return nil, err
	}
	maps.DeleteFunc(r.Counts, func(_ string, n int64) bool { return n <= 0 })
	return slices.Sorted(maps.Keys(r.Counts)), nil
}

// MaxLimits is the largest number of limits of a place. A change of all of them is one write of
// each bucket item, and DynamoDB bounds the length of an expression.
const MaxLimits = 36

// checkLimitCount returns an error if a place has more than MaxLimits limits.
func checkLimitCount(field string, limits []weir.Limit) error {
	if len(limits) <= MaxLimits {
		return nil
	}
	return client.Fault(weir.Invalid, field, strconv.Itoa(len(limits)),
		fmt.Sprintf("is too many limits: an entity, a resource or the system can have at most %d on a DynamoDB table", MaxLimits))
}

// StoredLimits returns limits as configuration items store them: in whole units and seconds.
func StoredLimits(limits []weir.Limit) ([]schema.Limit, error) {
	out := make([]schema.Limit, len(limits))
	for i, l := range limits {
		if schema.UsageKeeps(l.Name) {
			return nil, client.Fault(weir.Invalid, "limits."+l.Name, l.Name,
				"cannot be the name of a limit on a DynamoDB table: its usage could not be counted, because the "+
					"items with the usage have an attribute of this name")
		}
		if l.RefillPeriod%time.Second != 0 {
			return nil, client.Fault(weir.Invalid, "limits."+l.Name+".refill_period", l.RefillPeriod.String(),
				"must be whole seconds on a DynamoDB table")
		}
		out[i] = schema.Limit{
			Name: l.Name, Capacity: l.Capacity, Refill: l.RefillAmount,
			Seconds: int64(l.RefillPeriod / time.Second),
		}
	}
	return out, nil
}
