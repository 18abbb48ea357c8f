package replay

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/text"
)

// shownEntities is the number of entities, or resources, that a report lists one by one.
const shownEntities = 8

// LimitReport is a limit of one entity on one resource, or of several together.
type LimitReport struct {
	Entity string `json:"entity,omitempty"`
	// Group says which entities are reported together; Entities counts them.
	Group    Group `json:"group,omitempty"`
	Entities int   `json:"entities"`
	// Resource is empty if several are reported together.
	Resource   string    `json:"resource,omitempty"`
	Limit      string    `json:"limit"`
	Kind       weir.Kind `json:"kind"`
	Shadow     bool      `json:"shadow"`
	Admitted   int64     `json:"admitted"`
	Denied     int64     `json:"denied"`
	DeniedOnly int64     `json:"denied_only"`
	// Unit is the unit of Used and Available: "units", or "slot_seconds" for a concurrency limit.
	Unit        string      `json:"unit"`
	Used        *big.Int    `json:"used"`
	Available   *big.Int    `json:"available"`
	UsedPercent json.Number `json:"used_percent,omitempty"`
}

// Group names entities that are reported together; empty for one entity.
type Group string

// The groups.
const (
	Tenants Group = "tenants" // entities that make calls
	Parents Group = "parents" // entities that are only charged for others
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

// rowKey identifies a row: its limits have the same key.
type rowKey struct {
	group                   Group
	entity, resource, limit string
	kind                    weir.Kind
	shadow                  bool
}

// limitRow is a limit of one entity, or of several that are shown together.
type limitRow struct {
	rowKey

	counts []*limitCount
}

// newReport returns a report that names the row and has no figures yet.
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

// limitRows puts the limits into rows: one for each entity and resource. If there are many tenants,
// parents or resources, those that have the same limit by name and kind share a row.
func limitRows(t *callCounts) []*limitRow {
	resources, entities := map[string]bool{}, map[Group]map[string]bool{Tenants: {}, Parents: {}}
	for _, c := range t.order {
		resources[c.subject.resource] = true
		entities[groupOf(c.subject)][c.subject.entity] = true
	}
	rows := map[rowKey]*limitRow{}
	var out []*limitRow
	for _, c := range t.order {
		key := rowKey{limit: c.limit.Name, kind: c.limit.Kind, shadow: c.limit.Shadow}
		if group := groupOf(c.subject); len(entities[group]) > shownEntities {
			key.group = group
		} else {
			key.entity = c.subject.entity
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

// RowEntity is the name of a row's entity, or how many entities share the row.
func RowEntity(l *LimitReport) string {
	if l.Group == "" {
		return l.Entity
	}
	return text.Plural(l.Entities, strings.TrimSuffix(string(l.Group), "s"), string(l.Group))
}

// timeRange is the time of a replay, from the first call to the end of the last, in Unix
// milliseconds.
type timeRange struct {
	fromMS, toMS int64
}

func (s timeRange) ms() int64 { return s.toMS - s.fromMS }

// replayRange is a time range that counts the periods of each calendar once, because very many
// limits may share one.
type replayRange struct {
	timeRange

	periodsOf map[[2]string]int64 // by the calendar's period and time zone
}

func newReplayRange(s timeRange) *replayRange { return &replayRange{s, map[[2]string]int64{}} }

// available returns the units of a limit that could have been used: the capacity of a bucket and
// its refill, the capacity of a window as often as windows follow each other, the capacity of a
// budget in each period touched, and all slots of a concurrency limit all the time, in
// slot-milliseconds.
func (s *replayRange) available(l *weir.Limit) *big.Int {
	n := big.NewInt(l.Capacity)
	switch l.Kind {
	case weir.Window:
		return n.Mul(n, big.NewInt(s.ms()/l.Window.Milliseconds()+1))
	case weir.Concurrency:
		return n.Mul(n, big.NewInt(s.ms()))
	case weir.Budget:
		key := [2]string{l.Every, l.Zone}
		if s.periodsOf[key] == 0 { // at least one is touched
			s.periodsOf[key] = s.periods(l)
		}
		return n.Mul(n, big.NewInt(s.periodsOf[key]))
	}
	refill := big.NewInt(l.RefillAmount)
	refill.Mul(refill, big.NewInt(s.ms()))
	return n.Add(n, refill.Quo(refill, big.NewInt(l.RefillPeriod.Milliseconds())))
}

// periods counts the calendar periods of a budget that the range touches. A mistake in the trace
// may make it span thousands of years, so hours and days are counted one by one only where clocks
// change.
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

// evenPeriods returns how many periods of one length follow each other from at, where a period
// begins, without the last one before the clock changes or the range ends.
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
