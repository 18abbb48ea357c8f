package schema

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// itemReader takes an item apart, attribute by attribute. It keeps the first error; what nobody
// took is the item's Extra.
type itemReader struct {
	item Item // as it was read
	rest Item // without what was taken
	key  Key
	err  error
}

func newReader(item Item) *itemReader {
	r := &itemReader{item: item, rest: maps.Clone(item)}
	r.key, r.err = KeyOf(item)
	delete(r.rest, AttrPK)
	delete(r.rest, AttrSK)
	return r
}

// fail says that an attribute is wrong, unless another was before it.
func (r *itemReader) fail(name, reason string) {
	if r.err == nil && reason != "" {
		r.err = malformed(r.item, name, reason)
	}
}

// keyError keeps the error of a part of the key.
func (r *itemReader) keyError(err error) {
	if r.err == nil {
		r.err = err
	}
}

// take returns an attribute and takes it off the rest.
func (r *itemReader) take(name string) (types.AttributeValue, bool) {
	value, ok := r.rest[name]
	delete(r.rest, name)
	return value, ok
}

// optional reads an attribute that may be missing.
func optional[T any](r *itemReader, name string, read func(types.AttributeValue) (T, string)) T {
	var zero T
	value, ok := r.take(name)
	if !ok {
		return zero
	}
	v, reason := read(value)
	r.fail(name, reason)
	return v
}

// required reads an attribute that must be there.
func required[T any](r *itemReader, name string, read func(types.AttributeValue) (T, string)) T {
	if _, ok := r.rest[name]; !ok {
		r.fail(name, "is missing")
	}
	return optional(r, name, read)
}

// optionalSame checks an attribute that repeats what the key says.
func (r *itemReader) optionalSame(name, want string) {
	if value, ok := r.take(name); ok {
		r.fail(name, same(value, want))
	}
}

// drop takes index keys off the rest: writing the item makes them anew.
func (r *itemReader) drop(names ...string) {
	for _, name := range names {
		delete(r.rest, name)
	}
}

// names are the attributes that nobody took, in order.
func (r *itemReader) names() []string { return slices.Sorted(maps.Keys(r.rest)) }

// extra is what nobody took; nil if nothing.
func (r *itemReader) extra() Item {
	if len(r.rest) == 0 {
		return nil
	}
	return r.rest
}

// newItem starts an item: what weir does not know, the key, and the place in GSI4, where every item
// of a namespace must be found.
func newItem(extra Item, key Key, ns string) Item {
	item := make(Item, len(extra)+16)
	maps.Copy(item, extra)
	item[AttrPK], item[AttrSK] = String(key.PK), String(key.SK)
	item[AttrGSI4PK], item[AttrGSI4SK] = String(ns), String(key.PK)
	return item
}
