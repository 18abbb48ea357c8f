package httpapi

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// parseQuery reads a query whose parameters must be among the known ones, each at most once and not
// empty. Every mistake is told.
func parseQuery(raw string, known ...string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("query", raw, "cannot be read: "+err.Error())
	}
	query := make(map[string]string, len(values))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		switch {
		case len(errs) == maxMistakes:
		case !slices.Contains(known, name):
			errs = append(errs, invalid(shorten(name), given[0], "is no parameter here"))
		case len(given) > 1:
			errs = append(errs, invalid(name, given[1], "is given twice"))
		case given[0] == "":
			errs = append(errs, invalid(name, "", "must not be empty"))
		default:
			query[name] = given[0]
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return query, errors.Join(errs...)
}

// pageSize reads the parameter size.
func pageSize(query map[string]string) (int, error) {
	text, ok := query["size"]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 1 || n > 1000 {
		return 0, invalid("size", text, "must be between 1 and 1000")
	}
	return int(n), nil
}
