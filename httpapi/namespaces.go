package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir/internal/apijson"
	"github.com/weir-limiter/weir/namespace"
)

var _ namespace.Admin = (*Client)(nil)

const namespacesPath = "/v1/admin/namespaces"

// namespaceTimeout bounds the calls that change the registry of namespaces. It is as long as a
// server waits for the end of its answer by default.
const namespaceTimeout = 30 * time.Second

// Namespaces lists the namespaces that have a name; see [namespace.Admin].
func (c *Client) Namespaces(ctx context.Context) ([]namespace.Namespace, error) {
	return ask(ctx, c, namespacesPath, apijson.ReadNamespaces)
}

// OrphanNamespaces lists the namespaces that have data and no name; see [namespace.Admin].
func (c *Client) OrphanNamespaces(ctx context.Context) ([]namespace.Namespace, error) {
	return ask(ctx, c, namespacesPath+"?orphans=true", apijson.ReadNamespaces)
}

// Namespace returns the namespace with that name; see [namespace.Admin].
func (c *Client) Namespace(ctx context.Context, name string) (*namespace.Namespace, error) {
	at, err := pathSegment("namespace", name)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, namespacesPath+"/"+at, readNamespace("", name))
}

// RegisterNamespace registers a namespace; see [namespace.Admin]. The client sends this and the
// other changes of namespaces once. If the answer is lost, the error has code Unavailable.
func (c *Client) RegisterNamespace(
	ctx context.Context, name string,
) (n *namespace.Namespace, made bool, err error) {
	at, err := pathSegment("namespace", name)
	if err != nil {
		return nil, false, err
	}
	k := once(put(namespacesPath+"/"+at, struct{}{}), namespaceTimeout)
	n, out := call(ctx, c, k, func(body []byte) (*namespace.Namespace, error) {
		b, err := apijson.Read[apijson.Namespace](body)
		if err != nil {
			return nil, err
		}
		if b.Registered == nil {
			return nil, errors.New("does not say whether it was registered")
		}
		made = *b.Registered
		return readNamespace("", name)(body)
	})
	return n, made && out.err == nil, out.err
}

// DeleteNamespace removes a name; see [namespace.Admin]. It confirms the deletion of the default
// namespace, as the query yes=true does. A server refuses to delete the namespace that it serves,
// with code Conflict.
func (c *Client) DeleteNamespace(ctx context.Context, name string) (*namespace.Namespace, error) {
	at, err := pathSegment("namespace", name)
	if err != nil {
		return nil, err
	}
	k := once(remove(namespacesPath+"/"+at+"?yes=true"), namespaceTimeout)
	n, out := call(ctx, c, k, readNamespace("", name))
	return n, out.err
}

// RecoverNamespace makes the name lead again to a namespace; see [namespace.Admin].
func (c *Client) RecoverNamespace(ctx context.Context, id string) (*namespace.Namespace, error) {
	at, err := pathSegment("namespace_id", id)
	if err != nil {
		return nil, err
	}
	k := once(post(namespacesPath+"/"+at+"/recover", struct{}{}), namespaceTimeout)
	n, out := call(ctx, c, k, readNamespace(id, ""))
	return n, out.err
}

// PurgeNamespace deletes all data of a deleted namespace; see [namespace.Admin]. It never calls
// progress. The server stops the purge if the client leaves, or after 15 minutes: the next call
// continues it.
func (c *Client) PurgeNamespace(
	ctx context.Context, id string, scan bool, _ func(deleted int64),
) (deleted int64, err error) {
	at, err := pathSegment("namespace_id", id)
	if err != nil {
		return 0, err
	}
	k := once(post(namespacesPath+"/"+at+"/purge", &apijson.PurgeRequest{Scan: scan}), applyTimeout)
	deleted, out := call(ctx, c, k, func(body []byte) (int64, error) {
		b, err := apijson.Read[apijson.Purged](body)
		if err == nil && b.ID != id {
			err = errors.New("is about another namespace: " + apijson.Shorten(b.ID))
		}
		if err != nil {
			return 0, err
		}
		return b.Deleted, nil
	})
	return deleted, out.err
}

// once makes a call that is sent only once, because the answer to a repeated one would be about
// the repetition.
func once(k *apiCall, timeout time.Duration) *apiCall {
	k.tries, k.timeout = 1, timeout
	return k
}

// readNamespace returns a function that reads an answer about a namespace with an ID or a name;
// empty for any.
func readNamespace(id, name string) func(body []byte) (*namespace.Namespace, error) {
	return func(body []byte) (*namespace.Namespace, error) {
		b, err := apijson.Read[apijson.Namespace](body)
		switch {
		case err != nil:
			return nil, err
		case b.ID == "", id != "" && b.ID != id, name != "" && b.Name != name:
			return nil, errors.New("is about another namespace: " + apijson.Shorten(b.Name))
		}
		return b.Namespace(), nil
	}
}
