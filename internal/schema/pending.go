package schema

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	attrKind    = "kind"
	attrLevel   = "level"
	attrTarget  = "target"
	attrWritten = "written_ms"
	attrOwners  = "owners"
	attrLease   = "lease"
	attrFull    = "full"
)

// Pending is a change of configuration that bucket items may not have yet. The Python library's
// provisioner keeps one until it has told them all.
type Pending struct {
	Namespace string
	// Kind is what changed: disabled, cascade, soft or sync. Level and Target are where.
	Kind, Level, Target string
	// WrittenMS is when it was written last, in Unix milliseconds.
	WrittenMS int64
	// Owners are the runs that are to tell the items, by token.
	Owners map[string]PendingOwner
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// PendingOwner is a run's share of a change.
type PendingOwner struct {
	// LeaseMS is by when the run is certainly over, in Unix milliseconds.
	LeaseMS int64
	// Full is true for a run over everything that is declared.
	Full bool
}

// Item returns the item as it is stored.
func (p *Pending) Item() Item {
	item := newItem(p.Extra, PendingKey(p.Namespace, p.Kind, p.Level, p.Target), p.Namespace)
	item[attrKind] = String(p.Kind)
	item[attrLevel] = String(p.Level)
	item[attrTarget] = String(p.Target)
	setNumber(item, attrWritten, p.WrittenMS)
	if p.Owners != nil {
		owners := make(Item, len(p.Owners))
		for token, o := range p.Owners {
			owners[token] = &types.AttributeValueMemberM{
				Value: Item{attrLease: Number(o.LeaseMS), attrFull: Bool(o.Full)},
			}
		}
		item[attrOwners] = &types.AttributeValueMemberM{Value: owners}
	}
	return item
}

// ParsePending reads the item. One that cannot be read is a [*MalformedError].
func ParsePending(item Item) (*Pending, error) {
	r := newReader(item)
	ns, rest, err := SplitNamespace(r.key.PK)
	r.keyError(err)
	place, ok := strings.CutPrefix(r.key.SK, SKPendingPrefix)
	kind, place, _ := strings.Cut(place, "#")
	level, target, both := strings.Cut(place, "#")
	if !ok || !both || rest != systemPart {
		r.fail(AttrSK, "is no pending change's")
	}
	r.optionalSame(attrKind, kind)
	r.optionalSame(attrLevel, level)
	r.optionalSame(attrTarget, target)
	r.drop(AttrGSI4PK, AttrGSI4SK)
	p := &Pending{
		Namespace: ns, Kind: kind, Level: level, Target: target,
		WrittenMS: optional(r, attrWritten, number),
		Owners:    optional(r, attrOwners, pendingOwners),
	}
	if r.err != nil {
		return nil, r.err
	}
	p.Extra = r.extra()
	return p, nil
}

func pendingOwners(value types.AttributeValue) (owners map[string]PendingOwner, reason string) {
	v, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		return nil, "is no map"
	}
	owners = make(map[string]PendingOwner, len(v.Value))
	for token, entry := range v.Value {
		m, ok := entry.(*types.AttributeValueMemberM)
		if !ok {
			return nil, "is no map of maps"
		}
		var o PendingOwner
		if lease, ok := m.Value[attrLease]; ok {
			if o.LeaseMS, reason = number(lease); reason != "" {
				return nil, "has a lease that " + reason
			}
		}
		if full, ok := m.Value[attrFull]; ok {
			if o.Full, reason = truth(full); reason != "" {
				return nil, "has a mark that " + reason
			}
		}
		owners[token] = o
	}
	return owners, ""
}
