package chart

import (
	"strings"
	"testing"
)

// TestRefused checks that mistakes in values are refused, with a message that names the value.
func TestRefused(t *testing.T) {
	t.Parallel()
	onTable := "store: {kind: dynamodb, dynamodb: {table: limits}}\n"
	for values, want := range map[string]string{
		// By the schema.
		"store: {kind: redis}":                          "'/store/kind': value must be one of 'memory', 'dynamodb', 'tigerbeetle'",
		"stor: {kind: memory}":                          "additional properties 'stor' not allowed",
		"store: {dynamodb: {tabel: limits}}":            "additional properties 'tabel' not allowed",
		"replicas: two":                                 "'/replicas': got string, want null or integer",
		"replicas: -1":                                  "'/replicas': minimum",
		"store: {tigerbeetle: {cluster: 7}}":            "'/store/tigerbeetle/cluster': got number, want string",
		"store: {tigerbeetle: {addresses: [10.0.0.1]}}": "'/store/tigerbeetle/addresses/0': '10.0.0.1' does not match pattern",
		"store: {tigerbeetle: {addresses: 'a:1,b:2'}}":  "'/store/tigerbeetle/addresses': got string, want array",
		"store: {query: '?usage_days=9'}":               "'/store/query'",
		"store: {memory: {persistence: {size: big}}}":   "'/store/memory/persistence/size'",
		"limits: {file: {version: 1}}":                  "'/limits/file': got object, want string",
		"tokens: {entries: [{name: a, role: call}]}":    "'/tokens/entries/0': missing property 'sha256'",
		"tokens: {entries: [" + entry("king") + "]}":    "'/tokens/entries/0/role': value must be one of 'read', 'call', 'admin'",
		"tokens: {entries: [" + plain + "]}":            "'/tokens/entries/0': additional properties 'token' not allowed",
		"tls: {secretName: mine}":                       "'/tls': additional properties 'secretName' not allowed",
		"server: {logLevel: trace}":                     "'/server/logLevel': value must be one of",
		"server: {shutdownTimeoutSeconds: 0}":           "'/server/shutdownTimeoutSeconds': minimum",
		"extraArgs: [max-leases=5]":                     "'/extraArgs/0': 'max-leases=5' does not match pattern",
		"extraArgs: --max-leases=5":                     "'/extraArgs': got string, want array",
		"extraEnv: [{value: a}]":                        "'/extraEnv/0': missing property 'name'",
		"service: {type: ExternalName}":                 "'/service/type': value must be one of",
		"service: {port: 70000}":                        "'/service/port': maximum",
		"service: {annotations: {a: true}}":             "'/service/annotations/a': got boolean, want string",
		"probes: {readiness: {path: /metrics}}":         "'/probes/readiness/path': value must be one of",
		"image: {digest: latest}":                       "'/image/digest'",
		"fullnameOverride: Weir":                        "'/fullnameOverride': 'Weir' does not match pattern",
		"serviceMonitor: {enabled: yes please}":         "'/serviceMonitor/enabled': got string, want boolean",
		"serviceMonitor: {interval: often}":             "'/serviceMonitor/interval'",
		"networkPolicy: {clients: []}":                  "'/networkPolicy/clients': minItems: got 0, want 1",
		"podDisruptionBudget: {maxUnavailable: 0}":      "'/podDisruptionBudget/maxUnavailable': minimum",
		"podDisruptionBudget: {maxUnavailable: most}":   "'/podDisruptionBudget/maxUnavailable'",
		"autoscaling: {targetCPU: 70}":                  "'/autoscaling': additional properties 'targetCPU' not allowed",
		"resources: {memory: 1Gi}":                      "'/resources': additional properties 'memory' not allowed",
		"seccompProfile: {type: none}":                  "'/seccompProfile/type': value must be one of",
		// By the templates, because several values do not go together.
		"replicas: 2":                                                                 "replicas: the memory store is for exactly one server",
		"autoscaling: {enabled: true}":                                                "autoscaling.enabled: the memory store is for exactly one server",
		"store: {kind: dynamodb}":                                                     "store.dynamodb.table: name the table",
		"store: {kind: tigerbeetle}":                                                  "store.tigerbeetle.addresses: give HOST:PORT",
		onTable + "limits: {file: 'version: 1'}":                                      "limits: on DynamoDB the limits are in the table",
		onTable + "limits: {existingConfigMap: mine}":                                 "limits: on DynamoDB the limits are in the table",
		"limits: {file: a, existingConfigMap: b}":                                     "limits: give limits.file or limits.existingConfigMap, not both",
		"tokens: {existingSecret: a, entries: [" + entry("call") + "]}":               "tokens: give tokens.existingSecret or tokens.entries",
		"tokens: {existingSecret: a, insecureNone: true}":                             "tokens.insecureNone: there are bearer tokens",
		onTable + "autoscaling: {enabled: true, minReplicas: 11}":                     "autoscaling.minReplicas: is above maxReplicas",
		"probes: {port: 7117}":                                                        "probes.port: 7117 is the port of the server",
		"probes: {port: 80}\nservice: {port: 80}\nserviceMonitor: {enabled: true}":    "probes.port: is the Service's port too",
		"serviceMonitor: {enabled: true}\ntokens: {existingSecret: a}":                "serviceMonitor.tokenSecret.name: name a Secret",
		"serviceMonitor: {enabled: true}\ntokens: {entries: [" + entry("call") + "]}": "serviceMonitor.tokenSecret.name: name a Secret",
	} {
		if _, _, err := render(t, "weir", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
}

// entry is an entry of a file of bearer tokens.
func entry(role string) string { return "{name: a, role: " + role + ", sha256: " + sum + "}" }

// plain is an entry with a bearer token, which must not be in values.
const plain = "{name: a, role: call, sha256: " + sum + ", token: 0123456789abcdef}"

// TestLongNames checks that a long name of a release gives names that are short enough.
func TestLongNames(t *testing.T) {
	t.Parallel()
	release := strings.Repeat("release-", 6) + "12345" // Helm allows 53 characters
	files, _, err := render(t, release, "{}")
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{texts: map[string]string{}}
	for name, text := range files {
		o.add(t, name, text)
	}
	for _, m := range o.all {
		if n := len(m.GetName()); n > 63 || strings.HasSuffix(m.GetName(), "-") {
			t.Errorf("%s has %d characters", m.GetName(), n)
		}
	}
}
