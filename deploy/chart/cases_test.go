package chart

import (
	"slices"
	"strings"
	"testing"
)

// toggles are values that turn something on or off. Each of them is rendered and checked alone, and
// the values of every store together with them.
var toggles = map[string]string{
	"defaults":               "{}",
	"dynamodb":               "store: {kind: dynamodb, dynamodb: {table: limits, region: eu-central-1}}",
	"dynamodb, all":          "store: {kind: dynamodb, query: leases=process, dynamodb: {table: t, namespace: staging}}\nreplicas: 5",
	"tigerbeetle":            tigerBeetleValues,
	"tigerbeetle, all":       "store: {kind: tigerbeetle, query: '', tigerbeetle: {addresses: ['a:1', 'b:2'], cluster: '340282366920938463463374607431768211455', namespace: staging}}",
	"one server on a table":  "store: {kind: dynamodb, dynamodb: {table: limits}}\nreplicas: 1",
	"no server":              "replicas: 0",
	"no claim":               "store: {memory: {persistence: {enabled: false}}}",
	"a claim of its own":     "store: {memory: {persistence: {existingClaim: mine}}}",
	"a claim to be deleted":  "store: {memory: {persistence: {keep: false, storageClass: '', size: 20Gi}}}",
	"a claim with a class":   "store: {query: usage_days=90, memory: {persistence: {storageClass: fast, annotations: {a: b}}}}",
	"limits":                 "limits: {file: \"version: 1\\nsystem: {limits: {rpm: {capacity: 5}}}\\n\", key: l.yaml}",
	"limits of its own":      "limits: {existingConfigMap: mine}",
	"tokens of its own":      "tokens: {existingSecret: mine, key: t.yaml}",
	"token entries":          "tokens: {entries: [{name: a, role: call, sha256: " + sum + "}, {name: b, role: admin, namespaces: all, sha256: " + otherSum + "}]}",
	"no tokens":              "tokens: {insecureNone: true}\nserviceMonitor: {enabled: true}",
	"tls":                    "tls: {existingSecret: mine}\nserviceMonitor: {enabled: true, tlsConfig: {insecureSkipVerify: true}}",
	"tls, other keys":        "tls: {existingSecret: mine, certKey: cert.pem, keyKey: key.pem}",
	"image":                  "image: {repository: r/weir, tag: '1', pullPolicy: Always}\nimagePullSecrets: [{name: s}]",
	"image by digest":        "image: {digest: 'sha256:" + sum + "'}",
	"names":                  "fullnameOverride: " + strings.Repeat("n", 63) + "\nnameOverride: " + strings.Repeat("m", 63),
	"log and shutdown":       "server: {logFormat: text, logLevel: debug, shutdownDelaySeconds: 7, shutdownTimeoutSeconds: 60}",
	"more":                   moreValues,
	"service":                "service: {type: LoadBalancer, port: 80, annotations: {a: b}, labels: {c: d}}",
	"probes":                 "probes: {port: 9000, startup: {failureThreshold: 9}, readiness: {path: /healthz}}\nserviceMonitor: {enabled: true}",
	"resources":              "resources: {requests: {cpu: 2}, limits: {memory: 2Gi, cpu: 4}}",
	"no resources":           "resources: {requests: null, limits: null}",
	"no budget":              tigerBeetleValues + "\npodDisruptionBudget: {enabled: false}",
	"a budget":               tigerBeetleValues + "\nreplicas: 4\npodDisruptionBudget: {maxUnavailable: 50%}",
	"autoscaling":            tigerBeetleValues + "\nautoscaling: {enabled: true, minReplicas: 3}",
	"autoscaling from one":   tigerBeetleValues + "\nautoscaling: {enabled: true, minReplicas: 1}",
	"service monitor":        "serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 1m}",
	"service monitor, token": "serviceMonitor: {enabled: true, tokenSecret: {name: mine, key: t}}\ntokens: {existingSecret: mine}",
	"alerts":                 "prometheusRule: {enabled: true, labels: {release: prometheus}}",
	"network policy":         "networkPolicy: {enabled: true}",
	"network policy, egress": "networkPolicy: {enabled: true, egress: [{ports: [{port: 443}]}], clients: [{namespaceSelector: {}}]}",
	"network policy, no way": "networkPolicy: {enabled: true, egress: []}",
	"account":                "serviceAccount: {annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::1:role/r'}}",
	"account of its own":     "serviceAccount: {create: false, name: mine}",
	"account of nobody":      "serviceAccount: {create: false}",
	"another user":           "podSecurityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000}\nseccompProfile: {type: Localhost, localhostProfile: p.json}",
	"spread":                 tigerBeetleValues + "\ntopologySpreadConstraints: [{maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]",
}

const (
	tigerBeetleValues = "store: {kind: tigerbeetle, tigerbeetle: {addresses: ['10.0.0.1:3000', '10.0.0.2:3000'], cluster: '7'}}"

	sum      = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	otherSum = "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"

	moreValues = `
extraArgs: [--max-leases=1000, --resources=declared]
extraEnv: [{name: OTEL_SDK_DISABLED, value: "true"}]
envFrom: [{secretRef: {name: env}}]
annotations: {a: b}
podAnnotations: {c: d}
podLabels: {e: f}
priorityClassName: high
nodeSelector: {kubernetes.io/arch: arm64}
tolerations: [{key: k, operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
`
)

// eachToggle renders the chart for each row of toggles.
func eachToggle(t *testing.T, check func(t *testing.T, o *objects)) {
	t.Helper()
	for name, values := range toggles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, mustRender(t, values))
		})
	}
}

// TestWhatThereIs checks which objects there are, for each toggle both ways.
func TestWhatThereIs(t *testing.T) {
	t.Parallel()
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
		o := mustRender(t, toggles[name])
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
