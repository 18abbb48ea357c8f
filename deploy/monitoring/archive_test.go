package monitoring

import (
	"context"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// archive keeps samples in memory, as Prometheus stores them. It implements [storage.Queryable].
type archive struct {
	series map[string]*stored
	// wrote has the series that each writer, a scrape or a rule, wrote last.
	wrote map[string]map[string]bool
}

// stored is one series with its samples, oldest first.
type stored struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newArchive() *archive {
	return &archive{series: map[string]*stored{}, wrote: map[string]map[string]bool{}}
}

// point is a value of a series at an instant in Unix milliseconds. It implements [chunks.Sample].
type point struct {
	at    int64
	value float64
}

func (p point) T() int64                      { return p.at }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

// add stores a sample that is newer than all others of its series.
func (a *archive) add(at time.Time, of labels.Labels, v float64) {
	key := of.String()
	s := a.series[key]
	if s == nil {
		s = &stored{labels: of}
		a.series[key] = s
	}
	s.samples = append(s.samples, point{at.UnixMilli(), v})
}

// write stores all that a scrape or a rule found at an instant. As in Prometheus, a series that the
// writer wrote before and did not find now has ended.
func (a *archive) write(writer string, at time.Time, found promql.Vector) {
	now := map[string]bool{}
	for _, s := range found {
		a.add(at, s.Metric, s.F)
		now[s.Metric.String()] = true
	}
	for key := range a.wrote[writer] {
		if !now[key] {
			a.add(at, a.series[key].labels, math.Float64frombits(value.StaleNaN))
		}
	}
	a.wrote[writer] = now
}

// Querier implements [storage.Queryable].
func (a *archive) Querier(from, to int64) (storage.Querier, error) {
	return &querier{archive: a, from: from, to: to}, nil
}

// querier reads an archive between two instants, both included.
type querier struct {
	archive  *archive
	from, to int64
}

func (q *querier) Select(
	_ context.Context, _ bool, _ *storage.SelectHints, of ...*labels.Matcher,
) storage.SeriesSet {
	set := &seriesSet{at: -1}
	for _, key := range slices.Sorted(maps.Keys(q.archive.series)) {
		s := q.archive.series[key]
		if slices.ContainsFunc(of, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			continue
		}
		begin := sort.Search(len(s.samples), func(i int) bool { return s.samples[i].T() >= q.from })
		end := sort.Search(len(s.samples), func(i int) bool { return s.samples[i].T() > q.to })
		if begin < end {
			set.series = append(set.series, storage.NewListSeries(s.labels, s.samples[begin:end]))
		}
	}
	return set
}

func (q *querier) LabelValues(
	context.Context, string, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) LabelNames(
	context.Context, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) Close() error { return nil }

// seriesSet is a list of series as a [storage.SeriesSet].
type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// newParser returns the parser of PromQL without experimental features.
func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// newEngine returns an engine with the defaults of Prometheus.
func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: newParser(),
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
}

// query evaluates an expression at an instant.
func query(
	ctx context.Context, e *promql.Engine, a *archive, expr string, at time.Time,
) (promql.Vector, error) {
	q, err := e.NewInstantQuery(ctx, a, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	got := q.Exec(ctx)
	if got.Err != nil {
		return nil, got.Err
	}
	switch v := got.Value.(type) {
	case promql.Vector:
		return slices.Clone(v), nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	default:
		return nil, errNotVector
	}
}
