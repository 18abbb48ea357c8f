package replay

// LimitCompared is a row of two reports: limits of the same entity, resource and name.
type LimitCompared struct {
	Entity   string `json:"entity,omitempty"`
	Group    Group  `json:"group,omitempty"`
	Resource string `json:"resource,omitempty"`
	Limit    string `json:"limit"`
	// First and Second are the rows. One of them is absent where only the other file has the limit.
	// Their kinds may differ.
	First  *LimitReport `json:"first,omitempty"`
	Second *LimitReport `json:"second,omitempty"`
}

// compareLimits puts the rows of two reports side by side: those of the first in their order, each
// followed by those of the second alone that stand behind it there.
func compareLimits(first, second []*LimitReport) []*LimitCompared {
	partner := matchLimits(first, second)
	taken := make([]bool, len(second))
	for _, k := range partner {
		if k >= 0 {
			taken[k] = true
		}
	}
	out := []*LimitCompared{}
	next := 0
	alone := func(until int) {
		for ; next < until; next++ {
			if !taken[next] {
				out = append(out, newLimitCompared(nil, second[next]))
			}
		}
	}
	for i, l := range first {
		if k := partner[i]; k >= 0 {
			alone(k)
			out = append(out, newLimitCompared(l, second[k]))
		} else {
			out = append(out, newLimitCompared(l, nil))
		}
	}
	alone(len(second))
	return out
}

// matchLimits finds for each row of the first report the row of the second; -1 for none. Where
// several have the same name, those of the same kind belong together.
func matchLimits(first, second []*LimitReport) []int {
	partner, free := make([]int, len(first)), map[rowKey][]int{}
	for i := range partner {
		partner[i] = -1
	}
	for _, exact := range []bool{true, false} {
		clear(free)
		taken := map[int]bool{}
		for _, k := range partner {
			taken[k] = true
		}
		for k, l := range second {
			if !taken[k] {
				key := l.key(exact)
				free[key] = append(free[key], k)
			}
		}
		for i, l := range first {
			key := l.key(exact)
			if rest := free[key]; partner[i] < 0 && len(rest) > 0 {
				partner[i], free[key] = rest[0], rest[1:]
			}
		}
	}
	return partner
}

// key is what a row has in common with another one: all, or all but how it limits.
func (l *LimitReport) key(exact bool) rowKey {
	key := rowKey{group: l.Group, entity: l.Entity, resource: l.Resource, limit: l.Limit}
	if exact {
		key.kind, key.shadow = l.Kind, l.Shadow
	}
	return key
}

func newLimitCompared(first, second *LimitReport) *LimitCompared {
	l := first
	if l == nil {
		l = second
	}
	return &LimitCompared{
		Entity: l.Entity, Group: l.Group, Resource: l.Resource, Limit: l.Limit,
		First: first, Second: second,
	}
}
