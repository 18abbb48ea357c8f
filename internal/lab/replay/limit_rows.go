package replay

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/text"
)

// shownEntities is how many entities, or resources, a report lists one by one.
const shownEntities = 8

// LimitReport is a limit of one entity on one resource, or of several together.
type LimitReport struct {
	Entity string `json:"entity,omitempty"`
	// Group says what the entities have in common that are reported together; Entities counts them.
	Group    Group `json:"group,omitempty"`
	Entities int   `json:"entities"`
	// Resource is empty where several are reported together.
	Resource   string    `json:"resource,omitempty"`
	Limit      string    `json:"limit"`
	Kind       weir.Kind `json:"kind"`
	Shadow     bool      `json:"shadow"`
	Admitted   int64     `json:"admitted"`
	Denied     int64     `json:"denied"`
	DeniedOnly int64     `json:"denied_only"`
	// Unit is what Used and Available count: "units", or "slot_seconds" of a concurrency limit.
	Unit        string      `json:"unit"`
	Used        *big.Int    `json:"used"`
	Available   *big.Int    `json:"available"`
	UsedPercent json.Number `json:"used_percent,omitempty"`
}

// Group says what entities have in common that are reported together; empty for one entity.
type Group string

// The groups.
const (
	Tenants Group = "tenants" // who makes calls
	Parents Group = "parents" // who is only charged for others
)

// limitReports makes the rows of a report.
func limitReports(t *callCounts, s timeRange) []*LimitReport {
	out := []*LimitReport{}
	of := newReplayRange(s)
	for _, r := range limitRows(t) {
		row := r.newReport()
		row.Unit, row.Used, row.Available = "units", new(big.Int), new(big.Int)
		for _, c := range r.counts {
			row.Admitted += c.admitted
			row.Denied += c.denied
			row.DeniedOnly += c.only
			row.Used.Add(row.Used, &c.used)
			if !c.appeared {
				row.Available.Add(row.Available, of.available(c.limit))
			}
		}
		row.UsedPercent = percent(row.Used, row.Available)
		if row.Kind == weir.Concurrency {
			row.Unit = "slot_seconds"
			row.Used.Quo(row.Used, big.NewInt(1000))
			row.Available.Quo(row.Available, big.NewInt(1000))
		}
		out = append(out, row)
	}
	return out
}

// rowKey is what the limits of a row have in common.
type rowKey struct {
	group    Group
	entity   string
	resource string
	limit    string
	kind     weir.Kind
	shadow   bool
}

// limitRow is a limit of one entity, or of several that are shown together.
type limitRow struct {
	rowKey

	counts []*limitCount
}

// newReport is a report that says which row it is, and nothing else yet.
func (r *limitRow) newReport() *LimitReport {
	entities := map[string]bool{}
	for _, c := range r.counts {
		entities[c.subject.entity] = true
	}
	return &LimitReport{
		Entity: r.entity, Group: r.group, Entities: len(entities), Resource: r.resource,
		Limit: r.limit, Kind: r.kind, Shadow: r.shadow,
	}
}

// limitRows puts the limits into rows: one for each entity and resource, or, where there are many
// tenants, parents or resources, one for all of them that have the same limit by name and kind.
func limitRows(t *callCounts) []*limitRow {
	many := manyEntities(t)
	resources := map[string]bool{}
	for _, c := range t.order {
		resources[c.subject.resource] = true
	}
	rows := map[rowKey]*limitRow{}
	var out []*limitRow
	for _, c := range t.order {
		key := rowKey{limit: c.limit.Name, kind: c.limit.Kind, shadow: c.limit.Shadow}
		if key.group = groupOf(c.subject); !many[key.group] {
			key.group, key.entity = "", c.subject.entity
		}
		if len(resources) <= shownEntities {
			key.resource = c.subject.resource
		}
		row := rows[key]
		if row == nil {
			row = &limitRow{rowKey: key}
			rows[key] = row
			out = append(out, row)
		}
		row.counts = append(row.counts, c)
	}
	return out
}

