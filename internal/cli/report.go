package cli

import (
	"encoding/json"
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// shownEntities is how many entities a report lists one by one.
const shownEntities = 8

// replayReport is what `weir replay` prints.
type replayReport struct {
	Trace      string            `json:"trace"`
	Calls      int               `json:"calls"`
	From       string            `json:"from"`
	To         string            `json:"to"`
	SpanMS     int64             `json:"span_ms"`
	Entities   int               `json:"entities"`
	Seed       uint64            `json:"seed"`
	Resource   string            `json:"resource"`
	LimitsFile string            `json:"limits_file,omitempty"`
	Latency    string            `json:"latency"`
	Costs      map[string]string `json:"costs"`
	Limits     []*limitReport    `json:"limits"`
	Totals     totalReport       `json:"totals"`
	// Live is about a replay against a server; absent in virtual time.
	Live *liveReport `json:"live,omitempty"`
	// Speed is the only part that differs between two runs of one command in virtual time.
	Speed speedReport `json:"speed"`
}

// limitReport is a limit of one entity, or of several together.
type limitReport struct {
	Entity     string      `json:"entity,omitempty"`
	Group      entityGroup `json:"group,omitempty"`
	Entities   int         `json:"entities"`
	Limit      string      `json:"limit"`
	Kind       weir.Kind   `json:"kind"`
	Shadow     bool        `json:"shadow"`
	Admitted   int64       `json:"admitted"`
	Denied     int64       `json:"denied"`
	DeniedOnly int64       `json:"denied_only"`
	// Unit is what Used and Available count: "units", or "slot_seconds" of a concurrency limit.
	Unit        string      `json:"unit"`
	Used        *big.Int    `json:"used"`
	Available   *big.Int    `json:"available"`
	UsedPercent json.Number `json:"used_percent,omitempty"`
}

// entityGroup says what the entities have in common that are reported together.
type entityGroup string

const (
	tenantGroup entityGroup = "tenants"
	parentGroup entityGroup = "parents"
)

// totalReport is about requests as wholes. Retry-afters are absent without denials.
type totalReport struct {
	Calls           int64       `json:"calls"`
	Admitted        int64       `json:"admitted"`
	Denied          int64       `json:"denied"`
	Errors          int64       `json:"errors"`
	AdmittedPercent json.Number `json:"admitted_percent"`
	DeniedPercent   json.Number `json:"denied_percent"`
	TokensAdmitted  *big.Int    `json:"tokens_admitted"`
	TokensDenied    *big.Int    `json:"tokens_denied"`
	RetryAfterP50MS *int64      `json:"retry_after_p50_ms,omitempty"`
	RetryAfterP95MS *int64      `json:"retry_after_p95_ms,omitempty"`
}

// speedReport says how quick the replay was.
type speedReport struct {
	WallMS              int64 `json:"wall_ms"`
	Operations          int64 `json:"operations"`
	OperationsPerSecond int64 `json:"operations_per_second"`
}

func newSpeedReport(operations int64, wall time.Duration) speedReport {
	perSecond, ok := multiply(operations, int64(time.Second))
	if !ok {
		perSecond = operations
	}
	return speedReport{wall.Milliseconds(), operations, perSecond / max(int64(wall), 1)}
}

func newTotalReport(t *tally) totalReport {
	c := &t.totals
	out := totalReport{
		Calls: c.calls, Admitted: c.admitted, Denied: c.denied, Errors: c.faults,
		AdmittedPercent: percent(big.NewInt(c.admitted), big.NewInt(c.calls)),
		DeniedPercent:   percent(big.NewInt(c.denied), big.NewInt(c.calls)),
		TokensAdmitted:  &c.tokensAdmitted, TokensDenied: &c.tokensDenied,
	}
	if waits := t.sortedWaits(); len(waits) > 0 {
		out.RetryAfterP50MS = new(quantile(waits, 50))
		out.RetryAfterP95MS = new(quantile(waits, 95))
	}
	return out
}

// limitReports makes the rows of a report.
func limitReports(t *tally, s span) []*limitReport {
	out := []*limitReport{}
	for _, r := range limitRows(t) {
		first := r.counts[0].limit
		row := &limitReport{
			Entity: r.entity, Group: r.group, Entities: len(r.counts), Limit: first.Name,
			Kind: first.Kind, Shadow: first.Shadow, Unit: "units",
			Used: new(big.Int), Available: new(big.Int),
		}
		for _, c := range r.counts {
			row.Admitted += c.admitted
			row.Denied += c.denied
			row.DeniedOnly += c.only
			row.Used.Add(row.Used, &c.used)
			if !c.appeared {
				row.Available.Add(row.Available, s.available(c.limit))
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

// limitRow is a limit of one entity, or of several that are shown together.
type limitRow struct {
	entity string
	group  entityGroup // empty for one entity
	counts []*limitCount
}

// limitRows puts the limits into rows: one for each entity, or, where there are many tenants or
// many parents, one for all of them that have the same limit by name and kind.
func limitRows(t *tally) []*limitRow {
	many := manyEntities(t)
	type rowKey struct {
		group  entityGroup
		entity string
		limit  string
		kind   weir.Kind
		shadow bool
	}
	rows := map[rowKey]*limitRow{}
	var out []*limitRow
	for _, c := range t.order {
		key := rowKey{limit: c.limit.Name, kind: c.limit.Kind, shadow: c.limit.Shadow}
		if key.group = groupOf(c.subject); !many[key.group] {
			key.group, key.entity = "", c.subject.entity
		}
		row := rows[key]
		if row == nil {
			row = &limitRow{entity: key.entity, group: key.group}
			rows[key] = row
			out = append(out, row)
		}
		row.counts = append(row.counts, c)
	}
	return out
}

func groupOf(s *subject) entityGroup {
	if s.tenant == noTenant {
		return parentGroup
	}
	return tenantGroup
}

// manyEntities says which groups have more entities than are shown one by one.
func manyEntities(t *tally) map[entityGroup]bool {
	seen := map[*subject]bool{}
	count := map[entityGroup]int{}
	for _, c := range t.order {
		if !seen[c.subject] {
			seen[c.subject] = true
			count[groupOf(c.subject)]++
		}
	}
	many := map[entityGroup]bool{}
	for g, n := range count {
		many[g] = n > shownEntities
	}
	return many
}

// percent is a share with one decimal, rounded down; empty where there is no whole.
func percent(part, whole *big.Int) json.Number {
	if whole.Sign() == 0 {
		return ""
	}
	n := new(big.Int).Mul(part, big.NewInt(1000))
	n.Quo(n, whole)
	tenths := new(big.Int)
	n.QuoRem(n, big.NewInt(10), tenths)
	return json.Number(n.String() + "." + tenths.String())
}
