# The targets for working on weir; `make` lists them. They need Go, make, and a C compiler for the race
# detector. Tools are built from pinned versions into .cache/, which git ignores.

GO                    ?= go
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION   := v1.8.0
APIDIFF_VERSION       := v0.0.0-20261014143641-f0251eb4aa3e
GORELEASER_VERSION    := v2.15.1
CYCLONEDX_VERSION     := v1.10.0

FUZZTIME ?= 60s
# V=1 prints the name of each test.
V        ?=
# More flags for the demo, such as --exit, which ends it without an interrupt.
DEMO     ?=
# Flags for the comparison, such as -list or -run hot; -help lists them.
BENCH    ?=

# go env prints each value on its own line. The line of CC may have flags after the compiler's name.
GO_ENV  := $(shell $(GO) env GOVERSION CGO_ENABLED CC 2>/dev/null)
HAVE_CC := $(and $(filter 1,$(word 2,$(GO_ENV))),$(shell command -v '$(word 3,$(GO_ENV))' 2>/dev/null))
RACE    := $(if $(HAVE_CC),-race)
TEST    := $(GO) test -timeout 30m -shuffle=on $(RACE) $(if $(V),-v)

# A tool that was built with one Go release cannot read code for the next one, so the path has both versions.
BIN           := .cache/bin/$(word 1,$(GO_ENV))
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
GOVULNCHECK   := $(BIN)/govulncheck-$(GOVULNCHECK_VERSION)/govulncheck
APIDIFF       := $(BIN)/apidiff-$(APIDIFF_VERSION)/apidiff
GORELEASER    := $(BIN)/goreleaser-$(GORELEASER_VERSION)/goreleaser
CYCLONEDX     := $(BIN)/cyclonedx-gomod-$(CYCLONEDX_VERSION)/cyclonedx-gomod

# The systems for which weir is released. Builds without cgo lack the TigerBeetle store, because its client needs cgo.
SYSTEMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo dynamodb-files function release packages test test-watched test-unwatched test-long conformance fuzz bench microbench benchcheck deploycheck check cover \
	vet crossvet lint vuln api fix verify newest tools race-notice

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The program is built and then run directly, because `go run` would receive the interrupt too.
demo: ## Start a server and replay an hour of real LLM traffic against it in half a minute (Ctrl-C ends it)
	@mkdir -p .cache
	$(GO) build -o .cache/weir ./cmd/weir
	.cache/weir demo $(DEMO)

# Left out are the artifacts that only its tests use, or only a compiler. The native libraries are in its jar.
dynamodb-files: ## Write the list of the jars that weir local fetches, with their sums, and compile its launcher (Java 17, Maven)
	rm -rf .cache/dynamodb-files
	mvn --quiet --batch-mode --file internal/testkit/dynamodb.pom.xml \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
		-DoutputDirectory='$(abspath .cache/dynamodb-files)' -Dmdep.useRepositoryLayout=true -DincludeTypes=jar \
		-DexcludeArtifactIds=mockito-core,objenesis,hamcrest-core,jsr305,checker-qual,error_prone_annotations,j2objc-annotations,listenablefuture
	cd .cache/dynamodb-files && find . -name '*.jar' | sed 's,^\./,,' | LC_ALL=C sort | xargs sha256sum > ../../internal/local/files.txt
	cd internal/local/launcher && javac --release 17 -g:none -d . WeirLocal.java \
		-cp "$$(find '$(abspath .cache/dynamodb-files)' -name '*.jar' | tr '\n' ':')"

# The race detector takes most of the time of a test, so it is used only for packages whose code
# shares memory between goroutines. The packages of UNWATCHED are tested without it, at the same time.
# Among them are the suites, which the stores' tests run with it, and the command line, whose tests start
# a thousand processes. `make test-long` tests them with it too.
UNWATCHED := ./aggregator ./cmd/... ./conformance/... ./kernel/... ./manifest/... \
	$(addprefix ./internal/,apijson chart cli clip connect console hash joined lab lab/live lab/replay lab/report lab/trace lint local schema soak text)

