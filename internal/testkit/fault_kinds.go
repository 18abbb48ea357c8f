package testkit

import (
	"fmt"
	"strings"
)

// Fault is a kind of failure between a client and DynamoDB.
type Fault int

// The faults. Unless its comment says otherwise, the request does not reach the server.
const (
	// LostAnswer means that the request is performed, and then the connection breaks.
	LostAnswer Fault = iota + 1
	// LostRequest means that the connection breaks before the server gets the request. The caller
	// cannot tell it from LostAnswer.
	LostRequest
	// NoConnection means that the connection is refused, so that the caller knows that nothing was
	// sent.
	NoConnection
	// Cut is NoConnection for this request and for all later ones, until Heal.
	Cut
	// DelayedAnswer means that the request is performed, and the answer comes after the caller's
	// deadline.
	DelayedAnswer
	// DelayedRequest means that the caller's deadline passes before the server gets the request, which
	// is dropped.
	DelayedRequest
	// LateRequest means that the caller's deadline passes before the server gets the request, which is
	// then performed.
	LateRequest
	// Throttle answers 400 with the code of the rule.
	Throttle
	// Refuse answers 400 with the code of the rule, which the SDK does not repeat.
	Refuse
	// Fail answers 500 InternalServerError; the request is not performed.
	Fail
	// FailAfter answers 500 InternalServerError, although the request is performed.
	FailAfter
	// Conflict answers 400 TransactionConflictException, to the write of one item.
	Conflict
	// Cancel answers 400 TransactionCanceledException with reasons, to a transaction.
	Cancel
	// Unprocessed means that half of a batch is performed, or none of a batch of one, and the rest is
	// named as unprocessed.
	Unprocessed
	// ShortPage means that a query or scan returns one item a page, as if items were large.
	ShortPage
)

// faultNames are the faults in words.
var faultNames = [...]string{
	LostAnswer: "lost answer", LostRequest: "lost request", NoConnection: "no connection", Cut: "cut",
	DelayedAnswer: "delayed answer", DelayedRequest: "delayed request", LateRequest: "late request",
	Throttle: "throttle", Refuse: "refuse", Fail: "fail", FailAfter: "fail after",
	Conflict: "conflict", Cancel: "cancel", Unprocessed: "unprocessed", ShortPage: "short page",
}

// String returns the fault in words.
func (f Fault) String() string {
	if f > 0 && int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault %d", int(f))
}

// concerns reports whether a fault can hit an operation.
func (f Fault) concerns(operation string) bool {
	switch f {
	case Conflict:
		return operation == "PutItem" || operation == "UpdateItem" || operation == "DeleteItem"
	case Cancel:
		return strings.HasPrefix(operation, "Transact")
	case Unprocessed:
		return operation == "BatchGetItem" || operation == "BatchWriteItem"
	case ShortPage:
		return operation == "Query" || operation == "Scan"
	}
	return true
}
