package broken

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// placingStores put limits in the wrong place.
func placingStores() []Store {
	return []Store{
		{Name: "limits are added to those of the place", Breaks: "8.7", Wrap: of(func(s *store) {
			s.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
				if len(limits) == 0 {
					return nil
				}
				return s.ConfigEditor.WriteLimits(ctx, now, at, limits)
			}
		})},
		{Name: "an entity's default limits are its limits on one resource", Breaks: "8.7",
			Wrap: of(func(s *store) {
				s.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
					if at.Entity != "" {
						at.Resource = weir.DefaultResource
					}
					return s.ConfigEditor.WriteLimits(ctx, now, at, limits)
				}
			})},
		{Name: "a resource's limits are everybody's", Breaks: "8.7", Wrap: of(func(s *store) {
			s.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
				if at.Entity == "" {
					at.Resource = ""
				}
				return s.ConfigEditor.WriteLimits(ctx, now, at, limits)
			}
		})},
	}
}

// namingStores are wrong about entities.
func namingStores() []Store {
	return []Store{
		{Name: "a changed parent drops the limits", Breaks: "9.3", Wrap: of(func(s *store) {
			s.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				_ = s.ConfigEditor.DeleteEntity(ctx, now, name) // somebody's parent stays
				return s.ConfigEditor.WriteEntity(ctx, now, name, parent, cascade)
			}
		})},
		{Name: "a missing parent is declared by the way", Breaks: "9.3", Wrap: of(func(s *store) {
			s.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				if known, err := s.ReadEntity(ctx, parent); parent != "" && err == nil && known == nil {
					_ = s.ConfigEditor.WriteEntity(ctx, now, parent, "", false)
				}
				return s.ConfigEditor.WriteEntity(ctx, now, name, parent, cascade)
			}
		})},
		{Name: "a cycle is called a cascade of too many levels", Breaks: "9.3", Wrap: of(func(s *store) {
			s.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				err := s.ConfigEditor.WriteEntity(ctx, now, name, parent, cascade)
				if e, ok := errors.AsType[*weir.Error](err); ok && strings.Contains(e.Reason, "cycle") {
					return &weir.Error{Code: e.Code, Field: e.Field, Value: e.Value, Reason: "has too many levels"}
				}
				return err
			}
		})},
		{Name: "a parent is deleted under its children", Breaks: "9.3", Wrap: of(func(s *store) {
			s.remove = func(ctx context.Context, now time.Time, name string) error {
				page, err := s.EntityReader.ListEntities(ctx, &weir.EntityQuery{Parent: name, Size: 1000})
				if err != nil {
					return err
				}
				for _, child := range page.Names {
					if err := s.ConfigEditor.WriteEntity(ctx, now, child, "", false); err != nil {
						return err
					}
				}
				return s.ConfigEditor.DeleteEntity(ctx, now, name)
			}
		})},
		{Name: "deleting what is not there is done", Breaks: "9.3", Wrap: of(func(s *store) {
			s.remove = func(ctx context.Context, now time.Time, name string) error {
				if known, err := s.ReadEntity(ctx, name); err == nil && known == nil {
					return nil
				}
				return s.ConfigEditor.DeleteEntity(ctx, now, name)
			}
		})},
	}
}

// listingStores are wrong in what they list.
func listingStores() []Store {
	return []Store{
		{Name: "a list ends with its first page", Breaks: "9.3", Wrap: of(func(s *store) {
			s.list = func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
				page, err := s.EntityReader.ListEntities(ctx, q)
				if err == nil {
					page.Next = ""
				}
				return page, err
			}
		})},
		{Name: "children are found by their names", Breaks: "9.3", Wrap: of(func(s *store) {
			s.list = func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
				all := *q
				all.Parent = ""
				page, err := s.EntityReader.ListEntities(ctx, &all)
				if err == nil && q.Parent != "" {
					var names []string
					for _, name := range page.Names {
						if strings.HasPrefix(name, q.Parent) {
							names = append(names, name)
						}
					}
					page.Names = names
				}
				return page, err
			}
		})},
		{Name: "who only has limits does not use a resource", Breaks: "9.3", Wrap: of(func(s *store) {
			s.entities = func(ctx context.Context, now time.Time, resource string) ([]string, error) {
				names, err := s.SubjectLister.Entities(ctx, now, resource)
				var out []string
				for _, name := range names {
					if known, err := s.ReadEntity(ctx, name); err == nil && known == nil {
						out = append(out, name)
					}
				}
				return out, err
			}
		})},
	}
}
