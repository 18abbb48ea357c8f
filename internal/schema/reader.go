package schema

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// itemReader decodes an item attribute by attribute. It keeps the first error. The attributes that
// are left at the end become Extra.
type itemReader struct {
	item Item // as it was read
	rest Item // the attributes that were not taken yet
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

// fail notes that an attribute is malformed, unless there is an error already.
func (r *itemReader) fail(name, reason string) {
	if r.err == nil && reason != "" {
		r.err = malformed(r.item, name, reason)
	}
}

// keyError notes the error of a part of the key, unless there is an error already.
func (r *itemReader) keyError(err error) {
	if r.err == nil {
		r.err = err
	}
}

// take returns an attribute and removes it from rest.
func (r *itemReader) take(name string) (types.AttributeValue, bool) {
	value, ok := r.rest[name]
	delete(r.rest, name)
	return value, ok
}

// optional decodes an attribute that may be missing.
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

// required decodes an attribute that must exist.
func required[T any](r *itemReader, name string, read func(types.AttributeValue) (T, string)) T {
	if _, ok := r.rest[name]; !ok {
		r.fail(name, "is missing")
	}
	return optional(r, name, read)
}

// optionalSame checks an attribute that repeats a part of the key.
func (r *itemReader) optionalSame(name, want string) {
	if value, ok := r.take(name); ok {
		r.fail(name, same(value, want))
	}
}

// drop removes index keys from rest: encoding the item computes them again.
func (r *itemReader) drop(names ...string) {
	for _, name := range names {
		delete(r.rest, name)
	}
}

// names returns the attributes in rest, in order.
func (r *itemReader) names() []string { return slices.Sorted(maps.Keys(r.rest)) }

// extra returns rest; nil if it is empty.
func (r *itemReader) extra() Item {
	if len(r.rest) == 0 {
		return nil
	}
	return r.rest
}

// newItem begins an item with its extra attributes, its key, and its keys in GSI4, which lists
// every item of a namespace.
func newItem(extra Item, key Key, ns string) Item {
	item := make(Item, len(extra)+16)
	maps.Copy(item, extra)
	item[AttrPK], item[AttrSK] = String(key.PK), String(key.SK)
	item[AttrGSI4PK], item[AttrGSI4SK] = String(ns), String(key.PK)
	return item
}
