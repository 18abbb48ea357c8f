package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-limiter/weir"
)

// ready asks the service which limits apply, so that a mistake ends a run before its first call.
// Explain charges nothing. Of numbered entities the first and the last are asked for.
func ready(ctx context.Context, s weir.Service, mix []Template) ([]*readied, error) {
	var out []*readied
	var errs []error
	for i := range mix {
		t := &mix[i]
		slots := map[string]bool{}
		err := t.explain(ctx, s, t.Entity.name(0), slots)
		if last := t.Entity.count() - 1; err == nil && last > 0 {
			err = t.explain(ctx, s, t.Entity.name(last), slots)
		}
		if errors.Is(err, weir.Unavailable) || ctx.Err() != nil {
			return nil, err // the next one would not be answered either
		}
		errs = append(errs, err)
		out = append(out, newReadied(t, slots))
	}
	return out, errors.Join(errs...)
}

// explain checks the costs against the limits of one entity, and notes which of them are slots.
func (t *Template) explain(
	ctx context.Context, s weir.Service, entity string, slots map[string]bool,
) error {
	explained, err := s.Explain(ctx, entity, t.Resource)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	configured := false
	for e := explained; e != nil; e = e.Parent {
		for i := range e.Limits {
			l := &e.Limits[i]
			configured, known[l.Name] = true, true
			if l.Kind == weir.Concurrency {
				slots[l.Name] = true
			}
			if err := t.fits(l, e.Entity); err != nil {
				return err
			}
		}
	}
	if !configured {
		return &weir.Error{
			Code: weir.NoLimits, Field: "entity", Value: entity,
			Reason: fmt.Sprintf("nothing is configured for resource %q", t.Resource),
		}
	}
	for _, a := range t.Costs {
		if !known[a.Limit] {
			return &weir.Error{
				Code: weir.UnknownLimit, Field: "costs." + a.Limit, Value: a.text(),
				Reason: fmt.Sprintf("neither %q nor an entity that it cascades to has such a limit on %q",
					entity, t.Resource),
			}
		}
	}
	return nil
}

// fits refuses a cost that a limit can never hold, however empty it is.
func (t *Template) fits(l *weir.Limit, entity string) error {
	for _, a := range t.Costs {
		if a.Limit == l.Name && a.Most > l.Capacity && !l.Shadow {
			return &weir.Error{
				Code: weir.NeverSatisfiable, Field: "costs." + a.Limit, Value: a.text(),
				Reason: fmt.Sprintf("%s/%s can hold at most %d", entity, t.Resource, l.Capacity),
			}
		}
	}
	return nil
}

func (a Amount) text() string {
	if a.Least == a.Most {
		return fmt.Sprint(a.Least)
	}
	return fmt.Sprintf("%d..%d", a.Least, a.Most)
}
