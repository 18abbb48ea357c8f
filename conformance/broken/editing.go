package broken

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// placingStores returns stores that put limits in the wrong place.
func placingStores() []storeVariant {
	return []storeVariant{
		{"limits are added to those of the place", "8.7", func(s *wrongStore) {
			s.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
				if len(limits) == 0 {
					return nil
				}
				return s.fullStore.WriteLimits(ctx, now, at, limits)
			}
		}},
		{"an entity's default limits are its limits on one resource", "8.7", func(s *wrongStore) {
			s.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
				if at.Entity != "" {
					at.Resource = weir.DefaultResource
				}
				return s.fullStore.WriteLimits(ctx, now, at, limits)
			}
		}},
		{"a resource's limits are everybody's", "8.7", func(s *wrongStore) {
			s.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
				if at.Entity == "" {
					at.Resource = ""
				}
				return s.fullStore.WriteLimits(ctx, now, at, limits)
			}
		}},
	}
}

// namingStores returns stores that are wrong about entities.
func namingStores() []storeVariant {
	return []storeVariant{
		{"a changed parent drops the limits", "9.3", func(s *wrongStore) {
			s.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				// This fails for an entity that is the parent of another.
				_ = s.fullStore.DeleteEntity(ctx, now, name)
				return s.fullStore.WriteEntity(ctx, now, name, parent, cascade)
			}
		}},
		{"a missing parent is declared by the way", "9.3", func(s *wrongStore) {
			s.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				if known, err := s.fullStore.ReadEntity(ctx, parent); parent != "" && err == nil && known == nil {
					_ = s.fullStore.WriteEntity(ctx, now, parent, "", false)
				}
				return s.fullStore.WriteEntity(ctx, now, name, parent, cascade)
			}
		}},
		{"a cycle is called a cascade of too many levels", "9.3", func(s *wrongStore) {
			s.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				err := s.fullStore.WriteEntity(ctx, now, name, parent, cascade)
				if e, ok := errors.AsType[*weir.Error](err); ok && strings.Contains(e.Reason, "cycle") {
					return &weir.Error{Code: e.Code, Field: e.Field, Value: e.Value, Reason: "has too many levels"}
				}
				return err
			}
		}},
		{"a parent is deleted under its children", "9.3", func(s *wrongStore) {
			s.remove = func(ctx context.Context, now time.Time, name string) error {
				page, err := s.fullStore.ListEntities(ctx, &weir.EntityQuery{Parent: name, Size: 1000})
				if err != nil {
					return err
				}
				for _, child := range page.Names {
					if err := s.fullStore.WriteEntity(ctx, now, child, "", false); err != nil {
						return err
					}
				}
				return s.fullStore.DeleteEntity(ctx, now, name)
			}
		}},
		{"deleting what is not there is done", "9.3", func(s *wrongStore) {
			s.remove = func(ctx context.Context, now time.Time, name string) error {
				if known, err := s.fullStore.ReadEntity(ctx, name); err == nil && known == nil {
					return nil
				}
				return s.fullStore.DeleteEntity(ctx, now, name)
			}
		}},
	}
}

// listingStores returns stores that list the wrong things.
func listingStores() []storeVariant {
	return []storeVariant{
		{"a list ends with its first page", "9.3", func(s *wrongStore) {
			s.list = func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
				page, err := s.fullStore.ListEntities(ctx, q)
				if err == nil {
					page.Next = ""
				}
				return page, err
			}
		}},
		{"children are found by their names", "9.3", func(s *wrongStore) {
			s.list = func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
				all := *q
				all.Parent = ""
				page, err := s.fullStore.ListEntities(ctx, &all)
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
		}},
		{"an entity with limits only does not use a resource", "9.3", func(s *wrongStore) {
			s.entities = func(ctx context.Context, now time.Time, resource string) ([]string, error) {
				names, err := s.fullStore.Entities(ctx, now, resource)
				var out []string
				for _, name := range names {
					if known, err := s.fullStore.ReadEntity(ctx, name); err == nil && known == nil {
						out = append(out, name)
					}
				}
				return out, err
			}
		}},
	}
}
