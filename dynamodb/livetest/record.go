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
	Call    = "call"   // a decision, and how the call ended
	Write   = "write"  // a write to a bucket item that credited something or moved rf
	Made    = "made"   // a bucket item that was created
	Changed = "limits" // an [Action]
	Doubled = "double" // an [Action]
	End     = "end"    // what a process offered; only writes come after it
)

// The verdicts.
const (
	Admitted = "admitted"
	Denied   = "denied"
	Failed   = "error" // whether it was charged is unknown
)

// Settled is how a call ended that stands for something else than was reserved.
type Settled struct {
	// Totals are what the call stands for on every limit, in units.
	Totals map[string]int64 `json:"totals"`
	// Before and After are just before the process asked and just after it had the answer, in
	// Unix microseconds.
	Before int64 `json:"b"`
	After  int64 `json:"a"`
	// Err is why it is unknown whether that came to pass.
	Err string `json:"err,omitempty"`
}

// Share is the part of a limit that a shard has, as Python reckoned with it, and the balance that
// it had read: milli-units, the period in milliseconds.
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
	Settled  *Settled         `json:"settle,omitempty"`
	// Set are the new limits.
	Set map[string]Limit `json:"set,omitempty"`
	// RefilledMS is the earliest rf of the shards just before the change: the new rate may count
	// from there on.
	RefilledMS int64 `json:"rf,omitempty"`
	// Shards are how many there were and are.
	Shards []int `json:"shards,omitempty"`

	// Of [Write] and [Made]:

	Item string `json:"pk,omitempty"`
	// From and To are rf before and after, in Unix milliseconds; 0 where it stayed.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Credit is by how much balance and consumption together grew on each limit: what was
	// refilled. Of [Made], it is what they were to begin with.
	Credit map[string]int64 `json:"credit,omitempty"`
	// Share is what Python reckoned with.
	Share map[string]Share `json:"share,omitempty"`

	// Of [End]:

	Offered int   `json:"offered,omitempty"`
	Dropped int   `json:"dropped,omitempty"`
	LateUS  int64 `json:"late_us,omitempty"` // the most that a call began late
}

// The sides.
const (
	SideGo     = "go"
	SidePython = "python"
)

// Side is which library the process uses.
func (r *Record) Side() string {
	side, _, _ := strings.Cut(r.Process, "-")
	return side
}

// totals is what an admitted call stands for in the end.
func (r *Record) totals() map[string]int64 {
	if r.Settled != nil && r.Settled.Err == "" {
		return r.Settled.Totals
	}
	return r.Costs
}

// ReadRecords reads a process's log, which must be whole.
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

// Log writes records. Its methods may be called at once.
type Log struct {
	process string

	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	err  error // the first one
}

// NewLog makes the log of a process.
func NewLog(process, name string) (*Log, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &Log{process: process, file: f, out: bufio.NewWriter(f)}, nil
}

// Add writes a record in the process's name.
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

// Close returns the first error of all.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.err, l.out.Flush(), l.file.Close())
}
