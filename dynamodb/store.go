package dynamodb

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// Options say how a table is reached and used. Nil means all defaults.
type Options struct {
	// Region is the table's. Default: what the SDK's own chain finds.
	Region string
	// Endpoint is the address of a DynamoDB that is not Amazon's, such as DynamoDB Local. Default:
	// that of the region.
	Endpoint string
	// Namespace is the name of the world of entities and limits in the table. Default: "default".
	Namespace string
	// Config is the SDK's configuration, with credentials. Default: what the SDK's own chain finds.
	Config *aws.Config
	// HTTP is the client that calls go through. Default: the SDK's.
	HTTP *http.Client
	// Client tunes the SDK's client, after everything else. Default: nothing.
	Client []func(*dynamodb.Options)
	// Transactional takes BatchGetItem and TransactWriteItems for every reservation: atomic over
	// items, at four times the cost. Default: false.
	Transactional bool
	// NoSpeculation reads each bucket item before it is written. Default: false.
	NoSpeculation bool
	// ReadOnly refuses whatever would change the table, with [weir.Unsupported]. Default: false.
	ReadOnly bool
	// Principal is who changes configuration, for the audit. Default: the caller's ARN.
	Principal string
	// WriteTimeout is how long a write may take until its outcome counts as unknown.
	// Default: two seconds.
	WriteTimeout time.Duration
	// Now reads the clock that the table's is compared with. Default: [time.Now].
	Now func() time.Time
	// OnError is told of what goes wrong outside of calls. Default: nobody.
	OnError func(error)
}

// Store is a [weir.Backend] on one namespace of one table. All methods may be called at once.
type Store struct {
	admin      *admin.Admin
	client     *client.Client
	config     *config.Reader
	buckets    *bucketitem.Store
	options    Options
	running    *client.Tasks // calls, item queues, and what is done in the background
	unfinished unfinishedUpdates
	probe      probe
}

// newStore makes a store on a namespace, by its ID.
func newStore(c *client.Client, namespace string, o Options) *Store {
	s := &Store{client: c, options: o, running: client.NewTasks()}
	s.config = &config.Reader{Client: c, Namespace: namespace}
	s.buckets = bucketitem.New(s.config, s.running, bucketitem.Options{
		NoSpeculation: o.NoSpeculation, WriteTimeout: o.WriteTimeout, OnError: o.OnError,
	})
	s.admin = admin.New(s.buckets, admin.Options{
		Principal: o.Principal, OnError: o.OnError,
	})
	return s
}

// Traits says that there are buckets alone, one level of cascade, and no shadow limits, and that
// parents need not be declared: the Python library makes children of whatever is named.
func (s *Store) Traits() weir.Traits {
	return weir.Traits{
		Kinds: []weir.Kind{weir.Bucket}, CascadeDepth: 1, NoShadow: true, UndeclaredParents: true,
	}
}

// Close waits until what was given back has been written. Calls that come later are unavailable.
func (s *Store) Close() error {
	s.running.Close()
	return nil
}

// ReadConfig returns what is configured for a subject, in one read. It fails where the strongest
// level says what weir cannot judge by, and where the subject is switched off. If the namespace was
// deleted it fails with [weir.NotFound].
func (s *Store) ReadConfig(ctx context.Context, of weir.Subject) (*weir.Config, error) {
	if err := s.running.EnterNested(); err != nil {
		return nil, err
	}
	defer s.running.End()
	c, err := s.config.ReadSubject(ctx, of, config.Consistent(ctx), schema.NamespaceKey(s.options.Namespace))
	if err != nil {
		return nil, err
	}
	if err := s.checkNamespaceItem(c.Others[0]); err != nil {
		return nil, err
	}
	if err := c.Chargeable(); err != nil {
		return nil, err
	}
	out := &weir.Config{
		Parent: c.Parent(), Cascade: c.Cascades(), Known: c.Declared(), OnUnavailable: c.OnUnavailable(),
	}
	for _, l := range c.Levels {
		if len(l.Limits) > 0 {
			out.Levels = append(out.Levels, weir.LevelLimits{Level: l.Level, Limits: l.Limits})
		}
	}
	return out, nil
}
