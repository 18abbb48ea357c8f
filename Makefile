# Everything that is run on weir by name. `make` lists it. Needed: Go, make, and a C compiler for
# the race detector. Tools are built from pinned versions into .cache/, which git ignores.

GO                    ?= go
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION   := v1.8.0

FUZZTIME ?= 60s
# V=1 makes the tests say which of them ran.
V        ?=
# More flags for the demo, such as --exit, with which it ends by itself.
DEMO     ?=
# Flags for the comparison, such as -list or -run hot; -help says which there are.
BENCH    ?=

# go env prints each answer on a line of its own; a C compiler's flags come after its name.
GO_ENV  := $(shell $(GO) env GOVERSION CGO_ENABLED CC 2>/dev/null)
HAVE_CC := $(and $(filter 1,$(word 2,$(GO_ENV))),$(shell command -v '$(word 3,$(GO_ENV))' 2>/dev/null))
RACE    := $(if $(HAVE_CC),-race)
TEST    := $(GO) test -timeout 30m -shuffle=on $(RACE) $(if $(V),-v)

# A tool built by one Go release does not understand the next, so its folder names both versions.
BIN           := .cache/bin/$(word 1,$(GO_ENV))
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
GOVULNCHECK   := $(BIN)/govulncheck-$(GOVULNCHECK_VERSION)/govulncheck

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo dynamodb test conformance soak fuzz bench microbench benchcheck check cover vet lint vuln fix \
	verify tools race-notice

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The program is built and then run by itself, so that an interrupt reaches it and nobody between.
demo: ## Serve, and watch the limits judge an hour of real LLM traffic in half a minute (Ctrl-C ends it)
	@mkdir -p .cache
	$(GO) build -o .cache/weir ./cmd/weir
	.cache/weir demo $(DEMO)

dynamodb: ## Run DynamoDB Local in the foreground, on PORT (8000); Ctrl-C ends it
	@mkdir -p .cache
	$(GO) build -o .cache/dynamodblocal ./internal/testkit/dynamodblocal
	.cache/dynamodblocal -port $(or $(PORT),8000)

test: race-notice ## Run every test, shuffled, with the race detector (V=1 names them)
	$(TEST) ./...

conformance: race-notice ## Run the suites alone: their own tests, and each store's TestConformance…
	$(TEST) ./conformance/...
	$(TEST) -run Conformance ./...

soak: ## Run every test in full, also those that a plain run skips (up to an hour a package)
	WEIR_SOAK=1 $(GO) test -count=1 -v -p 1 -timeout 60m ./...

fuzz: ## Fuzz every target for FUZZTIME each (60s)
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

microbench: ## Run the benchmarks that lie beside the tests
	$(GO) test -run '^$$' -bench . -benchmem ./...

# The linter would refuse a replacement by a folder, and that folder is what is to be measured.
benchcheck: $(GOLANGCI_LINT) race-notice ## Check bench/, a module of its own, and run each comparison for a moment
	cd bench && $(GO) mod verify
	cd bench && $(GO) vet ./...
	cd bench && $(GO) fix -diff ./...
	cd bench && '$(abspath $(GOLANGCI_LINT))' run --config ../.golangci.yaml --disable gomoddirectives ./...
	cd bench && $(TEST) ./...

cover: ## Measure what the tests reach; the pages go to .cache/cover.html
	@mkdir -p .cache
	$(GO) test -coverpkg=./... -coverprofile=.cache/cover.out ./...
	$(GO) tool cover -html=.cache/cover.out -o .cache/cover.html
	$(GO) tool cover -func=.cache/cover.out | tail -n 1

check: ## Run all that a change must pass: lint, test and benchcheck (half an hour, the first time)
	@$(MAKE) --no-print-directory lint test benchcheck

# With the flags of the tests, so that what both compile is compiled once.
vet: ## Check form, vet and modernize
	@found=$$(find . -name '*.go' -not -path './.cache/*' -exec gofmt -s -l {} +); \
	if [ -n "$$found" ]; then echo "gofmt would change:"; echo "$$found"; exit 1; fi
	$(GO) vet $(RACE) ./...
	$(GO) fix $(RACE) -diff ./...

lint: vet $(GOLANGCI_LINT) ## Check form, vet, modernize, lint and look for known vulnerabilities
	$(GOLANGCI_LINT) run ./...
	@$(MAKE) --no-print-directory vuln

# Exit status 0 means none found. Without the database nothing can be found: say so, and go on.
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities
	@mkdir -p .cache
	@$(GOVULNCHECK) ./... > .cache/vuln.txt 2>&1; status=$$?; \
	if grep -q '^govulncheck: fetching vulnerabilities' .cache/vuln.txt; then \
		echo "govulncheck: NOT CHECKED, the vulnerability database cannot be reached from here"; \
	else \
		cat .cache/vuln.txt; exit $$status; \
	fi

fix: $(GOLANGCI_LINT) ## Mend what can be mended by machine, and list the rest
	$(GO) fix ./...
	$(GOLANGCI_LINT) run --fix --issues-exit-code 0 ./...
	find . -name '*.go' -not -path './.cache/*' -exec gofmt -s -w {} +

verify: ## Check that go.mod and go.sum are tidy and that the modules are what they say
	$(GO) mod verify
	$(GO) mod tidy -diff

tools: $(GOLANGCI_LINT) $(GOVULNCHECK) ## Build the pinned tools (lint does it when needed)

$(GOLANGCI_LINT):
	GOBIN='$(abspath $(@D))' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(GOVULNCHECK):
	GOBIN='$(abspath $(@D))' $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

race-notice:
ifeq ($(RACE),)
	@echo "No C compiler: the tests run WITHOUT the race detector."
endif
