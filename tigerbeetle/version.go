//go:build cgo

package tigerbeetle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// version tracks which definitions are in force in the namespace: the ones that were put in force
// last. Each server has its own from its limits file. A server whose definitions were in force
// before and have been superseded is not ready (docs/adr/0029-superseded-limits.md).
type version struct {
	// putting is held while definitions are put in force, during the calls to the cluster too, so
	// that the definitions put last are also this server's. Reservations do not lock it.
	putting sync.Mutex

	// mu guards the fields below. It is not locked during a call to the cluster.
	mu sync.Mutex
	// own is the digest of this server's definitions, number the version as which they were put in
	// force.
	own    tb.Uint128
	number uint64
	// inForce is the latest version and since when it was put in force, in Unix milliseconds. stale
	// is set if it is not this server's.
	inForce uint64
	since   int64
	stale   bool
}

// start puts the store's first definitions in force if they were never in force or the options say
// so.
func (v *version) start(ctx context.Context, s *Store) error {
	return v.putInForce(ctx, s, s.config.Load(), s.options.PutInForce && !s.options.ReadOnly)
}

// putInForce makes definitions the server's own and puts them in force. Unless always is set, it
// leaves others in force if follows says so.
func (v *version) putInForce(ctx context.Context, s *Store, d *weir.Definitions, always bool) error {
	own, err := digestOf(d)
	if err != nil {
		return err
	}
	v.putting.Lock()
	defer v.putting.Unlock()
	for range maxTries {
		latest, err := s.latestVersion(ctx)
		if err != nil {
			return err
		}
		done := latest != nil && latest.UserData128 == own
		if !done && !always {
			if done, err = s.follows(ctx, latest, own); err != nil {
				return err
			}
		}
		if done {
			v.mu.Lock()
			v.own = own
			v.mu.Unlock()
			v.setInForce(latest)
		} else if done, err = v.write(ctx, s, latest, own); err != nil {
			return err
		}
		if done {
			s.config.Store(d)
			s.auditLoaded(ctx, d)
			s.auditVersion()
			return nil
		}
	}
	return &weir.Error{Code: weir.Unavailable,
		Reason: "other servers put other definitions in force during every attempt"}
}

// follows reports whether the store leaves the definitions in force as they are: because it must
// not replace them, or because its own were in force before and have been superseded.
func (s *Store) follows(ctx context.Context, latest *tb.Transfer, own tb.Uint128) (bool, error) {
	switch {
	case s.options.ReadOnly:
		return true, nil
	case latest == nil:
		return false, nil
	case s.options.Follow:
		return true, nil
	}
	return s.wasInForce(ctx, own)
}

// write puts definitions in force after the latest ones. It returns false if another server was
// first: the ID of the transfer depends on the number of the version alone.
func (v *version) write(
	ctx context.Context, s *Store, latest *tb.Transfer, mine tb.Uint128,
) (done bool, err error) {
	next := uint64(1)
	if latest != nil {
		next = latest.UserData64 + 1
	}
	n := &s.namespace
	t := tb.Transfer{
		ID: versionID(n.name, next), DebitAccountID: n.vault, CreditAccountID: n.register,
		UserData128: mine, UserData64: next, Ledger: n.ledger, Code: codeVersion,
	}
	results, err := s.ledger.CreateTransfers(ctx, []tb.Transfer{t})
	if err != nil {
		return false, client.Unavailable(err)
	}
	switch st := results[0].Status; {
	case st == tb.TransferCreated, st == tb.TransferExists:
	case exists(st):
		return false, nil
	default:
		return false, unexpected("create_transfers", st.String())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.own, v.number, v.inForce, v.stale = mine, next, next, false
	v.since = timestampMS(results[0].Timestamp)
	return true, nil
}

func versionID(namespace string, n uint64) tb.Uint128 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return idOf(digest("version", namespace, string(b[:])))
}

// setInForce records which definitions are in force.
func (v *version) setInForce(latest *tb.Transfer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if latest == nil || latest.UserData64 < v.inForce { // a later version was recorded during the read
		return
	}
	v.inForce, v.since = latest.UserData64, timestampMS(latest.Timestamp)
	v.stale = latest.UserData128 != v.own
	if !v.stale {
		v.number = v.inForce
	}
}

// now returns the version in force, since when in Unix milliseconds, and whether it is not this
// server's.
func (v *version) now() (inForce uint64, since int64, stale bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inForce, v.since, v.stale
}

// seeInForce records which definitions are in force.
func (s *Store) seeInForce(latest *tb.Transfer) {
	s.version.setInForce(latest)
	s.auditVersion()
}