# The flags leave out whatever differs between two machines: paths, the commit, build IDs.
function: ## Build .cache/weir-aggregator.zip, the Lambda function of a DynamoDB table (the same bytes everywhere)
	@mkdir -p .cache
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 GOARM64=v8.0 $(GO) build -trimpath -buildvcs=false -tags lambda.norpc \
		-ldflags '-s -w -buildid=' -o .cache/bootstrap ./cmd/weir-aggregator
	$(GO) run ./internal/function/pack .cache/weir-aggregator.zip .cache/bootstrap

# A build without the tag has no code of the function, and asks for it with --function.
release: function ## Build .cache/weir with the code of the function in it, as releases have
	cp .cache/weir-aggregator.zip provision/weir-aggregator.zip
	$(GO) build -tags weir_function -o .cache/weir ./cmd/weir

# The C compiler for Linux programs is Zig's, which pip fetches once.
packages: function $(GORELEASER) $(CYCLONEDX) .cache/bin/zig/ziglang ## Build the packages of a release, for every system, into dist/ (Python 3, gzip)
	PATH='$(abspath $(dir $(GORELEASER))):$(abspath $(dir $(CYCLONEDX))):$(PATH)' \
		ZIG='$(abspath .cache/bin/zig/ziglang/zig)' SYSTEMS='$(SYSTEMS)' deploy/packages/build

.cache/bin/zig/ziglang: deploy/packages/zig.txt
	rm -rf $(@D)
	python3 -m pip --quiet install --target $(@D) --no-deps --only-binary=:all: --require-hashes --requirement $<

test: race-notice ## Run every test in random order, with the race detector if goroutines share memory (V=1 names them)
	@$(MAKE) --no-print-directory -j2 test-watched test-unwatched

test-watched:
	GOGC=200 $(TEST) -vet=off $$($(GO) list ./... | grep -vxF "$$($(GO) list $(UNWATCHED))")

test-unwatched:
	$(filter-out -race,$(TEST)) -vet=off $(UNWATCHED)

conformance: race-notice ## Run the suites only: their own tests, and each store's TestConformance…
	$(TEST) ./conformance/...
	$(TEST) -run Conformance ./...

test-long: ## Run every test in full, also those that a plain run skips (up to an hour a package)
	$(TEST) -vet=off $(UNWATCHED)
	WEIR_SOAK=1 $(GO) test -count=1 -v -p 1 -timeout 60m ./...

fuzz: ## Run every fuzz test for FUZZTIME (60s)
	@mkdir -p .cache
	@$(GO) test -list '^Fuzz' ./... > .cache/fuzz.txt || { cat .cache/fuzz.txt; exit 1; }
	@awk '/^Fuzz/ { names[++n] = $$1 } \
		/^ok/ { for (i = 1; i <= n; i++) print $$2, names[i]; n = 0 }' .cache/fuzz.txt | \
	while read -r package name; do \
		echo "$$package $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; \
	done

bench: ## Run weir beside other limiters on the same work, and print the ratios (some minutes)
	@mkdir -p .cache
	cd bench && $(GO) build -o ../.cache/bench .
	.cache/bench $(BENCH)

microbench: ## Run the Go benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

# gomoddirectives is off here: bench/ replaces weir's module by the parent folder, to measure this tree.
benchcheck: $(GOLANGCI_LINT) race-notice ## Check bench/, a separate module, and run each comparison for a moment
	cd bench && $(GO) mod verify
	cd bench && $(GO) vet ./...
	cd bench && $(GO) fix -diff ./...
	cd bench && '$(abspath $(GOLANGCI_LINT))' run --config ../.golangci.yaml --disable gomoddirectives ./...
	cd bench && $(TEST) ./...

# Without the race detector, which would compile everything a second time: the servers have it in `make test`.
deploycheck: $(GOLANGCI_LINT) ## Check deploy/, a separate module with everything that operators install
	cd deploy && $(GO) mod tidy -diff
	cd deploy && $(GO) vet ./...
	cd deploy && $(GO) fix -diff ./...
	cd deploy && '$(abspath $(GOLANGCI_LINT))' run --config ../.golangci.yaml --disable gomoddirectives --allow-parallel-runners ./...
	cd deploy && $(GO) test -timeout 30m -shuffle=on $(if $(V),-v) ./...

