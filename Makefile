# saltclusterd: from a fresh clone, "make demo" shows it and "make test" checks it. Both prepare the machine first (as root they
# install missing Debian packages); see integration/setup. ARGS goes to the program of the target: make demo ARGS=--once

SHELL := /bin/bash
GO := integration/setup/go
# Debian's own sbin is not in everyone's PATH; Salt's virtualenvs are where integration/setup put them.
export PATH := $(PATH):/usr/sbin:/sbin
export SALTCLUSTER_VENVS ?= $(shell . integration/setup/env.sh && echo $$cache/venvs)
# All stages compile with the same settings, so each package is compiled once for the programs, vet and the scenarios (and once more
# for the race detector and for fuzzing). -trimpath: also once for all clones on this machine.
export GOFLAGS := $(GOFLAGS) -trimpath
export CGO_ENABLED := 0

ARGS ?=
# Seconds for each fuzz target: a few in CI, where what is in the repository is the start, longer by hand, where the last run is.
FUZZTIME ?= 60
# Packages with code of ours; the end-to-end scenarios have the build tag "integration" and a target of their own.
PKGS ?= ./...

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
PROMTOOL := github.com/prometheus/prometheus/cmd/promtool@v0.316.0
GOSEC := github.com/securego/gosec/v2/cmd/gosec@v2.22.4

.PHONY: help setup build demo test test-unit test-race test-fuzz test-integration test-storm test-shared test-adopt test-five test-roots test-files test-corpus test-idle \
	test-identity test-operate test-budget test-systemd test-packages test-formula test-container test-kubernetes packages fuzz fuzz-live sbom bench scale \
	chaos soak lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## prepare this machine: Debian packages (as root), virtualenvs with three Salt versions, Go and its modules
	@integration/setup/setup

build: ## bin/saltclusterd, bin/saltclusterctl, bin/lab, bin/sharefs
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/saltclusterd ./cmd/saltclusterctl ./integration/demo/lab ./integration/lab/sharefs

demo: setup build ## three stock masters, HAProxy and six minions, until Ctrl-C (ARGS=--once: check and end)
	@$(GO) build -o bin/demo ./integration/demo
	@exec bin/demo $(ARGS)

test: setup ## everything that must hold; what CI runs
	@mkdir -p bin && : >bin/flaky
	@status=0; $(MAKE) test-parts || status=$$?; cat bin/flaky; exit $$status
	@echo "test: all passed"

.PHONY: smoke
smoke: setup build ## ten scenarios on one cluster of stock masters and minions, in some minutes
	@SALTCLUSTER_SMOKE=1 integration/setup/gotest bin/smoke.log $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestSmoke$$' ./integration/scenario

.PHONY: test-parts
test-parts: lint-fast
	@$(MAKE) -j 2 raced unraced docs-check dashboard-check build
	@integration/setup/scenarios $(GO) $(MAKE) test-fuzz test-build-packages

test-unit: ## unit tests, quicker than under the race detector
	$(GO) test -count=1 $(PKGS)

# What these test has one goroutine, so there is no race to find, and they compute: the detector makes it five times as much.
# saltclusterctl starts itself 300 times; what of it has goroutines is in packages of its own. The comparisons with what Salt's
# own code answers, which have names of their own, ask one question after the other.
UNRACED := saltclusterd/integration|saltclusterd/integration/scale|saltclusterd/cmd/saltclusterctl
COMPARES := Test\w*AsStock
# Those that take longest begin first, so that none is left at the end.
LONGEST := saltclusterd/(cmd/saltclusterd/daemon|consensus|fsync/(keydir|roots)|sidecar/(edge|jobcache|localmaster|returns))

test-race: ## unit tests under the race detector (lint-fast has vetted them)
	@$(MAKE) -j 2 raced unraced

.PHONY: raced unraced
bin/packages: .FORCE
	@mkdir -p bin && $(GO) list $(PKGS) >bin/packages
.PHONY: .FORCE

unraced: bin/packages
	@grep -xE '$(UNRACED)' bin/packages | xargs -r integration/setup/gotest bin/unraced.log $(GO) test -vet=off -count=1
	@grep -rlE --include='*_test.go' --exclude-dir=bin '^func $(COMPARES)\(' . | xargs dirname | sort -u | sed 's|^\.|saltclusterd|' | \
	 grep -xFf bin/packages | \
	 xargs -r integration/setup/gotest bin/compares.log $(GO) test -vet=off -count=1 -run '^$(COMPARES)$$'

