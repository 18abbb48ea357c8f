package dynamodb

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
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
	*tableClient
	namespace string // its ID
	options   Options
	caller    principalLookup // whose credentials it uses, for the audit

	subjects      *subjectStates
	configChanges configChanges
	counts        storeCounts
	running       tasks // lines, and what is done in the background
	unfinished    unfinishedUpdates
	probe         probe
	gone          atomic.Bool // the namespace was deleted, as far as is known
	closed        atomic.Bool
	calls         atomic.Uint64 // numbers reservations
	ending        chan struct{} // closed with the store
}

// knownSize is how many (entity, resource) the process remembers at least.
const knownSize = 100_000

// start makes the store ready for calls.
func (s *Store) start() {
	s.calls.Store(1) // so that what is seen before the first reservation has been seen
	s.subjects, s.ending = newSubjectStates(knownSize), make(chan struct{})
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
	if s.closed.CompareAndSwap(false, true) {
		close(s.ending)
	}
	s.running.wait()
	return nil
}

// enter begins a call, which Close waits for: end it with s.running.end. After Close it refuses.
func (s *Store) enter() error {
	s.running.begin()
	if err := s.closing(); err != nil {
		s.running.end()
		return err
	}
	return nil
}

// closing refuses what comes after Close.
func (s *Store) closing() error {
	if s.closed.Load() {
		return &weir.Error{Code: weir.Unavailable, Reason: "the store is closed"}
	}
	return nil
}

// reportError tells of what went wrong outside of calls.
func (s *Store) reportError(err error) {
	if s.options.OnError != nil {
		s.options.OnError(err)
	}
}
