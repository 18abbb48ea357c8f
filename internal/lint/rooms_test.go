package lint

// The modules that the table names.
const (
	awsLambda    = "github.com/aws/aws-lambda-go"
	awsSDK       = "github.com/aws/aws-sdk-go-v2"
	awsSmithy    = "github.com/aws/smithy-go"
	cobra        = "github.com/spf13/cobra"
	controlPlane = "github.com/envoyproxy/go-control-plane"
	goYAML       = "github.com/goccy/go-yaml"
	grpc         = "google.golang.org/grpc"
	histogram    = "github.com/HdrHistogram/hdrhistogram-go"
	jsonV2       = "github.com/go-json-experiment/json"
	otel         = "go.opentelemetry.io/otel"
	porcupine    = "github.com/anishathalye/porcupine"
	prometheus   = "github.com/prometheus/client_golang"
	protobuf     = "google.golang.org/protobuf"
	rapid        = "pgregory.net/rapid"
	testscript   = "github.com/rogpeppe/go-internal"
	tigerbeetle  = "github.com/tigerbeetle/tigerbeetle-go"
	xTerm        = "golang.org/x/term"
	xText        = "golang.org/x/text"
)

// anything, in a row, allows every import but cmd and a store's import of another store.
const anything = "*"

// room is a row of the import table: what a folder may import besides the standard library and
// itself. A name with a dot in its first part is a module with all its packages, any other name is
// exactly one folder of this module.
type room struct {
	dir string
	// imports is for production code, and tests may have it too.
	imports []string
	// tests are further imports for tests only, in addition to everyTest.
	tests []string
}

// everyTest has the imports that tests in every folder may have.
var everyTest = []string{
	root, "change", "internal/testkit", "internal/testkit/versionrace", "internal/soak", rapid,
}