# A program with the race detector waits for a second when it ends, a test program and each copy of itself that it starts: for
# goroutines that have not ended. Ours have (New, Open, Close), and 50 ms are enough to see one that has not.
raced: bin/packages
	@{ grep -xE '$(LONGEST)' bin/packages; grep -vxE '$(UNRACED)' bin/packages; } | CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 \
	 xargs -r integration/setup/gotest bin/race.log $(GO) test -race -vet=off -count=1 -p 6 -parallel 4 -skip '^$(COMPARES)$$'

test-fuzz: ## every decoder has a fuzz target; each for a second
	$(GO) test -count=1 ./integration/fuzzed
	@FUZZFRESH=1 integration/setup/fuzz 1 $(PKGS)

fuzz: setup ## every fuzz target for FUZZTIME seconds, from where the last run ended (PKGS=./sidecar/...)
	@integration/setup/fuzz $(FUZZTIME) $(PKGS)

fuzz-live: setup build ## a hostile minion with an accepted key against a live cluster (ARGS="-seed N -for 5m")
	@$(GO) build -o bin/hostile ./integration/hostile/cmd
	@exec bin/hostile $(ARGS)

sbom: build ## dist/saltclusterd.cdx.json: what is in the programs, read from them
	@PATH="$$($(GO) env GOROOT)/bin:$$PATH" $(GO) run ./packaging/sbom -o dist/saltclusterd.cdx.json bin/saltclusterd bin/saltclusterctl
	@echo dist/saltclusterd.cdx.json

test-integration: build ## real Salt, real HAProxy, real faults (RUN=pattern picks scenarios)
	@$(if $(RUN),integration/setup/gotest bin/integration.log $(GO) test -tags integration -count=1 -p 1 -parallel 2 -timeout 50m -v -run '$(RUN)' ./integration/scenario/...,integration/setup/scenarios $(GO))

.PHONY: test-upstream
test-upstream: setup build ## Salt's own tests, without and through saltclusterd (as root, hours; ARGS="--version 3008.3 --nodes 3 --select jobs --resume")
	@integration/setup/upstream run $(ARGS)

test-storm: build ## 5,000 played minions on three nodes: the AES key changes, a node is killed (HERD=number)
	HERD=$(or $(HERD),5000) $(GO) test -tags integration -count=1 -timeout 30m -v -run '^TestStorm$$' ./integration/scenario/

test-shared: build ## masters of three versions with keys, roots and jobs on one share: it hangs, and they leave it
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 40m -v -run '^(TestShared|TestMigrate)$$' ./integration/scenario/

test-adopt: build ## running masters with minions become nodes: one (and leaves again), two side by side (and leave), those of Salt's own cluster
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 80m -v -run '^TestAdopt' ./integration/scenario/

.PHONY: test-parity
test-parity: build ## what operators type, asked of a bare master of each version and of ours at once (ARGS=-update: what make test compares with)
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 40m -v -run '^TestClusterEqualsBare$$' ./integration/scenario/parity/ $(ARGS)

test-five: build ## five masters, of which three keep each job
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^(TestFiveNodes|TestReturnsAheadOfTheirPublisher)$$' ./integration/scenario/

.PHONY: test-transports
test-transports: build ## minions with tcp, with ws, with TLS and with IPv6: moved, cut off, one node killed
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^(TestTransports|TestTLS|TestIPv6)$$' ./integration/scenario/

.PHONY: test-presence
test-presence: build ## who is alive, by stock commands and events: a minion stops, the node of one is killed
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestPresence$$' ./integration/scenario/

.PHONY: test-data
test-data: build ## what masters know of minions, jobs and tokens: clocks apart, kills, a partition, a power loss; the same questions on each
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^(TestDataFaults|TestPillars)$$' ./integration/scenario/

