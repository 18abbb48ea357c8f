package chart

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestNames checks the names and namespaces of all objects.
func TestNames(t *testing.T) {
	t.Parallel()
	eachToggle(t, func(t *testing.T, o *objects) {
		for _, m := range o.all {
			if wrong := validation.IsDNS1035Label(m.GetName()); len(wrong) > 0 {
				t.Errorf("%q: %q", m.GetName(), wrong)
			}
			if m.GetNamespace() != "limits" {
				t.Errorf("%s: its namespace is %q", m.GetName(), m.GetNamespace())
			}
			for key, value := range m.GetLabels() {
				wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
				if len(wrong) > 0 {
					t.Errorf("%s: label %s=%s: %q", m.GetName(), key, value, wrong)
				}
			}
		}
	})
}

// TestSelectors checks that everything that selects pods selects those of the Deployment, and
// that a second release's are not selected.
func TestSelectors(t *testing.T) {
	t.Parallel()
	eachToggle(t, func(t *testing.T, o *objects) {
		labels := o.deployment.Spec.Template.Labels
		selectors := map[string]map[string]string{
			"Deployment": o.deployment.Spec.Selector.MatchLabels, "Service": o.service.Spec.Selector,
		}
		if o.budget != nil {
			selectors["PodDisruptionBudget"] = o.budget.Spec.Selector.MatchLabels
		}
		if o.network != nil {
			selectors["NetworkPolicy"] = o.network.Spec.PodSelector.MatchLabels
		}
		for _, c := range o.deployment.Spec.Template.Spec.TopologySpreadConstraints {
			if c.LabelSelector != nil {
				selectors["spread"] = c.LabelSelector.MatchLabels
			}
		}
		for of, selector := range selectors {
			if !within(selector, labels) || selector["app.kubernetes.io/instance"] != "weir" {
				t.Errorf("%s: selects %v, pods have %v", of, selector, labels)
			}
		}
		if o.monitor != nil && !within(o.monitor.Spec.Selector.MatchLabels, o.service.Labels) {
			t.Errorf("ServiceMonitor: selects %v of %v", o.monitor.Spec.Selector, o.service.Labels)
		}
		if o.scaler != nil && (o.scaler.Spec.ScaleTargetRef.Name != o.deployment.Name ||
			o.scaler.Spec.ScaleTargetRef.Kind != "Deployment" || o.deployment.Spec.Replicas != nil) {
			t.Errorf("HorizontalPodAutoscaler: %+v", o.scaler.Spec.ScaleTargetRef)
		}
	})
}

// within reports whether a selector is not empty, and all of it is in the labels.
func within(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// TestPorts checks that each port that has a name in one place has it in the container or
// Service.
func TestPorts(t *testing.T) {
	t.Parallel()
	eachToggle(t, func(t *testing.T, o *objects) {
		container, service := map[string]int32{}, map[string]bool{}
		for _, p := range o.container().Ports {
			container[p.Name] = p.ContainerPort
		}
		for _, p := range o.service.Spec.Ports {
			service[p.Name] = true
			if p.TargetPort.Type != intstr.String || container[p.TargetPort.StrVal] == 0 {
				t.Errorf("Service: %s goes to %v", p.Name, p.TargetPort)
			}
		}
		c := o.container()
		for name, probe := range map[string]*core.Probe{
			"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe,
		} {
			if probe.HTTPGet.Port.StrVal != "probe" {
				t.Errorf("%s: asks port %v", name, probe.HTTPGet.Port)
			}
			if tls := hasArg(c, "--tls-cert="); tls != (probe.HTTPGet.Scheme == core.URISchemeHTTPS) {
				t.Errorf("%s: asks by %s, TLS is %t", name, probe.HTTPGet.Scheme, tls)
			}
		}
		if !hasArg(c, fmt.Sprintf("--listen=:%d", container["http"])) ||
			!hasArg(c, fmt.Sprintf("--probe-listen=:%d", container["probe"])) {
			t.Errorf("the ports are %v, the arguments %q", container, c.Args)
		}
		if o.network != nil {
			for _, rule := range o.network.Spec.Ingress {
				for _, p := range rule.Ports {
					if container[p.Port.StrVal] == 0 {
						t.Errorf("NetworkPolicy: port %v", p.Port)
					}
				}
			}
		}
		if o.monitor != nil && !service[o.monitor.Spec.Endpoints[0].Port] {
			t.Errorf("ServiceMonitor: port %s of %v", o.monitor.Spec.Endpoints[0].Port, service)
		}
	})
}

// hasArg reports whether an argument of the program begins with a prefix.
func hasArg(c *core.Container, prefix string) bool {
	return slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, prefix) })
}

