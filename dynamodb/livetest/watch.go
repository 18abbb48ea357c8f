package livetest

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Watch makes an SDK client log the credits of its writes of bucket items. It reads them from the
// requests themselves, and so logs what was written, not what was intended.
func Watch(log *Log) func(*ddb.Options) {
	watch := middleware.InitializeMiddlewareFunc("LiveTestWatch", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		before := micros()
		out, metadata, err := next.HandleInitialize(ctx, in)
		if err == nil {
			for _, r := range notes(in.Parameters) {
				r.Before, r.After = before, micros()
				log.Add(r)
			}
		}
		return out, metadata, err
	})
	return func(o *ddb.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return s.Initialize.Add(watch, middleware.Before)
		})
	}
}

// notes returns the records of the writes in a request.
func notes(request any) []*Record {
	switch in := request.(type) {
	case *ddb.UpdateItemInput:
		return noted(noteUpdate(in.Key, in.UpdateExpression, in.ConditionExpression,
			in.ExpressionAttributeNames, in.ExpressionAttributeValues))
	case *ddb.PutItemInput:
		return noted(notePut(in.Item))
	case *ddb.TransactWriteItemsInput:
		var all []*Record
		for _, one := range in.TransactItems {
			if u := one.Update; u != nil {
				all = append(all, noted(noteUpdate(u.Key, u.UpdateExpression, u.ConditionExpression,
					u.ExpressionAttributeNames, u.ExpressionAttributeValues))...)
			}
			if p := one.Put; p != nil {
				all = append(all, noted(notePut(p.Item))...)
			}
		}
		return all
	}
	return nil
}

func noted(r *Record) []*Record {
	if r == nil {
		return nil
	}
	return []*Record{r}
}

// notePut returns the record of a new item; nil if it is not a bucket item.
func notePut(item map[string]types.AttributeValue) *Record {
	if text(item["SK"]) != "#STATE" {
		return nil
	}
	r := &Record{
		Kind: Made, Item: text(item["PK"]), To: number(item["rf"]), Credit: make(map[string]int64),
	}
	for attribute, value := range item {
		if name, ok := counted(attribute); ok {
			r.Credit[name] += number(value)
		}
	}
	return r
}

// equal matches a term that sets or requires a number.
var equal = regexp.MustCompile(`(#\w+) = (:\w+)`)

// noteUpdate returns the record of a write of a bucket item; nil if it credits nothing and leaves
// rf.
func noteUpdate(
	key map[string]types.AttributeValue, update, condition *string,
	names map[string]string, values map[string]types.AttributeValue,
) *Record {
	if update == nil || text(key["SK"]) != "#STATE" {
		return nil
	}
	r := &Record{Kind: Write, Item: text(key["PK"]), Credit: make(map[string]int64)}
	r.To = refillTime(*update, names, values)
	if condition != nil {
		r.From = refillTime(*condition, names, values)
	}
	credits := r.To != 0
	for _, term := range clause(*update, "ADD") {
		alias, value, _ := strings.Cut(term, " ")
		if name, ok := counted(names[alias]); ok {
			r.Credit[name] += number(values[value])
		}
	}
	for _, m := range equal.FindAllStringSubmatch(strings.Join(clause(*update, "SET"), ", "), -1) {
		if name, ok := counted(names[m[1]]); ok { // a limit that is added
			r.Credit[name] += number(values[m[2]])
		}
	}
	for _, milli := range r.Credit {
		credits = credits || milli != 0
	}
	if !credits {
		return nil
	}
	return r
}

// refillTime returns the number that an expression sets rf to, or requires it to be; 0 if it does
// neither.
func refillTime(
	expression string, names map[string]string, values map[string]types.AttributeValue,
) int64 {
	for _, m := range equal.FindAllStringSubmatch(expression, -1) {
		if names[m[1]] == "rf" {
			return number(values[m[2]])
		}
	}
	return 0
}

// nextClause matches the beginning of the next clause of an update expression.
var nextClause = regexp.MustCompile(` (?:SET|ADD|REMOVE|DELETE) `)

// clause returns the terms of one clause of an update expression.
func clause(expression, word string) []string {
	_, rest, found := strings.Cut(" "+expression, " "+word+" ")
	if !found {
		return nil
	}
	return strings.Split(nextClause.Split(rest, 2)[0], ", ")
}

// counted returns the limit whose balance or consumption an attribute holds.
func counted(attribute string) (name string, ok bool) {
	name, ok = strings.CutPrefix(attribute, "b_")
	if !ok {
		return "", false
	}
	if n, ok := strings.CutSuffix(name, "_tk"); ok {
		return n, true
	}
	return strings.CutSuffix(name, "_tc")
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// number returns an attribute's number; 0 if it is not a number.
func number(v types.AttributeValue) int64 {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64)
		return i
	}
	return 0
}