.PHONY: test-docs
test-docs: build ## what the guides mark as runnable, typed as it stands: from a master at work to the node that leaves
	$(GO) test -count=1 -v -run 'Guides' ./cmd/saltclusterctl/
	$(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestDocs$$' ./integration/scenario/

test-roots: build ## roots with a file of 2 GiB, 50,000 files (8 GiB of disk in TMPDIR); then full disks, kills in the middle, clocks apart, many hands
	ROOTS_LARGE=1 $(GO) test -count=1 -timeout 30m -v -run '^(TestLargeFile|TestFiftyThousandFiles)$$' ./fsync/roots/
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^(TestRootsFaults|TestHands)$$' ./integration/scenario/

test-files: build ## what minions ask the file server, of masters of three versions and of ours
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestFiles$$' ./integration/scenario/

test-corpus: build ## what real minions and syndics of three versions asked, asked of bare masters and of ours (SALTCLUSTER_RANDOM=variants that nobody sends)
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 60m -v -run '^Test(Syndic)?Corpus$$' ./integration/scenario/

.PHONY: test-releases
test-releases: setup build ## older releases of each Salt line: their buses and session keys differ; beside the unit tests, and a whole cluster that becomes the newest and older again
	@older=$$(integration/setup/older) && SALTCLUSTER_VENVS=$$older $(GO) test -count=1 -timeout 20m -v -run '^TestStockMaster$$' ./sidecar/localmaster/ ./sidecar/upstream/ && \
	 SALTCLUSTER_VENVS=$$older $(GO) test -count=1 -timeout 20m ./sidecar/jobcache/ ./sidecar/fileserve/ ./sidecar/mines/
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 60m -v -run '^TestReleases$$' ./integration/scenario/

# The newest release of each Salt line, beside the pinned ones of integration/setup/env.sh.
NEWEST := 3006.30 3007.17 3008.5

.PHONY: test-newest
test-newest: setup build ## the newest release of each Salt line: what its masters and minions send, and the scenarios of make smoke
	@newest=$$(integration/setup/older -d newest $(NEWEST)) && export SALTCLUSTER_VENVS=$$newest SALTCLUSTER_VERSIONS="$(NEWEST)" && \
	 $(GO) test -count=1 -timeout 20m ./sidecar/... && \
	 SALTCLUSTER_SMOKE=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^TestSmoke$$' ./integration/scenario/

.PHONY: test-proxies
test-proxies: build ## salt-proxy and deltaproxies of two versions behind HAProxy: answers, presence, a node that dies, one id that is rejected
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestProxies$$' ./integration/scenario/

.PHONY: test-api
test-api: build ## salt-api beside masters of three versions, behind HAProxy: sessions, tokens, jobs, events, hooks, rest_tornado, drained nodes; SaltGUI's requests, pepper; clients on other hosts
	@pepper=$$(integration/setup/pepper) && SALTCLUSTER_LONG=1 SALTCLUSTER_PEPPER=$$pepper \
	 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestSaltAPI$$' ./integration/scenario/

.PHONY: test-syndics
test-syndics: build ## a syndic beside each master of a cluster below a master of masters, and syndics that have two nodes in their list; a node is dead
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^TestSyndics(Beside|Above)$$' ./integration/scenario/

.PHONY: test-version2
test-version2: setup build ## a minion of 3006.9, whose payload version is 2, where nodes and masters allow that
	@integration/setup/older 3006.9 >/dev/null
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestVersion2$$' ./integration/scenario/

.PHONY: test-libzmq41
test-libzmq41: setup build ## minions with libzmq 4.1, which knows no PING, behind a load balancer that cuts what is silent
	SALTCLUSTER_LIBZMQ41=$$(integration/setup/libzmq41) \
	 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestLibzmq41$$' ./integration/scenario/

.PHONY: test-older
test-older: build ## OLD=DIRECTORY with programs of an earlier version: a cluster is upgraded from them, node by node, and keeps its leader meanwhile
	SALTCLUSTER_OLD_BIN=$(abspath $(OLD)) $(GO) test -tags integration -count=1 -timeout 30m -v -run '^TestOlderProgram$$' ./integration/scenario/

test-operate: build ## what an operator does by hand: configurations compared, a wrong clock, a key store in the wrong order, thorium that deletes keys, a returner that hangs, remove --force
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^(TestOperate|TestThorium)$$' ./integration/scenario/

test-budget: build ## what one minion would have all of: workers, answers, places on the disk, of masters of three versions
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestBudget$$' ./integration/scenario/

.PHONY: test-behind
test-behind: build ## how soon a node that was cut off, five times, or whose disk was full, has what was deleted meanwhile
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestBehind$$' ./integration/scenario/

.PHONY: test-wire
test-wire: build ## what minions get and say on the wire, also with masters that fire no sign-ins
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestWire$$' ./integration/scenario/

test-identity: build ## master.pem of all nodes is replaced under minions of three versions; one is not told, nodes are killed
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestIdentity$$' ./integration/scenario/

.PHONY: test-failback
test-failback: build ## minions with both nodes in their list, with a name for all, with a random_reauth_delay; nodes are killed and come back
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 60m -v -run '^(TestFailback|TestNames|TestReauthDelay)$$' ./integration/scenario/

.PHONY: test-sha224
test-sha224: build ## minions whose RSA is with SHA-224 only, as in FIPS mode, beside usual ones
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^TestSHA224$$' ./integration/scenario/

test-idle: build ## ten minutes of silence through a HAProxy that cuts after 30 s
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run "^(TestIdleForTenMinutes|TestOutage)$$" ./integration/scenario

test-systemd: build ## the unit of packaging/ in a real systemd of its own: reload, kill, stop (as root)
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 10m -v -run '^TestSystemd$$' ./integration/scenario/

test-packages: setup ## deb and rpm, made twice, installed (also from a signed repository), upgraded, removed in a Debian 12 of its own (as root, needs a mirror)
	@integration/setup/packages debootstrap $(SIGNING)
	PATH="$$($(GO) env GOROOT)/bin:$$PATH" SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -skip '^(TestFormula|TestContainers|TestWalk)' ./integration/packages/

.PHONY: test-walk
test-walk: setup ## a newcomer's way with the packages: three masters adopted, HAProxy in front, drained, upgraded, removed, left, purged (as root, needs a mirror)
	@integration/setup/packages debootstrap
	PATH="$$($(GO) env GOROOT)/bin:$$PATH" SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^TestWalk$$' ./integration/packages/

test-formula: setup ## the Salt formula with three versions of Salt in Debians of their own: applied, upgraded, undone, orchestrated (as root, needs a mirror)
	@integration/setup/packages debootstrap
	PATH="$$($(GO) env GOROOT)/bin:$$PATH" SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 30m -v -run '^TestFormula' ./integration/packages/

test-container: setup ## the images of packaging/container, built with buildah, run like the pods of packaging/kubernetes (as root, needs a mirror)
	@integration/setup/packages debootstrap buildah
	PATH="$$($(GO) env GOROOT)/bin:$$PATH" SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 20m -v -run '^TestContainers$$' ./integration/packages/

test-kubernetes: ## the Kubernetes example against its schemas
	$(GO) test -tags integration -count=1 -v ./integration/kubernetes/

# That of Debian's package prometheus, if there is one: building it takes minutes.
promtool = $(or $(shell command -v promtool),$(GO) run $(PROMTOOL))

.PHONY: test-alerts
test-alerts: ## the alert rules on the series of a drain, a dead node, a lost majority, a full disk, a wrong clock, an old certificate
	$(promtool) check rules packaging/monitoring/alerts.yml
	$(promtool) test rules packaging/monitoring/alerts_test.yml
	$(promtool) check config --syntax-only packaging/monitoring/scrape.yml

.PHONY: test-dashboard
test-dashboard: ## the Grafana dashboard against the schema of Grafana
	cd integration/grafana && ../setup/go test -count=1 ./...

.PHONY: dashboard-check
dashboard-check: # where the module with the schema can be had
	@if (cd integration/grafana && ../setup/go mod download); then $(MAKE) test-dashboard; \
	 else echo "SKIPPED: the dashboard was not checked, for the schema of Grafana cannot be had"; fi

packages: ## deb and rpm (amd64, arm64), tar.gz, bills of materials and SHA256SUMS of this commit into dist/; the same commit gives the same bytes
	@PATH="$$($(GO) env GOROOT)/bin:$$PATH" $(GO) run ./packaging/build $(ARGS)

.PHONY: test-build-packages
test-build-packages: # that they can be made: a module's license or a new page may be in the way
	@if $(GO) mod download $$(sed -nE 's|.*"(github.com/.*)/cmd/[a-z-]*(@v[0-9.]*)"|\1\2|p' packaging/build/main.go packaging/sbom/main.go); then \
		PATH="$$($(GO) env GOROOT)/bin:$$PATH" SOURCE_DATE_EPOCH=0 $(GO) run ./packaging/build -arch amd64 -out bin/dist -version 0.0.0; \
	else echo "SKIPPED: packages were not built, for their tools cannot be had"; fi

# Commands that make a signed repository, with their packages in Debian.
SIGNING := apt-ftparchive:apt-utils createrepo_c:createrepo-c rpmsign:rpm gpg:gnupg

.PHONY: repository
repository: ## what is in dist/ as a signed repository for apt, dnf and zypper (KEY=GPG-KEY; PACKAGES=dist REPOSITORY=dist/repository URL=https://...)
	@integration/setup/packages $(SIGNING)
	@packaging/repository "$(KEY)" "$(PACKAGES)" "$(REPOSITORY)" "$(URL)"

.PHONY: test-page
test-page: ## the status page in a real Chromium (as root, needs a Debian mirror the first time; ARGS=-update makes the pictures of docs/ anew)
	@integration/setup/packages chromium
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 15m -v ./integration/page/ $(ARGS)

.PHONY: docs
docs: ## the site of docs/, with search, into dist/site (installs mkdocs-material into the cache the first time)
	@mkdocs=$$(integration/setup/site) && NO_MKDOCS_2_WARNING=1 $$mkdocs build --strict -f packaging/site/mkdocs.yml
	@echo dist/site/index.html

.PHONY: docs-check
docs-check: # the site and the links between its pages, where its packages can be installed
	@if timeout 120 integration/setup/site >/dev/null; then $(MAKE) docs; else echo "docs: not built, mkdocs-material cannot be installed here"; fi

.PHONY: test-site
test-site: docs ## links of the site, and every page in a real Chromium (as root, needs a Debian mirror the first time)
	@integration/setup/packages chromium
	SALTCLUSTER_LONG=1 $(GO) test -tags integration -count=1 -timeout 15m -v ./integration/site/ $(ARGS)

bench: setup build ## ratios against libzmq, bare stock masters and rsync, as tables (ARGS="-what keys", ARGS=-h)
	$(GO) run ./integration/bench $(ARGS)

scale: ## how a cluster of 3 to 50 nodes with up to 100,000 minions would fare, by simulation (ARGS="-nodes 3,10 -minions 50000"; ARGS=-h)
	@$(GO) run ./integration/scale/cmd $(ARGS)

chaos: setup build ## random faults for five minutes, judged by what minions, job caches and nodes say (ARGS="-seed N -for 5m -nodes 5")
	@$(GO) build -o bin/chaos ./integration/chaos/cmd
	@exec bin/chaos $(ARGS)

soak: setup build ## an hour of load with everybody in it who is slow or too fast, under a memory ceiling (ARGS="-for 10m")
	@$(GO) build -o bin/soak ./integration/soak
	@exec bin/soak $(ARGS)

.PHONY: lint-fast
lint-fast:
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs -r $(dir $(shell $(GO) env GOROOT)/bin/)gofmt -l); \
	 if [ -n "$$files" ]; then echo "gofmt would change: $$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags integration ./integration/...
	$(GO) vet -tags nolibcrypto ./sidecar/saltcrypt/libcrypto

.PHONY: check
check: lint-fast ## before each commit: gofmt, go vet, and the rules for sizes, names, language and pages
	$(GO) test ./integration ./integration/guides

.PHONY: generated
generated: ## the pages and files that are made from the code: command line, JSON, options, metrics, pictures
	$(GO) test ./cmd/saltclusterctl ./sidecar/adminapi -run TestReference_Current -update
	$(GO) test ./cmd/saltclusterd/config -update
	$(GO) test ./cmd/saltclusterd/daemon -run MetricsReference -update
	$(GO) test ./integration/pictures -update

lint: setup lint-fast ## gofmt, go vet, staticcheck, govulncheck, gosec
	$(GO) run $(STATICCHECK) -tags integration ./...
	@integration/setup/vulncheck $(GOVULNCHECK) ./...
	@integration/setup/gosec $(GOSEC)

clean: ## remove what build made; caches with virtualenvs stay
	rm -rf bin dist
