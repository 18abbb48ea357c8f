package dynamodb

import (
	"context"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// WriteLimits makes limits the only ones at a place; what else the place's item says stays. The
// item, the registry of such places, the declaration of the entity and the audit change together.
func (s *Store) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.end()
	if err := checkLimitCount("limits", limits); err != nil {
		return err
	}
	stored, err := storedLimits(limits)
	if err != nil {
		return err
	}
	if at.Entity != "" && schema.RegistryKeeps(at.Resource) {
		return fault(weir.Invalid, "resource", at.Resource, "cannot have limits of an entity: the table's "+
			"registry needs the name for itself")
	}
	err = s.changeConfig(ctx, now, func(ctx context.Context, t *configTransaction) error {
		return s.planLimits(ctx, t, at, stored)
	})
	if err != nil {
		return err
	}
	return s.afterConfigChange(ctx, configChange{kind: limitsChanged, at: at, now: now})
}

// planLimits says what has to be written, so that a place has these limits.
func (s *Store) planLimits(
	ctx context.Context, t *configTransaction, at weir.Subject, limits []schema.Limit,
) error {
	target := &schema.Config{Namespace: s.namespace, Entity: at.Entity, Resource: at.Resource}
	keys := []schema.Key{
		schema.SystemConfigKey(s.namespace), target.Key(), schema.EntityConfigResourcesKey(s.namespace),
	}
	if at.Entity != "" {
		keys = append(keys, schema.MetaKey(s.namespace, at.Entity))
	}
	items, err := s.batchGet(ctx, keys, true)
	if err != nil {
		return err
	}
	if err := t.setRetention(items[0]); err != nil {
		return err
	}
	old := items[1]
	if old != nil {
		if target, err = schema.ParseConfig(old); err != nil {
			return unreadable(err)
		}
	}
	had := parseLevel("", old).hasLimits()
	if len(limits) == 0 && !had {
		return nil
	}
	before := target.Limits
	target.SetLimits(limits)
	declared := at.Entity == "" || items[3] != nil
	if declared && reflect.DeepEqual(target.Item(), old) {
		return nil // as when a call is repeated whose answer was lost
	}
	e := unchangedElsewhere(old, target)
	gone := len(limits) == 0 && isEmpty(target)
	if gone {
		t.remove(target.Key(), e)
	} else {
		t.put(target.Item(), e)
	}
	switch {
	case at.Entity != "" && gone:
		if err := t.unregister(items[2], at.Resource); err != nil {
			return err
		}
	case at.Entity != "" && old == nil:
		t.register(at.Resource)
	case at.Entity == "" && at.Resource != "":
		t.listResource(at.Resource, len(limits) > 0)
	}
	if !declared && len(limits) > 0 {
		e, err := newEntity(s.namespace, at.Entity, t.now)
		if err != nil {
			return err
		}
		if err := t.declare(e); err != nil {
			return err
		}
	}
	return t.addLimitsEvent(at, target, before)
}

// addLimitsEvent adds the change of a place's limits to the audit.
func (t *configTransaction) addLimitsEvent(at weir.Subject, c *schema.Config, before []schema.Limit) error {
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

// WritePolicy makes p the system's policy, and leaves its limits.
func (s *Store) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.end()
	err := s.changeConfig(ctx, now, func(ctx context.Context, t *configTransaction) error {
		key := schema.SystemConfigKey(s.namespace)
		item, err := s.getItem(ctx, key, true)
		if err != nil {
			return err
		}
		if err := t.setRetention(item); err != nil {
			return err
		}
		system := &schema.Config{Namespace: s.namespace}
		if item != nil {
			if system, err = schema.ParseConfig(item); err != nil {
				return unreadable(err)
			}
		}
		if system.OnUnavailable == string(p) {
			return nil
		}
		system.OnUnavailable = string(p)
		e := &expression{}
		e.setText(schema.AttrOnUnavailable, string(p))
		e.setIfAbsent(schema.AttrConfigVersion, schema.Number(1))
		e.setIfAbsent(schema.AttrGSI4PK, schema.String(s.namespace))
		e.setIfAbsent(schema.AttrGSI4SK, schema.String(key.PK))
		t.update(key, e)
		return t.addAuditEvent(schema.ActionLimitsSet, schema.AuditSystem, "",
			schema.SystemLimitsDetails(system.Limits, system.OnUnavailable))
	})
	if err != nil {
		return err
	}
	return s.afterConfigChange(ctx, configChange{kind: policyChanged, now: now})
}

// setIfAbsent sets an attribute that is not there yet.
func (e *expression) setIfAbsent(attribute string, v types.AttributeValue) {
	a := e.name(attribute)
	e.set = append(e.set, a+" = if_not_exists("+a+", "+e.value(v)+")")
}

// requireUnchanged requires an attribute to be as it was read.
func (e *expression) requireUnchanged(read schema.Item, attribute string) {
	if v, ok := read[attribute]; ok {
		e.conditions = append(e.conditions, e.name(attribute)+" = "+e.value(v))
		return
	}
	e.absent(attribute)
}

// unchangedElsewhere is the condition under which an item may be replaced by what was made of it:
// everything that does not belong to its limits is still as it was read.
func unchangedElsewhere(read schema.Item, target *schema.Config) *expression {
	e := &expression{}
	if read == nil {
		e.absent(schema.AttrPK)
		return e
	}
	e.exists(schema.AttrPK)
	for _, a := range []string{
		schema.AttrDisabled, schema.AttrCascade, schema.AttrOnUnavailable, schema.AttrRetention,
	} {
		e.requireUnchanged(read, a)
	}
	for a := range target.Extra {
		if a != schema.AttrDisabled {
			e.requireUnchanged(read, a)
		}
	}
	return e
}

// isEmpty reports whether a configuration without limits need not be kept.
func isEmpty(c *schema.Config) bool {
	return c.Access == schema.AccessInherit && c.Cascade == nil && c.OnUnavailable == "" &&
		c.RetentionDays == 0 && len(c.Extra) == 0
}