// rooms is the import table. Every folder needs a row.
var rooms = []room{
	{
		dir: root,
		imports: []string{
			"kernel", "internal/clip", "internal/identifier", "internal/metadata", "internal/version",
		},
		tests: []string{"limiter", "memory"},
	},
	{
		dir:     "change",
		imports: []string{root, "internal/clip", "internal/metadata", "internal/version"},
	},
	{
		dir: "driver", imports: []string{root, "change", "kernel"},
		tests: []string{"limiter", "conformance"},
	},
	{dir: "driver/declare", imports: []string{root}},
	{dir: "namespace"},
	{
		dir: "limiter",
		imports: []string{
			root, "change", "driver", "driver/declare", "kernel", "internal/clip", "internal/hash",
			"internal/identifier", "internal/leaseid",
		},
		tests: []string{"memory", "manifest", "conformance", "conformance/broken", "conformance/model"},
	},
	{dir: "kernel", tests: []string{"driver", "conformance"}},
	{dir: "internal/clip"},
	{dir: "internal/hash"},
	{dir: "internal/identifier"},
	{dir: "internal/metadata"},
	{dir: "internal/version"},
	{dir: "internal/leaseid", imports: []string{root}},
	{dir: "internal/joined"},
	{dir: "internal/money"},

	{
		dir: "memory",
		imports: []string{
			root, "change", "driver", "driver/declare", "kernel", "internal/hash", "internal/metadata",
		},
		tests: []string{"limiter", "conformance", "manifest", "internal/awsconfig"},
	},
	{
		dir: "dynamodb",
		imports: []string{
			root, "aggregator", "change", "driver", "driver/declare", "kernel", "namespace",
			"internal/metadata", "internal/schema",
			"internal/sharding", awsSDK, awsSmithy,
			"dynamodb/internal/admin", "dynamodb/internal/bucketitem", "dynamodb/internal/tables",
			"dynamodb/internal/config", "dynamodb/internal/client",
			"dynamodb/internal/leaserecord",
			"dynamodb/internal/migration", "dynamodb/internal/oldtable",
			"dynamodb/internal/stream",
		},
		tests: []string{
			"limiter", "conformance", "manifest", "internal/awsconfig", "internal/testkit/calls",
		},
	},
	{
		dir: "dynamodb/internal/migration",
		imports: []string{
			root, "internal/schema", awsSDK, "dynamodb/internal/bucketitem", "dynamodb/internal/client",
			"dynamodb/internal/config", "dynamodb/internal/oldtable", "dynamodb/internal/tables",
		},
	},
	{
		dir: "dynamodb/internal/oldtable",
		imports: []string{
			root, "internal/schema", "internal/sharding", awsSDK, "dynamodb/internal/client",
		},
	},
	{
		dir:     "dynamodb/internal/leaserecord",
		imports: []string{root, "internal/schema", awsSDK, "dynamodb/internal/client"},
	},
	{
		dir: "dynamodb/internal/admin",
		imports: []string{
			root, "change", "driver", "driver/declare", "internal/metadata", "internal/schema", awsSDK,
			"dynamodb/internal/bucketitem",
			"dynamodb/internal/tables", "dynamodb/internal/config", "dynamodb/internal/client",
			"dynamodb/internal/stream",
		},
	},
	{
		dir: "dynamodb/internal/bucketitem",
		imports: []string{
			root, "driver", "kernel", "internal/schema", "internal/sharding", awsSDK,
			"dynamodb/internal/config", "dynamodb/internal/client", "dynamodb/internal/oldtable",
		},
		tests: []string{"aggregator"},
	},
	{
		dir: "dynamodb/internal/stream",
		imports: []string{
			root, "aggregator", "internal/schema", "internal/sharding", awsSDK,
			"dynamodb/internal/bucketitem", "dynamodb/internal/tables",
			"dynamodb/internal/client",
		},
		tests: []string{"limiter", "dynamodb", awsSmithy, "kernel", "internal/testkit/calls"},
	},
	{
		dir: "dynamodb/internal/tables",
		imports: []string{
			root, "internal/identifier", "internal/schema", awsSDK, "dynamodb/internal/client",
			"dynamodb/internal/oldtable",
		},
	},
	{
		dir:     "dynamodb/internal/config",
		imports: []string{root, "driver/declare", "internal/schema", awsSDK, "dynamodb/internal/client"},
	},
	{
		dir:     "dynamodb/internal/client",
		imports: []string{root, "internal/awsconfig", "internal/schema", awsSDK, awsSmithy},
	},
	{
		dir:     "dynamodb/livetest",
		imports: []string{root, awsSDK, awsSmithy},
		tests:   []string{"limiter", "aggregator", "dynamodb", "internal/schema", "memory", "httpapi"},
	},
	{
		dir: "tigerbeetle",
		imports: []string{
			root, "change", "driver", "kernel", "tigerbeetle/internal/client",
			"tigerbeetle/internal/uint128", tigerbeetle,
		},
		tests: []string{
			"limiter", "conformance", "conformance/broken", "conformance/model", "manifest",
			"tigerbeetle/emulator",
		},
	},
	{
		dir:     "tigerbeetle/emulator",
		imports: []string{"tigerbeetle/internal/uint128", tigerbeetle},
	},
	{dir: "tigerbeetle/internal/client", imports: []string{root, tigerbeetle}},
	{dir: "tigerbeetle/internal/uint128", imports: []string{tigerbeetle}},
	{
		dir: "tigerbeetle/livetest", imports: []string{root},
		tests: []string{"limiter", "tigerbeetle", "tigerbeetle/emulator", "httpapi", "httpapi/httphandler"},
	},
	{
		dir: "store",
		imports: []string{
			root, "driver", "memory", "dynamodb", "tigerbeetle", "tigerbeetle/emulator",
		},
		tests: []string{"limiter"},
	},

	{
		dir:     "internal/apijson",
		imports: []string{root, "change", "namespace", "internal/metadata"},
		tests:   []string{"limiter", "memory", "manifest"},
	},
	{
		dir:     "httpapi",
		imports: []string{root, "change", "namespace", "internal/apijson", "internal/leaseid"},
		tests: []string{
			"limiter", "memory", "conformance", "manifest", "httpapi/httphandler",
			"internal/declared", "internal/server/statuspage", "internal/testkit/recordstore",
		},
	},
	{
		dir: "httpapi/httphandler",
		imports: []string{
			root, "change", "httpapi", "namespace", "internal/apijson", "internal/metadata",
			"internal/money", jsonV2,
		},
		tests: []string{
			"limiter", "driver", "memory", "manifest", "internal/declared",
			"internal/server/statuspage", "internal/testkit/recordstore",
		},
	},
	{
		dir:     "grpcapi",
		imports: []string{root, grpc, protobuf, controlPlane},
		tests:   []string{"memory", "conformance", "manifest"},
	},
	{
		dir: "gateway", imports: []string{root, "estimator"},
		tests: []string{"memory", "manifest", "httpapi"},
	},
	{dir: "estimator"},

	{
		dir: "manifest",
		imports: []string{
			root, "internal/clip", "internal/identifier", "internal/joined", "internal/metadata",
			"internal/money", goYAML,
		},
	},
	{
		dir:     "aggregator",
		imports: []string{root, "kernel", "internal/schema", "internal/sharding"},
		tests:   []string{"dynamodb", awsSDK},
	},
	{
		dir: "provision",
		imports: []string{
			root, "manifest", "internal/awsconfig", "internal/schema", awsSDK, awsSmithy,
		},
		tests: []string{"dynamodb", "limiter", "internal/function", "internal/testkit/calls"},
	},

	{
		dir:     "conformance",
		imports: []string{root, "limiter", "driver", "conformance/model", "internal/soak", porcupine, rapid},
		tests:   []string{"memory", "conformance/broken"},
	},
	{
		dir:     "conformance/model",
		imports: []string{root, "limiter", "driver"},
		tests:   []string{"conformance"},
	},
	{
		dir:     "conformance/broken",
		imports: []string{root, "limiter", "driver", "conformance", "conformance/model"},
		tests:   []string{"memory"},
	},

	{dir: "internal/schema", imports: []string{root, "kernel", "internal/metadata", "internal/version", awsSDK}},
	{
		dir: "internal/function",
		imports: []string{
			root, "aggregator", "dynamodb", "store", "internal/archive", "internal/schema",
			awsLambda, awsSDK,
		},
		tests: []string{"limiter", "provision", awsSmithy},
	},
	{dir: "internal/function/pack"},
	{dir: "internal/awsconfig", imports: []string{root, awsSDK, awsSmithy}},
	{dir: "internal/archive", imports: []string{root, "internal/awsconfig", awsSDK, awsSmithy}},
	{dir: "internal/sharding", imports: []string{"kernel", "internal/schema"}},
	{
		dir: "internal/cli",
		imports: []string{
			"change", "namespace", "internal/metadata",
			root, "change", "limiter", "driver", "store", "memory", "dynamodb", "tigerbeetle", "httpapi",
			"grpcapi", "gateway", "manifest", "aggregator", "provision", "estimator",
			"internal/identifier", "internal/schema", "internal/server", "internal/lab", "internal/joined",
			"internal/money", "internal/text", "internal/console", "internal/connect",
			"internal/archive", "internal/chart", "internal/local",
			cobra, grpc, awsSDK,
		},
		tests: []string{
			"conformance", "httpapi/httphandler", "internal/declared", "internal/server/statuspage",
			"internal/testkit/liveserver", "internal/testkit/recordstore", testscript,
		},
	},
	{
		dir: "internal/server",
		imports: []string{
			root, "limiter", "driver", "httpapi", "httpapi/httphandler", "namespace",
			"internal/declared", "internal/server/statuspage", "manifest", goYAML, prometheus, otel,
		},
		tests: []string{"memory"},
	},
	{
		dir:     "internal/server/statuspage",
		imports: []string{root, "limiter", "httpapi", "internal/apijson"},
		tests:   []string{"memory", "httpapi/httphandler", "internal/testkit/recordstore"},
	},
	{
		dir: "internal/declared",
		imports: []string{
			root, "change", "limiter", "driver/declare", "httpapi", "manifest", "internal/clip",
			"internal/joined", "internal/metadata",
		},
		tests: []string{"driver", "memory", "dynamodb", "internal/schema", awsSDK},
	},
	{dir: "internal/console", imports: []string{root, "internal/text", cobra, xTerm}},
	{
		dir: "internal/connect",
		imports: []string{
			root, "limiter", "store", "memory", "httpapi", "manifest", "namespace",
			"internal/console", "internal/declared", "internal/text", cobra,
		},
	},
	{
		dir: "internal/lab",
		imports: []string{
			root, "limiter", "memory", "httpapi", "manifest", "internal/server",
			"internal/console",
			"internal/connect", "internal/joined", "internal/text", "internal/chart",
			"internal/lab/live",
			"internal/lab/loadtest", "internal/lab/replay", "internal/lab/report",
			"internal/lab/trace", "examples",
			cobra,
		},
		tests: []string{"conformance", "httpapi/httphandler", "internal/testkit/liveserver", testscript},
	},
	{
		dir: "internal/lab/live",
		imports: []string{
			root, "internal/console", "internal/lab/replay", "internal/text",
		},
		tests: []string{"limiter", "memory", "internal/lab/trace"},
	},
	{
		dir:     "internal/lab/report",
		imports: []string{root, "internal/chart", "internal/lab/replay", "internal/text"},
	},
	{
		dir:     "internal/lab/trace",
		imports: []string{root, "internal/clip", "internal/identifier", "internal/text"},
	},
	{
		dir: "internal/lab/replay",
		imports: []string{
			root, "limiter", "memory", "manifest", "estimator", "internal/joined",
			"internal/lab/pace", "internal/lab/trace",
			"internal/text",
		},
	},
	{dir: "internal/lab/pace"},
	{dir: "internal/chart", imports: []string{"internal/text"}},
	{dir: "internal/text", imports: []string{xText}},
	{
		dir: "internal/lab/loadtest",
		imports: []string{
			root, "internal/clip", "internal/joined", "internal/lab/pace", "internal/text",
			histogram,
		},
		tests: []string{"limiter", "memory", "httpapi", "httpapi/httphandler"},
	},
	{
		dir: "internal/livetest",
		tests: []string{
			"limiter", "driver", "memory", "dynamodb", "tigerbeetle", "tigerbeetle/emulator",
			"httpapi", "httpapi/httphandler",
			tigerbeetle,
		},
	},
	{dir: "internal/soak"},
	{dir: "internal/local"},
	{
		dir:     "internal/testkit",
		imports: []string{root, "internal/local", "internal/soak", awsSDK, awsSmithy},
	},
	{dir: "internal/testkit/calls", imports: []string{awsSDK, awsSmithy}},
	{dir: "internal/testkit/versionrace", imports: []string{root, "change"}},
	{dir: "internal/testkit/recordstore", imports: []string{root, "limiter", "driver", "memory"}},
	{
		dir:     "internal/testkit/liveserver",
		imports: []string{root, "limiter", "httpapi/httphandler", "manifest", "memory"},
	},
	{dir: "internal/lint"},

	{dir: "cmd/weir", imports: []string{anything}},
	{dir: "cmd/weir-aggregator", imports: []string{anything}},
	{dir: "bench", imports: []string{anything}},
	{dir: "examples"},
	{dir: "deploy/goproxy", imports: []string{"golang.org/x/mod"}},
	{dir: "deploy/image", imports: []string{"github.com/google/go-containerregistry", "golang.org/x/crypto"}},
	{dir: "deploy/chart", tests: []string{anything}},
	{dir: "deploy/compose", tests: []string{anything}},
	{dir: "deploy/internal/program", imports: []string{"internal/cli", "internal/console"}},
	{dir: "deploy/systemd", tests: []string{anything}},
	{dir: "deploy/monitoring", imports: []string{anything}},
	{dir: "clients", tests: []string{"store", "internal/cli", "internal/console"}},
	{dir: "examples/dynamodb", imports: []string{root, "limiter", "dynamodb"}},
}

// stores are the packages that implement driver.Store. They never import each other, not even in
// tests.
var stores = []string{"memory", "dynamodb", "tigerbeetle"}

// testSupport are the rooms whose production code may import testing: they exist for tests, and no
// other production code imports them.
var testSupport = []string{
	"conformance", "conformance/broken", "conformance/model", "deploy/internal/program",
	"internal/testkit", "internal/testkit/calls", "internal/testkit/liveserver",
	"internal/testkit/recordstore", "internal/testkit/versionrace",
	"internal/soak",
}
