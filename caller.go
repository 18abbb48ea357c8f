package weir

import "context"

// callerKey finds the *callerContext in a context.
type callerKey struct{}

// callerContext is a context that names a caller. It takes one allocation, where
// [context.WithValue] takes a second one for the string.
type callerContext struct {
	context.Context //nolint:containedctx // It is a context itself.

	caller string
}

// Value returns the context itself for callerKey.
func (c *callerContext) Value(key any) any {
	if key == (callerKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// ContextWithCaller names the caller on whose behalf a [Service] is called with the context. Each
// caller has a share of the live leases and of the memory of ended ones, so that none can use them
// up for the others; lease IDs that one caller has made the service forget are refused to it alone.
// A context without a name, or with an empty one, is the program's own: only the bounds on all
// leases hold for it.
func ContextWithCaller(ctx context.Context, caller string) context.Context {
	return &callerContext{ctx, caller}
}

// CallerFromContext returns the caller that [ContextWithCaller] has named, and "" if there is none.
func CallerFromContext(ctx context.Context) string {
	if c, ok := ctx.Value(callerKey{}).(*callerContext); ok {
		return c.caller
	}
	return ""
}
