package provision_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/internal/testkit/calls"
	"github.com/weir-limiter/weir/limiter"
)

// refusing returns an option of an SDK client: it refuses, as AWS does, what a policy does not allow
// a principal that is tagged with the ID of a namespace.
func refusing(c *policyCase, s *simulator, namespace string) func(*middleware.Stack) error {
	allow := func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
		made, err := calls.Of(middleware.GetOperationName(ctx), in.Parameters)
		if err != nil {
			return out, metadata, err
		}
		for _, q := range requests(made, namespace) {
			if s.decide(q) != allowed {
				return out, metadata, &smithy.GenericAPIError{
					Code: "AccessDeniedException", Message: c.id + " does not allow " + q.action,
				}
			}
		}
		return next.HandleInitialize(ctx, in)
	}
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(
			middleware.InitializeMiddlewareFunc("Refuse", allow), middleware.After)
	}
}

// requests returns what AWS decides about a call: the keys of a batch together.
func requests(made []calls.Call, namespace string) (all []*request) {
	for i, m := range made {
		if i > 0 && strings.HasPrefix(m.Action, "Batch") {
			keys := all[0].context["dynamodb:LeadingKeys"]
			all[0].context["dynamodb:LeadingKeys"] = append(keys, m.Partition)
			continue
		}
		q := row{action: m.Action, resource: m.Resource}.call("")
		q.context[namespaceTag] = []string{namespace}
		q.context["dynamodb:Attributes"] = m.Attributes
		if m.Partition != "" {
			q.context["dynamodb:LeadingKeys"] = []string{m.Partition}
		}
		all = append(all, q)
	}
	return all
}

// tenants is a table on DynamoDB Local with the namespaces search and other.
type tenants struct {
	*testing.T

	table string
	ids   map[string]string // of the namespaces
}

func newTenants(t *testing.T) *tenants {
	t.Helper()
	config := testkit.DynamoDB(t).Config()
	table := &dynamodb.Table{
		Name: "weir-" + rand.Text()[:16], NoStream: true, Options: &dynamodb.Options{Config: &config},
	}
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Delete(context.WithoutCancel(t.Context())) })
	w := &tenants{T: t, table: table.Name, ids: make(map[string]string)}
	for _, name := range []string{"search", "other"} {
		n, _, err := table.RegisterNamespace(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		w.ids[name] = n.ID
	}
	return w
}

// open opens a namespace as a principal of search that has a policy.
func (w *tenants) open(id, namespace string) (*limiter.Limiter, error) {
	w.Helper()
	cases := policyCases(w.T)
	c := &cases[slices.IndexFunc(cases, func(c policyCase) bool { return c.id == id })]
	config := testkit.DynamoDB(w).Config()
	config.APIOptions = append(config.APIOptions, refusing(c, c.simulator(w.T), w.ids["search"]))
	s, err := dynamodb.Open(w.Context(), w.table, &dynamodb.Options{
		Config: &config, Namespace: namespace, Principal: "test", WriteTimeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
	if err == nil {
		w.Cleanup(func() { _ = l.Close() })
	}
	return l, err
}

// mustOpen opens the namespace search.
func (w *tenants) mustOpen(id string) *limiter.Limiter {
	w.Helper()
	l, err := w.open(id, "search")
	if err != nil {
		w.Fatalf("%s: %v", id, err)
	}
	return l
}

// refused checks that a call is refused for lack of a permission.
func (w *tenants) refused(what string, err error) {
	w.Helper()
	if !errors.Is(err, weir.PermissionDenied) {
		w.Errorf("%s: got %v, want %s", what, err, weir.PermissionDenied)
	}
}

// TestTenant does what tenants do on DynamoDB Local, with the simulator in place of AWS.
func TestTenant(t *testing.T) {
	t.Parallel()
	w := newTenants(t)
	rpm := weir.Limit{
		Name: "rpm", Kind: weir.Bucket, Capacity: 10, RefillAmount: 10, RefillPeriod: time.Minute,
	}
	at := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	ask := &weir.Request{Entity: at.Entity, Resource: at.Resource, Costs: weir.Costs{"rpm": 1}}
	operator := w.mustOpen("NamespaceFullAccessPolicy")
	if err := operator.SetEntity(t.Context(), at.Entity, "", false); err != nil {
		t.Fatalf("the operator declares an entity: %v", err)
	}
	if err := operator.SetLimits(t.Context(), at, []weir.Limit{rpm}); err != nil {
		t.Fatalf("the operator sets limits: %v", err)
	}
	program := w.mustOpen("NamespaceAcquirePolicy")
	lease, err := program.Reserve(t.Context(), ask)
	if err != nil {
		t.Fatalf("the program reserves: %v", err)
	}
	if _, err := lease.Complete(t.Context()); err != nil {
		t.Errorf("the program completes: %v", err)
	}
	rpm.Capacity++
	w.refused("the program sets limits", program.SetLimits(t.Context(), at, []weir.Limit{rpm}))

	monitor := w.mustOpen("NamespaceReadOnlyPolicy")
	if found, err := monitor.Status(t.Context(), at.Entity, ""); err != nil || len(found) != 1 {
		t.Errorf("the monitor sees %v, %v, want one limit", found, err)
	}
	_, err = monitor.Reserve(t.Context(), ask)
	w.refused("the monitor reserves", err)

	for _, c := range policyCases(t) {
		if !c.tenant {
			continue
		}
		_, err := w.open(c.id, "other")
		w.refused(c.id+" in another namespace", err)
	}
}