func groupOf(s *subject) Group {
	if s.caller {
		return Tenants
	}
	return Parents
}

// manyEntities says which groups have more entities than are shown one by one.
func manyEntities(t *callCounts) map[Group]bool {
	seen := map[string]bool{}
	count := map[Group]int{}
	for _, c := range t.order {
		if !seen[c.subject.entity] {
			seen[c.subject.entity] = true
			count[groupOf(c.subject)]++
		}
	}
	many := map[Group]bool{}
	for g, n := range count {
		many[g] = n > shownEntities
	}
	return many
}

// timeRange is the time of a replay: from the first call to the end of the last, in Unix
// milliseconds.
type timeRange struct {
	fromMS, toMS int64
}

func (s timeRange) ms() int64 { return s.toMS - s.fromMS }

// replayRange is a span that counts the periods of each calendar once: very many limits may share
// one.
type replayRange struct {
	timeRange

	periodsOf map[calendar]int64
}

type calendar struct{ every, zone string }

func newReplayRange(s timeRange) *replayRange { return &replayRange{s, map[calendar]int64{}} }

// counted is how many calendar periods of a budget the span touches.
func (s *replayRange) counted(l *weir.Limit) int64 {
	key := calendar{l.Every, l.Zone}
	n, known := s.periodsOf[key]
	if !known {
		n = s.periods(l)
		s.periodsOf[key] = n
	}
	return n
}

// available is how much of a limit could have been used within the span: a bucket's capacity and
// what it regains, a window's capacity as often as a window begins, one after the other, a budget's
// capacity in each period touched, and a concurrency limit's slots all the time, in
// slot-milliseconds.
func (s *replayRange) available(l *weir.Limit) *big.Int {
	n := big.NewInt(l.Capacity)
	switch l.Kind {
	case weir.Window:
		return n.Mul(n, big.NewInt(s.ms()/l.Window.Milliseconds()+1))
	case weir.Concurrency:
		return n.Mul(n, big.NewInt(s.ms()))
	case weir.Budget:
		return n.Mul(n, big.NewInt(s.counted(l)))
	}
	refill := big.NewInt(l.RefillAmount)
	refill.Mul(refill, big.NewInt(s.ms()))
	refill.Quo(refill, big.NewInt(l.RefillPeriod.Milliseconds()))
	return n.Add(n, refill)
}

// periods counts the calendar periods of a budget that the span touches. It may span thousands of
// years by a slip of the trace, so hours and days are counted one by one only where clocks change.
func (s timeRange) periods(l *weir.Limit) int64 {
	n := int64(0)
	to := time.UnixMilli(s.toMS)
	for at, _ := l.Period(time.UnixMilli(s.fromMS)); !at.After(to); {
		even, lengthMS := evenPeriods(l, at, to)
		n += even + 1
		_, at = l.Period(time.UnixMilli(at.UnixMilli() + even*lengthMS))
	}
	return n
}

// evenPeriods is how many periods of one length begin at an instant, one after the other, before
// the clock changes and before the last that is wanted. A period begins at that instant.
func evenPeriods(l *weir.Limit, at, to time.Time) (n, lengthMS int64) {
	sinceMidnight := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute +
		time.Duration(at.Second())*time.Second
	length := map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour}[l.Every]
	if length == 0 || sinceMidnight%length != 0 {
		return 0, 0
	}
	if _, change := at.ZoneBounds(); !change.IsZero() && change.Before(to) {
		to = change
	}
	lengthMS = length.Milliseconds()
	return max(to.UnixMilli()-at.UnixMilli()-1, 0) / lengthMS, lengthMS
}

// RowEntity is what a row calls its entities.
func RowEntity(l *LimitReport) string {
	if l.Group == "" {
		return l.Entity
	}
	return text.Plural(l.Entities, strings.TrimSuffix(string(l.Group), "s"), string(l.Group))
}
