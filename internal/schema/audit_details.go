package schema

// The details of audit events, as the Python library has them for each action.

// CreatedDetails are those of an entity that was made.
func CreatedDetails(e *Entity) map[string]any {
	metadata := e.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return map[string]any{
		AttrName: e.Name, AttrParent: orNil(e.Parent), AttrCascade: e.Cascade, AttrMetadata: metadata,
	}
}

// DeletedDetails are those of an entity of which some items were deleted; complete is false where
// some are left.
func DeletedDetails(items int64, complete bool) map[string]any {
	return map[string]any{"records_deleted": items, "complete": complete}
}

// ParentChangedDetails are those of an entity with another parent, of which some bucket items know.
// Either parent may be empty.
func ParentChangedDetails(before string, e *Entity, buckets int64) map[string]any {
	return map[string]any{
		"old_parent_id": orNil(before), AttrParent: orNil(e.Parent), AttrPGen: e.Generation,
		"buckets_stamped": buckets,
	}
}

// LimitsDetails are those of limits that were set for an entity or a resource.
func LimitsDetails(limits []Limit) map[string]any {
	list := make([]any, len(limits))
	for i, l := range limits {
		list[i] = map[string]any{
			"name": l.Name, "capacity": l.Capacity,
			"refill_amount": l.Refill, "refill_period_seconds": l.Seconds,
		}
	}
	return map[string]any{"limits": list}
}

// SystemLimitsDetails are those of limits that were set for the namespace, with what is to be done
// while the table does not answer: empty if nothing was said.
func SystemLimitsDetails(limits []Limit, onUnavailable string) map[string]any {
	details := LimitsDetails(limits)
	details[AttrOnUnavailable] = orNil(onUnavailable)
	return details
}

// SystemDeletedDetails are those of the namespace's limits that were deleted. Deleting those of a
// resource or an entity has no details.
func SystemDeletedDetails(limits []Limit, onUnavailable string) map[string]any {
	list := make([]any, len(limits))
	for i, l := range limits {
		list[i] = l.Name
	}
	return map[string]any{"limits": list, AttrOnUnavailable: orNil(onUnavailable)}
}

// AccessDetails are those of a level that says something else about access, of which some bucket
// items know. The action is [ActionLimitsSet].
func AccessDetails(access Access, buckets int64) map[string]any {
	var value any
	switch access {
	case AccessOff, AccessOn:
		value = access == AccessOff
	case AccessBypass:
		value = bypassed
	}
	return map[string]any{AttrDisabled: value, "buckets_stamped": buckets}
}

// CascadeDetails are those of a level that says something else about cascade; nil if it does not
// say any more. The action is [ActionLimitsSet].
func CascadeDetails(cascade *bool, buckets int64) map[string]any {
	var value any
	if cascade != nil {
		value = *cascade
	}
	return map[string]any{AttrCascade: value, "buckets_stamped": buckets}
}

// OperationDetails are those of a reset or a top-up.
func OperationDetails(o *Operation) map[string]any {
	amounts := make(map[string]any, len(o.Amounts))
	for name, n := range o.Amounts {
		amounts[name] = n
	}
	return map[string]any{attrAmounts: amounts, attrShards: o.Shards}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
