package broken

import (
	"context"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// editor is a right store with something wrong in how its configuration is changed a piece at a time.
// A nil function is the right one.
type editor struct {
	*store
	weir.ConfigEditor
	weir.EntityReader
	weir.SubjectLister
	set      func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error
	declare  func(ctx context.Context, now time.Time, name, parent string, cascade bool) error
	remove   func(ctx context.Context, now time.Time, name string) error
	list     func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
	entities func(ctx context.Context, now time.Time, resource string) ([]string, error)
}

func editing(spoil func(e *editor)) func(weir.Backend) weir.Backend {
	return func(b weir.Backend) weir.Backend {
		e := &editor{store: of(func(*store) {})(b).(*store)}
		e.ConfigEditor, _ = b.(weir.ConfigEditor)
		e.EntityReader, _ = b.(weir.EntityReader)
		e.SubjectLister, _ = b.(weir.SubjectLister)
		spoil(e)
		return e
	}
}

func (e *editor) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	if e.set != nil {
		return e.set(ctx, now, at, limits)
	}
	return e.ConfigEditor.WriteLimits(ctx, now, at, limits)
}

func (e *editor) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	if e.declare != nil {
		return e.declare(ctx, now, name, parent, cascade)
	}
	return e.ConfigEditor.WriteEntity(ctx, now, name, parent, cascade)
}

func (e *editor) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	if e.remove != nil {
		return e.remove(ctx, now, name)
	}
	return e.ConfigEditor.DeleteEntity(ctx, now, name)
}

func (e *editor) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	if e.list != nil {
		return e.list(ctx, q)
	}
	return e.EntityReader.ListEntities(ctx, q)
}

func (e *editor) Resources(ctx context.Context, now time.Time, entity string) ([]string, error) {
	return e.SubjectLister.Resources(ctx, now, entity)
}

func (e *editor) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	if e.entities != nil {
		return e.entities(ctx, now, resource)
	}
	return e.SubjectLister.Entities(ctx, now, resource)
}

// placingStores put limits in the wrong place.
func placingStores() []Store {
	return []Store{
		{Name: "limits are added to those of the place", Breaks: "8.7", Wrap: editing(func(e *editor) {
			e.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
				if len(limits) == 0 {
					return nil
				}
				return e.ConfigEditor.WriteLimits(ctx, now, at, limits)
			}
		})},
		{Name: "an entity's default limits are its limits on one resource", Breaks: "8.7",
			Wrap: editing(func(e *editor) {
				e.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
					if at.Entity != "" {
						at.Resource = weir.DefaultResource
					}
					return e.ConfigEditor.WriteLimits(ctx, now, at, limits)
				}
			})},
		{Name: "a resource's limits are everybody's", Breaks: "8.7", Wrap: editing(func(e *editor) {
			e.set = func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error {
				if at.Entity == "" {
					at.Resource = ""
				}
				return e.ConfigEditor.WriteLimits(ctx, now, at, limits)
			}
		})},
	}
}

// namingStores are wrong about entities.
func namingStores() []Store {
	return []Store{
		{Name: "a changed parent drops the limits", Breaks: "9.3", Wrap: editing(func(e *editor) {
			e.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				_ = e.ConfigEditor.DeleteEntity(ctx, now, name) // somebody's parent stays
				return e.ConfigEditor.WriteEntity(ctx, now, name, parent, cascade)
			}
		})},
		{Name: "a missing parent is declared by the way", Breaks: "9.3", Wrap: editing(func(e *editor) {
			e.declare = func(ctx context.Context, now time.Time, name, parent string, cascade bool) error {
				if known, err := e.ReadEntity(ctx, parent); parent != "" && err == nil && known == nil {
					_ = e.ConfigEditor.WriteEntity(ctx, now, parent, "", false)
				}
				return e.ConfigEditor.WriteEntity(ctx, now, name, parent, cascade)
			}
		})},
		{Name: "a parent is deleted under its children", Breaks: "9.3", Wrap: editing(func(e *editor) {
			e.remove = func(ctx context.Context, now time.Time, name string) error {
				page, err := e.EntityReader.ListEntities(ctx, &weir.EntityQuery{Parent: name, Size: 1000})
				if err != nil {
					return err
				}
				for _, child := range page.Names {
					if err := e.ConfigEditor.WriteEntity(ctx, now, child, "", false); err != nil {
						return err
					}
				}
				return e.ConfigEditor.DeleteEntity(ctx, now, name)
			}
		})},
		{Name: "deleting what is not there is done", Breaks: "9.3", Wrap: editing(func(e *editor) {
			e.remove = func(ctx context.Context, now time.Time, name string) error {
				if known, err := e.ReadEntity(ctx, name); err == nil && known == nil {
					return nil
				}
				return e.ConfigEditor.DeleteEntity(ctx, now, name)
			}
		})},
	}
}

// listingStores are wrong in what they list.
func listingStores() []Store {
	return []Store{
		{Name: "a list ends with its first page", Breaks: "9.3", Wrap: editing(func(e *editor) {
			e.list = func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
				page, err := e.EntityReader.ListEntities(ctx, q)
				if err == nil {
					page.Next = ""
				}
				return page, err
			}
		})},
		{Name: "children are found by their names", Breaks: "9.3", Wrap: editing(func(e *editor) {
			e.list = func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
				all := *q
				all.Parent = ""
				page, err := e.EntityReader.ListEntities(ctx, &all)
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
		{Name: "who only has limits does not use a resource", Breaks: "9.3", Wrap: editing(func(e *editor) {
			e.entities = func(ctx context.Context, now time.Time, resource string) ([]string, error) {
				names, err := e.SubjectLister.Entities(ctx, now, resource)
				var out []string
				for _, name := range names {
					if known, err := e.ReadEntity(ctx, name); err == nil && known == nil {
						out = append(out, name)
					}
				}
				return out, err
			}
		})},
	}
}
