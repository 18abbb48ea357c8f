package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// actionMetadataSet is what the audit calls a change of an entity's name for people and metadata.
const actionMetadataSet = "entity_metadata_set"

// EntityMetadata returns an entity's name for people and what its users keep there: strings, bools,
// int64s, json.Numbers, nil, and maps and slices of them. One without a META is [weir.NotFound].
func (s *Store) EntityMetadata(
	ctx context.Context, name string,
) (display string, metadata map[string]any, err error) {
	if err := s.enter(); err != nil {
		return "", nil, err
	}
	defer s.running.end()
	item, err := s.getItem(ctx, schema.MetaKey(s.namespace, name), consistent(ctx))
	if err != nil {
		return "", nil, err
	}
	e, err := parseEntity(item)
	if err != nil {
		return "", nil, err
	}
	if e == nil {
		return "", nil, fault(weir.NotFound, "entity", name, "is not declared")
	}
	return e.Name, e.Metadata, nil
}

// EditEntity changes an entity's name for people and its metadata. Edit gets what is stored and
// returns what shall be; where somebody else was faster it is asked again with what is stored by
// then, so that no change is lost. An error of its own ends the edit and is returned.
func (s *Store) EditEntity(
	ctx context.Context, now time.Time, name string,
	edit func(display string, metadata map[string]any) (string, map[string]any, error),
) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.end()
	return s.changeConfig(ctx, now, func(ctx context.Context, t *configTransaction) error {
		items, err := s.batchGet(ctx, []schema.Key{
			schema.MetaKey(s.namespace, name), schema.SystemConfigKey(s.namespace),
		}, true)
		if err != nil {
			return err
		}
		if err := t.setRetention(items[1]); err != nil {
			return err
		}
		e, err := parseEntity(items[0])
		if err != nil {
			return err
		}
		if e == nil {
			return fault(weir.NotFound, "entity", name, "is not declared")
		}
		display, metadata, err := edit(e.Name, e.Metadata)
		if err != nil {
			return err
		}
		stored, err := schema.EncodeMap(metadata)
		if err != nil {
			return &weir.Error{Code: weir.Invalid, Field: "metadata", Reason: "cannot be stored", Err: err}
		}
		x := &expression{}
		x.exists(schema.AttrPK)
		for _, a := range []string{
			schema.AttrVersion, schema.AttrPGen, schema.AttrPInc, schema.AttrParent, schema.AttrCascade,
		} {
			x.requireUnchanged(items[0], a)
		}
		x.setText(schema.AttrName, display)
		x.set = append(x.set, x.name(schema.AttrMetadata)+" = "+x.value(stored))
		x.setNumber(schema.AttrVersion, e.Version+1)
		t.update(e.Key(), x)
		return t.addAuditEvent(actionMetadataSet, name, "", map[string]any{
			schema.AttrName: display, schema.AttrMetadata: metadata,
		})
	})
}