// superseded reports whether definitions other than this server's are in force and the cluster has
// the lease, so that the call is a replay. If it does not have the lease, the reservation is
// refused: this server would judge it by limits that no longer count.
func (s *Store) superseded(ctx context.Context, p *driver.Plan) (bool, error) {
	refusal := s.version.check()
	if refusal == nil {
		return false, nil
	}
	if p.New {
		return false, refusal
	}
	header, err := s.lookupHeader(ctx, p.ID)
	if err != nil {
		return false, err
	}
	if header == nil {
		return false, refusal
	}
	return true, nil
}

// RefusesReserve returns an error with code [weir.Superseded] if other definitions are in force.
func (s *Store) RefusesReserve() error { return s.version.check() }

// check returns an error if other definitions are in force.
func (v *version) check() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stale {
		return nil
	}
	return &weir.Error{
		Code: weir.Superseded,
		Reason: fmt.Sprintf("this server's limits are not the ones in force, which are version %d, "+
			"put there at %s: give it the limits file in force, or put its own in force by a reload "+
			"(SIGHUP) or by starting it with --put-in-force",
			v.inForce, time.UnixMilli(v.since).UTC().Format(time.RFC3339)),
	}
}

// ownVersion returns the version of this server's definitions, as anchors keep it.
func (s *Store) ownVersion() uint32 {
	s.version.mu.Lock()
	defer s.version.mu.Unlock()
	return uint32(s.version.number & versionMask)
}

// Ready returns an error if the store cannot reserve: other definitions are in force, or the
// cluster does not answer.
func (s *Store) Ready(ctx context.Context) error {
	latest, err := s.latestVersion(ctx)
	if err != nil {
		return err
	}
	s.seeInForce(latest)
	return s.version.check()
}

// latestVersion returns the transfer that put the definitions in force, or nil if there are none.
func (s *Store) latestVersion(ctx context.Context) (*tb.Transfer, error) {
	return s.lastDebit(ctx, s.namespace.vault, codeVersion)
}

// wasInForce reports whether definitions were in force at some time.
func (s *Store) wasInForce(ctx context.Context, mine tb.Uint128) (bool, error) {
	found, err := s.ledger.QueryTransfers(ctx, tb.QueryFilter{
		UserData128: mine, Ledger: s.namespace.ledger, Code: codeVersion, Limit: 1,
	})
	if err != nil {
		return false, client.Unavailable(err)
	}
	return len(found) > 0, nil
}

// poll reads at intervals which definitions are in force, and the cluster's time if no answer has
// had a timestamp after the last poll. Reads have no timestamp, and a server that does not learn
// the time falls behind: it would charge a budget's old period (docs/adr/0028-cluster-time.md).
func (s *Store) poll() {
	defer s.poller.Done()
	every := time.NewTicker(s.options.Poll)
	defer every.Stop()
	lessons := s.clock.answersSeen()
	for {
		select {
		case <-s.stop:
			return
		case <-every.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), max(s.options.Poll, time.Second))
		if err := s.pollOnce(ctx, s.clock.answersSeen() == lessons); err != nil {
			s.options.OnError(err)
		}
		cancel()
		lessons = s.clock.answersSeen()
	}
}

// pollOnce reads which definitions are in force and, if asked, the cluster's time.
func (s *Store) pollOnce(ctx context.Context, askTime bool) error {
	latest, err := s.latestVersion(ctx)
	if err != nil {
		return err
	}
	s.seeInForce(latest)
	if askTime {
		return s.askTime(ctx)
	}
	return nil
}

// digestOf returns the hash that stands for definitions on the cluster. It leaves out fields that
// are zero, so that two releases of weir, one of which has more fields, agree about a file that
// uses none of them.
func digestOf(d *weir.Definitions) (tb.Uint128, error) {
	text, err := json.Marshal(d) //nolint:musttag // Only weir reads it, and the names of the fields stay.
	if err != nil {
		return tb.Uint128{}, err
	}
	var fields any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a float64 would lose digits
	if err := decoder.Decode(&fields); err != nil {
		return tb.Uint128{}, err
	}
	if text, err = json.Marshal(withoutZeros(fields)); err != nil {
		return tb.Uint128{}, err
	}
	return idOf(sha256.Sum256(text)), nil
}

// withoutZeros drops fields with zero values. Empty lists and objects stay: to declare an entity
// without limits is not the same as not to declare it.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			switch field {
			case nil, "", false, json.Number("0"):
				delete(v, name)
			default:
				v[name] = withoutZeros(field)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
	}
	return v
}
