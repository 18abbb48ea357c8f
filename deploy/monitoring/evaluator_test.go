package monitoring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// rulesFile has the rules that the tests are about.
const rulesFile = "weir.rules.yaml"

var errNotVector = errors.New("the query returns neither a vector nor a scalar")

// readRules reads a file of rules as Prometheus does, and refuses unknown fields.
func readRules(t *testing.T, file string) *rulefmt.RuleGroups {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(data, false, model.UTF8Validation, newParser(), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatalf("%s: %v", file, errors.Join(errs...))
	}
	return groups
}

// evaluator evaluates rules at instants that only grow, as a Prometheus does. Prometheus's own
// package for that would bring a hundred modules, most of them for service discovery.
type evaluator struct {
	archive *archive
	engine  *promql.Engine
	groups  []rulefmt.RuleGroup
	// since is when each alert, by its labels, began to be pending; resolved alerts are not in it.
	since map[string]time.Time
	// said are the annotations of the alerts that fired last, by name.
	said map[string]map[string]string
}

func newEvaluator(rules *rulefmt.RuleGroups) *evaluator {
	return &evaluator{
		archive: newArchive(), engine: newEngine(), groups: rules.Groups,
		since: map[string]time.Time{}, said: map[string]map[string]string{},
	}
}

// evaluate evaluates all rules in their order at an instant, and stores what they make: the series
// of recording rules, and ALERTS.
func (e *evaluator) evaluate(ctx context.Context, at time.Time) error {
	for g := range e.groups {
		for i := range e.groups[g].Rules {
			r := &e.groups[g].Rules[i]
			got, err := query(ctx, e.engine, e.archive, r.Expr, at)
			if err != nil {
				return fmt.Errorf("%s%s: %w", r.Record, r.Alert, err)
			}
			if r.Record != "" {
				err = e.record(r, at, got)
			} else {
				err = e.alert(ctx, r, at, got)
			}
			if err != nil {
				return fmt.Errorf("%s%s: %w", r.Record, r.Alert, err)
			}
		}
	}
	return nil
}

// record stores the result of a recording rule.
func (e *evaluator) record(r *rulefmt.Rule, at time.Time, got promql.Vector) error {
	seen := map[string]bool{}
	for i := range got {
		b := labels.NewBuilder(got[i].Metric).Set(model.MetricNameLabel, r.Record)
		for name, v := range r.Labels {
			b.Set(name, v)
		}
		got[i].Metric = b.Labels()
		if key := got[i].Metric.String(); seen[key] {
			return fmt.Errorf("two series %s", key)
		}
		seen[got[i].Metric.String()] = true
	}
	e.archive.write(r.Record, at, got)
	return nil
}

// alert advances the alerts of a rule: each is pending for the rule's time, and then fires.
func (e *evaluator) alert(ctx context.Context, r *rulefmt.Rule, at time.Time, got promql.Vector) error {
	found := map[string]bool{}
	var states promql.Vector
	for i := range got {
		b := labels.NewBuilder(got[i].Metric).Set(model.MetricNameLabel, "ALERTS").Set("alertname", r.Alert)
		for name, v := range r.Labels {
			b.Set(name, v)
		}
		key := b.Labels().String()
		if found[key] {
			return fmt.Errorf("two alerts %s", key)
		}
		found[key] = true
		if _, pending := e.since[key]; !pending {
			e.since[key] = at
		}
		state := "pending"
		if at.Sub(e.since[key]) >= time.Duration(r.For) {
			state = "firing"
			if err := e.say(ctx, r, at, got[i]); err != nil {
				return err
			}
		}
		states = append(states, promql.Sample{Metric: b.Set("alertstate", state).Labels(), F: 1})
	}
	mine := fmt.Sprintf(`alertname=%q`, r.Alert)
	for key := range e.since {
		if strings.Contains(key, mine) && !found[key] {
			delete(e.since, key)
		}
	}
	e.archive.write(r.Alert, at, states)
	return nil
}

// say expands the annotations of an alert.
func (e *evaluator) say(ctx context.Context, r *rulefmt.Rule, at time.Time, of promql.Sample) error {
	said := map[string]string{}
	data := template.AlertTemplateData(of.Metric.Map(), nil, "", of)
	for name, text := range r.Annotations {
		expander := template.NewTemplateExpander(ctx,
			"{{$labels := .Labels}}{{$value := .Value}}"+text, name, data, model.TimeFromUnixNano(at.UnixNano()),
			nil, &url.URL{}, nil)
		var err error
		if said[name], err = expander.Expand(); err != nil {
			return err
		}
	}
	e.said[r.Alert] = said
	return nil
}

// firing returns the names of the alerts that fire at an instant at which the rules were evaluated.
func (e *evaluator) firing(ctx context.Context, at time.Time) ([]string, error) {
	got, err := query(ctx, e.engine, e.archive, `group by (alertname) (ALERTS{alertstate="firing"})`, at)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, s := range got {
		names[s.Metric.Get("alertname")] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// alertNames returns the names of all alerts.
func alertNames(rules *rulefmt.RuleGroups) []string {
	var out []string
	for g := range rules.Groups {
		for i := range rules.Groups[g].Rules {
			if name := rules.Groups[g].Rules[i].Alert; name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}