// TestMounts checks that each mount has a volume, whose object is one of the chart's or named by
// the values, that only the state can be written, and that no file is mounted alone, because
// such a file is not changed while the pod runs.
func TestMounts(t *testing.T) {
	t.Parallel()
	eachToggle(t, func(t *testing.T, o *objects) {
		volumes := map[string]*core.Volume{}
		for i := range o.deployment.Spec.Template.Spec.Volumes {
			v := &o.deployment.Spec.Template.Spec.Volumes[i]
			volumes[v.Name] = v
		}
		for _, m := range o.container().VolumeMounts {
			v := volumes[m.Name]
			delete(volumes, m.Name)
			if v == nil {
				t.Errorf("mount %s has no volume", m.Name)
				continue
			}
			if m.SubPath != "" || m.SubPathExpr != "" || m.ReadOnly == (m.Name == "state") {
				t.Errorf("mount %+v", m)
			}
			if got := sourceOf(v); got != "" && got != "mine" && !o.has(got) {
				t.Errorf("volume %s is of %s, which is not there", v.Name, got)
			}
		}
		for name := range volumes {
			t.Errorf("volume %s is not mounted", name)
		}
	})
}

// sourceOf returns the name of the object in which a volume's contents are, or "" if it has
// none.
func sourceOf(v *core.Volume) string {
	switch {
	case v.ConfigMap != nil:
		return v.ConfigMap.Name
	case v.Secret != nil:
		return v.Secret.SecretName
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// has reports whether there is an object of a name that can be mounted.
func (o *objects) has(name string) bool {
	return o.limits != nil && o.limits.Name == name || o.tokens != nil && o.tokens.Name == name ||
		o.claim != nil && o.claim.Name == name
}

// TestSecurity checks what the restricted policy of Kubernetes asks for, except for the system
// calls of TigerBeetle's client, and that no secret is anywhere but in the Secret.
func TestSecurity(t *testing.T) {
	t.Parallel()
	eachToggle(t, func(t *testing.T, o *objects) {
		pod, c := o.deployment.Spec.Template.Spec, o.container()
		s := c.SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 ||
			!*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation ||
			!slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("pod %+v, container %+v", pod.SecurityContext, s)
		}
		onCluster := hasArg(c, "--store=tigerbeetle:")
		profile := pod.SecurityContext.SeccompProfile.Type
		if onCluster != (profile == core.SeccompProfileTypeUnconfined) {
			t.Errorf("seccomp is %s, on TigerBeetle %t", profile, onCluster)
		}
		if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks || pod.HostNetwork {
			t.Error("the pod gets more than it needs")
		}
		if hasArg(c, "--tokens=") == hasArg(c, "--insecure-no-tokens") {
			t.Errorf("either bearer tokens or none: %q", c.Args)
		}
		if o.tokens == nil {
			return
		}
		for key, data := range o.tokens.Data {
			for kind, text := range o.texts {
				if kind == secret {
					text = o.notes
				}
				for _, leak := range []string{string(data), base64.StdEncoding.EncodeToString(data)} {
					if strings.Contains(text, leak) {
						t.Errorf("%s, or the notes, have the secret of the key %s", kind, key)
					}
				}
			}
		}
	})
}

// TestRollout checks how servers are replaced: with a file exactly one at a time, and else so
// that all that were asked for serve.
func TestRollout(t *testing.T) {
	t.Parallel()
	eachToggle(t, func(t *testing.T, o *objects) {
		d := o.deployment.Spec
		inMemory := hasArg(o.container(), "--store=memory:")
		if inMemory != (d.Strategy.Type == "Recreate") || inMemory && *d.Replicas > 1 {
			t.Errorf("strategy %s, in memory %t", d.Strategy.Type, inMemory)
		}
		if inMemory && (o.budget != nil || o.scaler != nil) {
			t.Error("one server has a budget or is scaled")
		}
		if o.budget != nil && d.Replicas != nil && *d.Replicas < 2 {
			t.Error("a budget of one server forbids every drain of its node")
		}
		delay, timeout := seconds(t, o, "--shutdown-delay="), seconds(t, o, "--shutdown-timeout=")
		if grace := *d.Template.Spec.TerminationGracePeriodSeconds; grace < delay+timeout+10 {
			t.Errorf("killed after %d s, but may need %d and %d", grace, delay, timeout)
		}
		if !inMemory && delay < 2 {
			t.Errorf("%d s are too short to be taken out of the Service", delay)
		}
	})
}

// seconds returns the seconds of an argument, or 0 if it is not there.
func seconds(t *testing.T, o *objects, flag string) int64 {
	t.Helper()
	for _, a := range o.container().Args {
		if text, ok := strings.CutPrefix(a, flag); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			return int64(d / time.Second)
		}
	}
	return 0
}

// TestKept checks that a second rendering with the same values gives the same objects, except
// for random bearer tokens.
func TestKept(t *testing.T) {
	t.Parallel()
	for name, values := range toggles(t) {
		a, b := mustRender(t, values), mustRender(t, values)
		if a.tokens != nil && a.tokens.Data["call"] != nil {
			if bytes.Equal(a.tokens.Data["call"], b.tokens.Data["call"]) {
				t.Errorf("%s: the bearer token is not random", name)
			}
			delete(a.texts, secret)
			delete(b.texts, secret)
		}
		if !maps.Equal(a.texts, b.texts) {
			t.Errorf("%s: differs", name)
		}
	}
}
