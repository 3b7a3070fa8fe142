# What one does with this repository. "make" lists it.

.DEFAULT_GOAL := help
.SHELLFLAGS   := -ec

GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The packages whose tests talk to servers that nobody here wrote, or take their time.
REAL = $(shell grep -lrE 'RealRedis|NewReal|Dynalite|Missing|InRealTime' --include=*_test.go . | xargs -n1 dirname | sort -u)

FUZZTIME ?= 10s
COUNT    ?= 6
BENCH    ?= .
FOR      ?= 5m
STARTS   ?= 50

# The race detector needs a C compiler; a machine that has Go alone tests without it.
RACE = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# What needs other modules than the kit's own is a module of its own.
MODULES := . $(patsubst %/go.mod,%,$(wildcard benchmarks/go.mod otelguard/go.mod internal/*/go.mod internal/coldstart/config/go.mod))

NPM_READY := $(patsubst %/package-lock.json,%/node_modules/.package-lock.json,$(wildcard internal/*/*/package-lock.json))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-zA-Z_-]+:.*## / { printf "  %-22s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: ## Run the contact form example; in memory, or in the store of the environment
	$(GO) run ./examples/contactform

.PHONY: test
test: ## Vet and test; needs Go alone, and uses real servers where it finds them
	@test -n "$(RACE)" || echo "no C compiler: testing without the race detector"
	@unset SALLYPORT_INSTANCES SALLYPORT_LIMIT SALLYPORT_KEY_SECRET; \
	for module in $(MODULES); do \
		echo "== $$module"; \
		(cd $$module && $(GO) vet ./... && $(GO) test $(RACE) -shuffle=on -count=1 ./...); \
	done

.PHONY: test-real
test-real: redis-server chromium $(NPM_READY) ## Test against real servers and clients, which it installs; nothing is skipped
	SALLYPORT_TEST_REAL=1 $(GO) test -shuffle=on -count=1 $(REAL)

.PHONY: redis-server
redis-server:
	@.ci/redis-server

.PHONY: chromium
chromium:
	@.ci/chromium

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

.PHONY: lint
lint: ## Check format, vet, staticcheck
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; }
	@for module in $(MODULES); do \
		echo "== $$module"; \
		(cd $$module && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...); \
	done

.PHONY: bench
bench: ## Run the benchmarks; COUNT=6 BENCH=.
	@for module in $(MODULES); do \
		(cd $$module && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...); \
	done

.PHONY: attack
attack: ## Measure what it costs to have an offender forgotten; a minute or two
	$(GO) run ./internal/attack

.PHONY: sim
sim: ## Simulate outages beside plain limiters; a minute or two
	$(GO) test ./internal/sim -count=1 -v -run TestTable -table

.PHONY: soak
soak: redis-server ## Abuse the form for FOR=5m while Redis comes and goes
	$(GO) run ./internal/soak -for $(FOR)

.PHONY: fuzz
fuzz: ## Run every fuzz target for a while; FUZZTIME=10s
	@packages="$$($(GO) list ./...)"; \
	for package in $$packages; do \
		targets="$$($(GO) test -list '^Fuzz' $$package)"; \
		for target in $$(echo "$$targets" | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run "^$$target$$" -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

.PHONY: cover
cover: ## Show how much the tests cover, package by package
	$(GO) test -count=1 -coverpkg=./... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -1

.PHONY: lambda-local
lambda-local: ## Run the example functions behind AWS's runtime interface emulator, which it installs
	SALLYPORT_TEST_REAL=1 $(GO) test -count=1 -v ./internal/lambdalocal

.PHONY: sam-check
sam-check: ## Check and build the templates with AWS's own tools, which it installs; needs no account
	.ci/sam-check

.PHONY: coldstart
coldstart: ## Measure what the kit adds to a Lambda's start and size; STARTS=50, 0 for the sizes alone
	$(GO) run ./internal/coldstart -starts $(STARTS)

.PHONY: build
build: ## Build the examples into bin/
	mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o bin/ ./examples/...

# "sam build" calls this for the function of template.yaml, with ARTIFACTS_DIR set. CGO
# is off because the C library of the building machine need not be Lambda's.
.PHONY: build-WebhookFunction
build-WebhookFunction: ## Build the Lambda function; ARTIFACTS_DIR=dir
	@test -n "$(ARTIFACTS_DIR)" || { echo "ARTIFACTS_DIR is not set"; exit 1; }
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build -trimpath -tags lambda.norpc -ldflags "-s -w" -o "$(ARTIFACTS_DIR)/bootstrap" ./examples/webhook
