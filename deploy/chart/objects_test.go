package chart

import (
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// objects are the objects of a rendered chart. Those that it does not have are nil.
type objects struct {
	notes string
	texts map[string]string // as YAML, by API version and kind
	all   []meta.Object

	deployment *apps.Deployment
	service    *core.Service
	account    *core.ServiceAccount
	limits     *core.ConfigMap
	tokens     *core.Secret
	claim      *core.PersistentVolumeClaim
	budget     *policy.PodDisruptionBudget
	scaler     *autoscaling.HorizontalPodAutoscaler
	network    *networking.NetworkPolicy
	monitor    *monitoring.ServiceMonitor
	rule       *monitoring.PrometheusRule
}

// add reads an object into the type that Kubernetes has for it. A field that the type does not
// have, and one that is given twice, is an error.
func (o *objects) add(t *testing.T, name, text string) {
	t.Helper()
	kind := kindOf(t, name, text)
	if o.texts[kind] != "" {
		t.Fatalf("%s: a second %s", name, kind)
	}
	o.texts[kind] = text
	var into meta.Object
	switch kind {
	case "apps/v1 Deployment":
		into = read(&o.deployment)
	case "v1 Service":
		into = read(&o.service)
	case account:
		into = read(&o.account)
	case config:
		into = read(&o.limits)
	case secret:
		into = read(&o.tokens)
	case claim:
		into = read(&o.claim)
	case budget:
		into = read(&o.budget)
	case scaler:
		into = read(&o.scaler)
	case network:
		into = read(&o.network)
	case monitor:
		into = read(&o.monitor)
	case alerts:
		into = read(&o.rule)
	default:
		t.Fatalf("%s: unknown kind %q", name, kind)
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	o.all = append(o.all, into)
}

// read makes a new object, puts it in place, and returns it.
func read[T any](place **T) *T {
	*place = new(T)
	return *place
}

// container returns the only container.
func (o *objects) container() *core.Container {
	return &o.deployment.Spec.Template.Spec.Containers[0]
}
