package livetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// The kinds of records.
const (
	Call    = "call"   // a reservation, and how the call ended
	Write   = "write"  // a write of a bucket item that credits units or moves rf
	Made    = "made"   // a bucket item that was created
	Changed = "limits" // an [Action]
	Doubled = "double" // an [Action]
	End     = "end"    // the counts of a process; only writes come after it
)

// The decisions.
const (
	Admitted = "admitted"
	Denied   = "denied"
	Failed   = "error" // the outcome is unknown
)

// Settled is the end of a call that consumed units other than those it reserved, or an adjust
// before the end.
type Settled struct {
	// Totals are the units that the call consumed from then on, by limit.
	Totals map[string]int64 `json:"totals"`
	// Before and After are the times just before the request and just after the answer, in Unix
	// microseconds.
	Before int64 `json:"b"`
	After  int64 `json:"a"`
	// Err is set if the outcome of the settlement is unknown.
	Err string `json:"err,omitempty"`
}

// Share is a shard's share of a limit as Python computed it, and the balance that Python had read,
// in milli-units and milliseconds.
type Share struct {
	Capacity int64 `json:"cp"`
	Refill   int64 `json:"ra"`
	PeriodMS int64 `json:"rp"`
	Read     int64 `json:"tk"`
}

// Record is one line of a process's log.
type Record struct {
	Kind    string `json:"k"`
	Process string `json:"p"`
	// Before and After are just before and just after it happened, in Unix microseconds.
	Before int64 `json:"b,omitempty"`
	After  int64 `json:"a,omitempty"`

	// Of [Call], [Changed] and [Doubled]:

	Entity   string           `json:"e,omitempty"`
	Resource string           `json:"r,omitempty"`
	Costs    map[string]int64 `json:"costs,omitempty"`
	Verdict  string           `json:"v,omitempty"`
	Err      string           `json:"err,omitempty"`
	// Lease is the lease ID of a call that brought one.
	Lease string `json:"lease,omitempty"`
	// Adjusts are the changes before the end, in order.
	Adjusts []Settled `json:"adjusts,omitempty"`
	Settled *Settled  `json:"settle,omitempty"`
	// Set are the new limits.
	Set map[string]Limit `json:"set,omitempty"`
	// RefilledMS is the earliest rf of the shards just before the change. The new rate may count
	// from then on.
	RefilledMS int64 `json:"rf,omitempty"`
	// Shards are the shard counts before and after.
	Shards []int `json:"shards,omitempty"`

	// Of [Write] and [Made]:

	Item string `json:"pk,omitempty"`
	// From and To are rf before and after, in Unix milliseconds; 0 if it did not change.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Credit is the sum of the changes of balance and consumption of each limit, which is the
	// refill. For [Made] it is the initial balance.
	Credit map[string]int64 `json:"credit,omitempty"`
	// Share holds the numbers that Python computed with.
	Share map[string]Share `json:"share,omitempty"`

	// Of [End]:

	Offered int   `json:"offered,omitempty"`
	Dropped int   `json:"dropped,omitempty"`
	LateUS  int64 `json:"late_us,omitempty"` // the longest delay of a call
}

// The sides.
const (
	SideGo     = "go"
	SidePython = "python"
)

// Side returns the library that the process uses.
func (r *Record) Side() string {
	side, _, _ := strings.Cut(r.Process, "-")
	return side
}

// totals returns the units that an admitted call consumed.
func (r *Record) totals() map[string]int64 {
	totals := r.Costs
	for _, c := range r.changes() {
		if c.Err == "" {
			totals = c.Totals
		}
	}
	return totals
}

// changes returns the adjusts and the end of a call, in order.
func (r *Record) changes() []Settled {
	if r.Settled == nil {
		return r.Adjusts
	}
	return append(r.Adjusts[:len(r.Adjusts):len(r.Adjusts)], *r.Settled)
}

// ReadRecords reads a process's log. A log without an end is an error.
func ReadRecords(name string) ([]Record, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var records []Record
	decoder := json.NewDecoder(bufio.NewReader(f))
	for {
		var r Record
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			if !slices.ContainsFunc(records, func(r Record) bool { return r.Kind == End }) {
				return nil, fmt.Errorf("%s: %d records, and no end", name, len(records))
			}
			return records, nil
		case err != nil:
			return nil, fmt.Errorf("%s: record %d: %w", name, len(records)+1, err)
		}
		records = append(records, r)
	}
}

// Log writes records. Its methods may be called concurrently.
type Log struct {
	process string

	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	err  error // the first error
}

// NewLog creates the log of a process.
func NewLog(process, name string) (*Log, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &Log{process: process, file: f, out: bufio.NewWriter(f)}, nil
}

// Add writes a record under the process's name.
func (l *Log) Add(r *Record) {
	r.Process = l.process
	line, err := json.Marshal(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	l.err = errors.Join(l.err, err)
}

// Close closes the file and returns the first error of all methods.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.err, l.out.Flush(), l.file.Close())
}