cover: ## Measure the coverage of the tests; the report is .cache/cover.html
	@mkdir -p .cache
	$(GO) test -coverpkg=./... -coverprofile=.cache/cover.out ./...
	$(GO) tool cover -html=.cache/cover.out -o .cache/cover.html
	$(GO) tool cover -func=.cache/cover.out | tail -n 1

check: ## Run all checks that a change must pass (an hour the first time, because it builds the tools)
	@$(MAKE) --no-print-directory verify vet lint vuln test crossvet benchcheck deploycheck

# It uses the flags of the tests, so that the build cache serves both.
vet: ## Run gofmt, go vet and go fix
	@found=$$(find . -name '*.go' -not -path './.cache/*' -exec gofmt -s -l {} +); \
	if [ -n "$$found" ]; then echo "gofmt would change:"; echo "$$found"; exit 1; fi
	$(GO) vet $(RACE) ./...
	$(GO) fix $(RACE) -diff ./...

crossvet: ## Run go vet for every system of a release, without cgo
	@set -e; for system in $(SYSTEMS); do \
		echo "vet $$system"; \
		GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0 $(GO) vet ./...; \
	done

lint: $(GOLANGCI_LINT) ## Run golangci-lint
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...

# Exit status 0 means that none was found. If the database cannot be reached, this is printed and is not a failure.
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities
	@mkdir -p .cache
	@$(GOVULNCHECK) ./... > .cache/vuln.txt 2>&1; status=$$?; \
	if grep -q '^govulncheck: fetching vulnerabilities' .cache/vuln.txt; then \
		echo "govulncheck: NOT CHECKED, the vulnerability database cannot be reached from here"; \
	else \
		cat .cache/vuln.txt; exit $$status; \
	fi

# Before 1.0 an incompatible change is allowed. CHANGELOG.md has a note about each.
api: $(APIDIFF) ## Print the changes of the exported API after the last tag
	@tag=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || \
		{ echo "api: there is no tag yet, so there is nothing to compare with"; exit 0; }; \
	set -e; mkdir -p .cache; old=$$(mktemp -d .cache/api.XXXXXX); \
	trap 'git worktree remove --force "'$$old'/tree"; rm -rf "'$$old'"' EXIT; \
	git worktree add --quiet --detach "$$old/tree" "$$tag"; \
	module=$$($(GO) list -m); \
	(cd "$$old/tree" && '$(abspath $(APIDIFF))' -m -w ../old "$$module"); \
	'$(abspath $(APIDIFF))' -m -w "$$old/new" "$$module"; \
	echo "api: since $$tag"; '$(abspath $(APIDIFF))' -m "$$old/old" "$$old/new" 2>&1 | sed '/^Ignoring internal package/d'

fix: $(GOLANGCI_LINT) ## Fix the findings that tools can fix, and list the others
	$(GO) fix ./...
	$(GOLANGCI_LINT) run --fix --issues-exit-code 0 ./...
	find . -name '*.go' -not -path './.cache/*' -exec gofmt -s -w {} +

verify: ## Check that go.mod and go.sum are tidy and that the downloaded modules match their checksums
	$(GO) mod verify
	$(GO) mod tidy -diff

# The version of TigerBeetle's client is fixed: docs/dependencies.md has the reason.
newest: ## Update every dependency to its newest release (changes go.mod)
	$(GO) get -u -t ./...
	$(GO) get github.com/tigerbeetle/tigerbeetle-go@v0.17.9
	$(GO) mod tidy

tools: $(GOLANGCI_LINT) $(GOVULNCHECK) $(APIDIFF) ## Build the pinned tools (other targets do so if needed)

$(GOLANGCI_LINT):
	GOBIN='$(abspath $(@D))' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(GOVULNCHECK):
	GOBIN='$(abspath $(@D))' $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

$(APIDIFF):
	GOBIN='$(abspath $(@D))' $(GO) install golang.org/x/exp/cmd/apidiff@$(APIDIFF_VERSION)

$(GORELEASER):
	GOBIN='$(abspath $(@D))' GOFLAGS=-trimpath $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)

$(CYCLONEDX):
	GOBIN='$(abspath $(@D))' GOFLAGS=-trimpath $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)

race-notice:
ifeq ($(RACE),)
	@echo "No C compiler: the tests run WITHOUT the race detector."
endif
