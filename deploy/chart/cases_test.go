package chart

import (
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// toggles returns the values of the file testdata/toggles.yaml, by name.
func toggles(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/toggles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string, len(all))
	for name, values := range all {
		found[name] = jsonOf(t, values)
	}
	return found
}

// eachToggle renders the chart for each row of toggles.
func eachToggle(t *testing.T, check func(t *testing.T, o *objects)) {
	t.Helper()
	for name, values := range toggles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, mustRender(t, values))
		})
	}
}

// TestWhatThereIs checks which objects there are, for each toggle both ways.
func TestWhatThereIs(t *testing.T) {
	t.Parallel()
	all := toggles(t)
	always := []string{"v1 Service", "apps/v1 Deployment"}
	for name, c := range map[string][]string{
		"defaults":               {secret, account, config, claim},
		"dynamodb":               {secret, account, budget},
		"one server on a table":  {secret, account},
		"tigerbeetle":            {secret, account, config, budget},
		"no claim":               {secret, account, config},
		"a claim of its own":     {secret, account, config},
		"limits of its own":      {secret, account, claim},
		"tokens of its own":      {account, config, claim},
		"token entries":          {secret, account, config, claim},
		"no tokens":              {account, config, claim, monitor},
		"no budget":              {secret, account, config},
		"autoscaling":            {secret, account, config, budget, scaler},
		"autoscaling from one":   {secret, account, config, scaler},
		"service monitor":        {secret, account, config, claim, monitor},
		"service monitor, token": {account, config, claim, monitor},
		"alerts":                 {secret, account, config, claim, alerts},
		"network policy":         {secret, account, config, claim, network},
		"account of its own":     {secret, config, claim},
	} {
		values, ok := all[name]
		if !ok {
			t.Fatalf("%s is no toggle", name)
		}
		o := mustRender(t, values)
		want := append(slices.Clone(always), c...)
		got := make([]string, 0, len(o.texts))
		for kind := range o.texts {
			got = append(got, kind)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The kinds of objects.
const (
	alerts  = "monitoring.coreos.com/v1 PrometheusRule"
	account = "v1 ServiceAccount"
	budget  = "policy/v1 PodDisruptionBudget"
	claim   = "v1 PersistentVolumeClaim"
	config  = "v1 ConfigMap"
	monitor = "monitoring.coreos.com/v1 ServiceMonitor"
	network = "networking.k8s.io/v1 NetworkPolicy"
	scaler  = "autoscaling/v2 HorizontalPodAutoscaler"
	secret  = "v1 Secret"
)
