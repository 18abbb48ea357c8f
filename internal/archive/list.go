package archive

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// level is a level of the keys below the root.
type level struct {
	// layout is that of the prefix up to the level.
	layout              string
	years, months, days int // how long it is
}

func levels() []level {
	return []level{
		{"year=2006/", 1, 0, 0},
		{"year=2006/month=01/", 0, 1, 0},
		{"year=2006/month=01/day=02/", 0, 0, 1},
	}
}

// Days yields the days that have objects, newest first: those that contain an instant from from,
// and before to. A zero instant is no bound. root begins the keys, such as "audit/". It lists
// only years and months between the two. After an error it ends.
func (a *Archive) Days(
	ctx context.Context, root string, from, to time.Time,
) iter.Seq2[time.Time, error] {
	return func(yield func(time.Time, error) bool) {
		w := walk{of: a, root: root, from: from, to: to, yield: yield}
		w.down(ctx, "", levels())
	}
}

// walk is a walk over the days of an archive.
type walk struct {
	of       *Archive
	root     string
	from, to time.Time
	yield    func(time.Time, error) bool
}

// down yields the days below a prefix, and reports whether to go on.
func (w *walk) down(ctx context.Context, below string, rest []level) bool {
	found, err := w.of.folders(ctx, w.root, below)
	if err != nil {
		w.yield(time.Time{}, err)
		return false
	}
	at := rest[0]
	slices.Sort(found)
	for _, folder := range slices.Backward(found) {
		start, err := time.Parse(at.layout, folder)
		if err != nil || start.Format(at.layout) != folder {
			continue // another program's
		}
		end := start.AddDate(at.years, at.months, at.days)
		if !w.to.IsZero() && !start.Before(w.to) || !end.After(w.from) {
			continue
		}
		more := false
		if len(rest) == 1 {
			more = w.yield(start, nil)
		} else {
			more = w.down(ctx, folder, rest[1:])
		}
		if !more {
			return false
		}
	}
	return true
}

// folders returns the folders directly below a prefix, without what comes before the root's end.
func (a *Archive) folders(ctx context.Context, root, below string) ([]string, error) {
	var found []string
	in := &s3.ListObjectsV2Input{
		Bucket: &a.Bucket, Prefix: new(a.Prefix + root + below), Delimiter: new("/"),
	}
	for page, err := range a.pages(ctx, in) {
		if err != nil {
			return nil, err
		}
		for _, p := range page.CommonPrefixes {
			found = append(found, strings.TrimPrefix(aws.ToString(p.Prefix), a.Prefix+root))
		}
	}
	return found, nil
}

// Objects yields the keys below a prefix, without the archive's own prefix, in their order.
func (a *Archive) Objects(ctx context.Context, below string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &a.Bucket, Prefix: new(a.Prefix + below)}
		for page, err := range a.pages(ctx, in) {
			if err != nil {
				yield("", err)
				return
			}
			for i := range page.Contents {
				if !yield(strings.TrimPrefix(aws.ToString(page.Contents[i].Key), a.Prefix), nil) {
					return
				}
			}
		}
	}
}

// pages yields the pages of a list. After an error it ends.
func (a *Archive) pages(
	ctx context.Context, in *s3.ListObjectsV2Input,
) iter.Seq2[*s3.ListObjectsV2Output, error] {
	return func(yield func(*s3.ListObjectsV2Output, error) bool) {
		list := s3.NewListObjectsV2Paginator(a.client, in)
		for list.HasMorePages() {
			page, err := a.nextPage(ctx, list)
			if err != nil {
				err = fmt.Errorf("list the archive: %w", a.classify("", err))
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

func (a *Archive) nextPage(
	ctx context.Context, list *s3.ListObjectsV2Paginator,
) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return list.NextPage(ctx)
}
