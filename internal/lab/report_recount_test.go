package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/internal/lab/replay"
)

// logLine is a line of a decision log, of any kind.
type logLine struct {
	Kind         string             `json:"kind"`
	Entity       string             `json:"entity"`
	Limits       []logStatus        `json:"limits"`
	AtMS         int64              `json:"at_ms"`
	Lease        string             `json:"lease"`
	Allowed      *bool              `json:"allowed"`
	RetryAfterMS int64              `json:"retry_after_ms"`
	Actuals      []map[string]int64 `json:"actuals"`
}

// limitKey is a limit of an entity.
type limitKey struct{ entity, limit string }

// logStatus is a limit's status, or its definition if the line is about a subject.
type logStatus struct {
	Entity    string `json:"entity"`
	Limit     string `json:"limit"`
	Kind      string `json:"kind"`
	Requested int64  `json:"requested"`
	Exceeded  bool   `json:"exceeded"`
	Shadow    bool   `json:"shadow"`
	Name      string `json:"name"`
	TimeoutMS int64  `json:"timeout_ms"`
}

// counted has the counts of a log for one limit of one entity.
type counted struct {
	admitted, denied, only int64
	used                   big.Int
}

// recount computes the figures of each limit and the retry-afters of a report again, from the
// decision log alone.
func recount(t *testing.T, report *replay.Report, log []byte) {
	t.Helper()
	counts, waits := countLog(t, log)
	for _, l := range report.Limits {
		got := counts[limitKey{l.Entity, l.Limit}]
		if got == nil {
			got = &counted{}
		}
		if l.Admitted != got.admitted || l.Denied != got.denied || l.DeniedOnly != got.only ||
			l.Used.Cmp(&got.used) != 0 {
			t.Errorf("%s %s: the report has admitted %d, denied %d, only %d, used %v; "+
				"the log %d, %d, %d, %v", l.Entity, l.Limit, l.Admitted, l.Denied, l.DeniedOnly, l.Used,
				got.admitted, got.denied, got.only, &got.used)
		}
		delete(counts, limitKey{l.Entity, l.Limit})
	}
	for key := range counts {
		t.Errorf("the report lacks %s %s, which the log has", key.entity, key.limit)
	}
	slices.Sort(waits)
	p50, p95 := waits[(len(waits)-1)/2], waits[(95*len(waits)+99)/100-1]
	if got := *report.Totals.RetryAfterP50MS; got != p50 {
		t.Errorf("got %d ms as the median retry-after, want %d", got, p50)
	}
	if got := *report.Totals.RetryAfterP95MS; got != p95 {
		t.Errorf("got %d ms as the 95th percentile of the retry-afters, want %d", got, p95)
	}
}

func countLog(t *testing.T, log []byte) (counts map[limitKey]*counted, waits []int64) {
	t.Helper()
	counts = map[limitKey]*counted{}
	timeouts := map[limitKey]int64{}
	running := map[string]*logLine{}
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Scan() // on the line about the run
	for lines.Scan() {
		l := &logLine{}
		if err := json.Unmarshal(lines.Bytes(), l); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		switch l.Kind {
		case "subject":
			for _, s := range l.Limits {
				counts[limitKey{l.Entity, s.Name}] = &counted{}
				timeouts[limitKey{l.Entity, s.Name}] = s.TimeoutMS
			}
		case "reserve":
			if countReserve(counts, l) {
				running[l.Lease] = l
			} else if l.Allowed != nil {
				waits = append(waits, l.RetryAfterMS)
			}
		case "complete":
			reserved := running[l.Lease]
			for _, s := range reserved.Limits {
				key := limitKey{s.Entity, s.Limit}
				units := s.Requested
				if used, told := l.Actuals[0][s.Limit]; told {
					units = used
				}
				if s.Kind == "concurrency" {
					units *= min(l.AtMS-reserved.AtMS, timeouts[key])
				}
				counts[key].used.Add(&counts[key].used, big.NewInt(units))
			}
		}
	}
	for key := range maps.Keys(timeouts) {
		if timeouts[key] > 0 {
			counts[key].used.Quo(&counts[key].used, big.NewInt(1000))
		}
	}
	return counts, waits
}

// countReserve counts one reservation, and reports whether it was admitted.
func countReserve(counts map[limitKey]*counted, l *logLine) bool {
	if l.Allowed == nil {
		return false
	}
	denying := 0
	for _, s := range l.Limits {
		if s.Exceeded && !s.Shadow {
			denying++
		}
	}
	for _, s := range l.Limits {
		c := counts[limitKey{s.Entity, s.Limit}]
		others := denying
		if s.Exceeded && !s.Shadow {
			others--
		}
		if *l.Allowed {
			c.admitted++
		}
		if s.Exceeded {
			c.denied++
		}
		if s.Exceeded && others == 0 {
			c.only++
		}
	}
	return *l.Allowed
}
