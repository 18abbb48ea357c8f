package dynamodb

import (
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
)

// bucketStore is the process's way to the bucket items of one namespace.
type bucketStore struct {
	client  *client.Client
	config  *config.Reader
	options bucketOptions
	running *client.Tasks
	counts  storeCounts

	subjects      *subjectStates
	configChanges configChanges
	gone          atomic.Bool   // the namespace was deleted, as far as is known
	calls         atomic.Uint64 // numbers reservations
}

// bucketOptions say how bucket items are written.
type bucketOptions struct {
	// noSpeculation reads each item before it is written.
	noSpeculation bool
	// writeTimeout is how long a write may take until its outcome counts as unknown.
	writeTimeout time.Duration
	// onError is told of what goes wrong outside of calls; nil for nobody.
	onError func(error)
}

// knownSize is how many subjects the process remembers at least.
const knownSize = 100_000

func newBucketStore(r *config.Reader, running *client.Tasks, o bucketOptions) *bucketStore {
	s := &bucketStore{
		client: r.Client, config: r, options: o, running: running,
		subjects: newSubjectStates(knownSize),
	}
	s.calls.Store(1) // so that what is seen before the first reservation has been seen
	return s
}

// reportError tells of what went wrong outside of calls.
func (s *bucketStore) reportError(err error) {
	if s.options.onError != nil {
		s.options.onError(err)
	}
}

// subject returns the state of a subject, retained: release it.
func (s *bucketStore) subject(of weir.Subject) *subjectState { return s.subjects.get(s, of) }
