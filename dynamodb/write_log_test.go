package dynamodb

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// bucketUpdate is an UpdateItem of a bucket item, parsed into clauses.
type bucketUpdate struct {
	in       ddb.UpdateItemInput
	id       schema.BucketID
	sets     []string
	adds     []string
	removes  []string
	requires []string
	together bool // part of a transaction
}

// The aliases in an expression, as client.Expression writes them.
var (
	nameAlias  = regexp.MustCompile(`#n\d+`)
	valueAlias = regexp.MustCompile(`:v\d+`)
)

// takeApart parses an update of a bucket item; nil if the call is another one.
func takeApart(input any) *bucketUpdate {
	in, ok := input.(*ddb.UpdateItemInput)
	if !ok || in.UpdateExpression == nil {
		return nil
	}
	id, err := schema.ParseBucketPK(client.TextOf(in.Key, schema.AttrPK))
	if err != nil {
		return nil
	}
	u := &bucketUpdate{in: *in, id: id}
	u.in.ExpressionAttributeNames = maps.Clone(in.ExpressionAttributeNames)
	u.in.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
	clause := &u.sets
	for word := range strings.FieldsSeq(strings.ReplaceAll(*in.UpdateExpression, ",", " , ")) {
		switch word {
		case "SET":
			clause = &u.sets
		case "ADD":
			clause = &u.adds
		case "REMOVE":
			clause = &u.removes
		case ",":
			*clause = append(*clause, "")
			continue
		default:
			last := len(*clause) - 1
			(*clause)[last] = strings.TrimSpace((*clause)[last] + " " + word)
			continue
		}
		*clause = append(*clause, "")
	}
	if in.ConditionExpression == nil {
		return u
	}
	for part := range strings.SplitSeq(*in.ConditionExpression, " AND ") {
		last := len(u.requires) - 1
		if last >= 0 && strings.Contains(u.requires[last], " BETWEEN ") && strings.HasPrefix(part, ":") {
			u.requires[last] += " AND " + part
			continue
		}
		u.requires = append(u.requires, part)
	}
	return u
}

// input returns the update as a request, with the aliases that are still used.
func (u *bucketUpdate) input() *ddb.UpdateItemInput {
	e := &client.Expression{Set: u.sets, Add: u.adds, Remove: u.removes, Conditions: u.requires}
	in := u.in
	in.UpdateExpression, in.ConditionExpression = e.Update(), e.Condition()
	if *in.UpdateExpression == "" {
		in.UpdateExpression = nil
	}
	all := strings.Join(slices.Concat(u.sets, u.adds, u.removes, u.requires), " ")
	used := make(map[string]bool)
	for _, a := range append(nameAlias.FindAllString(all, -1), valueAlias.FindAllString(all, -1)...) {
		used[a] = true
	}
	maps.DeleteFunc(in.ExpressionAttributeNames, func(a, _ string) bool { return !used[a] })
	maps.DeleteFunc(in.ExpressionAttributeValues, func(a string, _ types.AttributeValue) bool { return !used[a] })
	if len(in.ExpressionAttributeValues) == 0 {
		in.ExpressionAttributeValues = nil
	}
	return &in
}

// attribute returns the first attribute that a clause names.
func (u *bucketUpdate) attribute(clause string) string {
	return u.in.ExpressionAttributeNames[nameAlias.FindString(clause)]
}

// value returns the first number of a clause.
func (u *bucketUpdate) value(clause string) int64 {
	n, err := schema.Int64(u.in.ExpressionAttributeValues[valueAlias.FindString(clause)])
	if err != nil {
		return 0
	}
	return n
}

// change replaces the first number of a clause.
func (u *bucketUpdate) change(clause string, n int64) {
	u.in.ExpressionAttributeValues[valueAlias.FindString(clause)] = schema.Number(n)
}

// spell returns a clause with its names and numbers in place of the aliases.
func (u *bucketUpdate) spell(clause string) string {
	clause = nameAlias.ReplaceAllStringFunc(clause, func(a string) string {
		return u.in.ExpressionAttributeNames[a]
	})
	return valueAlias.ReplaceAllStringFunc(clause, func(a string) string {
		n, err := schema.Int64(u.in.ExpressionAttributeValues[a])
		if err != nil {
			return a
		}
		return strconv.FormatInt(n, 10)
	})
}

// refills reports whether the update moves the time of the refill, as a normal write does.
func (u *bucketUpdate) refills() bool {
	return slices.ContainsFunc(u.sets, func(c string) bool { return u.attribute(c) == schema.AttrRF })
}

// kind returns the kind of the write.
func (u *bucketUpdate) kind() string {
	switch {
	case u.refills():
		return "normal"
	case slices.ContainsFunc(u.sets, func(c string) bool { return u.attribute(c) == schema.AttrShardCount }):
		return "double"
	case slices.ContainsFunc(u.requires, func(c string) bool { return strings.Contains(c, " BETWEEN ") }):
		return "speculative"
	case slices.ContainsFunc(u.requires, func(c string) bool {
		_, field, ok := schema.ParseBucketAttribute(u.attribute(c))
		return ok && field == schema.FieldCapacity
	}):
		return "cold"
	}
	return "forced"
}

// writeLog records a process's writes of bucket items, in order.
type writeLog struct {
	mu    sync.Mutex
	lines []loggedWrite
}

// loggedWrite is one write, and whether the table refused it.
type loggedWrite struct {
	kind    string
	shard   int
	refused bool
	update  *bucketUpdate // nil for a new item
}

func (l *writeLog) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("test:log", l.handle), middleware.After)
	})
}

func (l *writeLog) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleInitialize(ctx, in)
	w := loggedWrite{refused: err != nil}
	if put, ok := in.Parameters.(*ddb.PutItemInput); ok {
		id, malformed := schema.ParseBucketPK(client.TextOf(put.Item, schema.AttrPK))
		if malformed != nil {
			return out, metadata, err
		}
		w.kind, w.shard = "create", id.Shard
	} else if w.update = takeApart(in.Parameters); w.update != nil {
		w.kind, w.shard = w.update.kind(), w.update.id.Shard
	} else {
		return out, metadata, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, w)
	return out, metadata, err
}

// take returns the writes since the last take.
func (l *writeLog) take() []loggedWrite {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// kinds formats the kinds of writes, such as "cold refused, create".
func kinds(writes []loggedWrite) string {
	var words []string
	for _, w := range writes {
		word := w.kind
		if w.shard > 0 {
			word += fmt.Sprintf(" on %d", w.shard)
		}
		if w.refused {
			word += " refused"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
