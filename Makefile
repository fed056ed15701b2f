# Storeplane's one entry point. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
.SILENT:
MAKEFLAGS += --no-print-directory

# The embedded cluster's registry is used unless another one is given.
export REGISTRY ?= 10.88.0.1:5000/storeplane
# dev makes a version of the packages' content.
VERSION ?= dev
OUT := _out
# Version of the scanner.
GOVULNCHECK := v1.9.0

# Without the path of the working copy in what is compiled, Go's cache serves a clone in any
# folder, as CI makes one: it compiles what has changed, and not all packages of this module
# (internal/compose: 0.3 s of processor time, 3.2 s before). Set it in the environment too, or what
# go builds outside of make is compiled apart from this.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)

CLUSTER := go run ./test/cluster
# Where the embedded cluster's node finds what published manifests call
# registry.company.com: the registry itself, without a path.
COMPANY ?= $(firstword $(subst /, ,$(REGISTRY)))

##@ General

.PHONY: help
help: ## Print this help.
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  \033[36m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

.PHONY: up
up: ## From nothing to a running shop: cluster, Crossplane, packages, examples/shop/store.yaml. Needs root.
	$(CLUSTER) up
	point=$$($(CLUSTER) env); eval "$$point"
	$(MAKE) images install
	go run ./hack/demo --claim examples/shop/store.yaml

.PHONY: down
down: ## Stop the cluster of `make up` and remove all of it but the caches.
	$(CLUSTER) down

.PHONY: status
status: ## Say what of the cluster of `make up` runs.
	$(CLUSTER) status

.PHONY: render
render: ## Print what a claim becomes, offline: CLAIM=FILE [OBSERVED=DIR] [SETTINGS=FILE] [IMAGES_FILE=images.json of a release] [CONVERGE=1 for all it will ever make] [POLICY=1 for what its guardrails say].
	@test -n "$(CLAIM)" || { echo "render: say which claim: make render CLAIM=examples/shop/store.yaml" >&2; exit 1; }
	$(if $(CONVERGE)$(POLICY),,tools=$$(hack/crossplane.sh); eval "$$tools")
	go run ./cmd/storeplane $(if $(CONVERGE),converge,$(if $(POLICY),policy,render $(if $(OBSERVED),--observed "$(OBSERVED)"))) $(if $(SETTINGS),--settings "$(SETTINGS)") $(if $(IMAGES_FILE),--images "$(IMAGES_FILE)") "$(CLAIM)"

.PHONY: plan
plan: ## Say what applying a claim does to what runs on the cluster of KUBECONFIG: CLAIM=FILE [FROM=FILE of storeplane export, for no cluster].
	@test -n "$(CLAIM)" || { echo "plan: say which claim: make plan CLAIM=examples/shop/store.yaml" >&2; exit 1; }
	go build -o $(OUT)/storeplane ./cmd/storeplane
	$(OUT)/storeplane plan $(if $(FROM),--from "$(FROM)") "$(CLAIM)" || case $$? in 3 | 4) ;; *) exit 1 ;; esac

##@ Install

.PHONY: packages
packages: ## Build the Crossplane packages and install manifests into _out/packages: [REGISTRY=…] [VERSION=v1.2.3] [IMAGES=REGISTRY that has the images, if not REGISTRY].
	tools=$$(hack/crossplane.sh); eval "$$tools"
	go run ./hack/packages --registry "$(REGISTRY)" $(if $(IMAGES),--images "$(IMAGES)") --version "$(VERSION)" --crossplane "$$CROSSPLANE_CLI" --out $(OUT)/packages

.PHONY: images
images: ## Build the images that claims run, and the examples', and push them to REGISTRY.
	hack/shop.sh $(OUT)/shop
	hack/instance.sh $(OUT)/postgresql
	from=$$(hack/majors.sh "$(VERSION)"); eval "$$from"
	for major in $$MAJORS; do
	  $(CLUSTER) image --file package/images/postgresql/Dockerfile --context $(OUT)/postgresql --build-arg MAJOR=$$major --build-arg SUITES="$$SUITES" --tag $(REGISTRY)/postgresql:$$major --version "postgres --version" --push
	done
	hack/backup.sh $(OUT)/backup
	mkdir -p $(OUT)/mysql
	cp $(OUT)/postgresql/instance $(OUT)/backup/mysql/backup $(OUT)/mysql/
	from=$$(hack/mysql.sh "$(VERSION)"); eval "$$from"
	for series in $$SERIES; do
	  # A suite of Debian that changes may have another series one day: only an experimental engine needs it.
	  $(CLUSTER) image --file package/images/mysql/Dockerfile --context $(OUT)/mysql --build-arg SERIES=$$series --build-arg SUITES="$$SUITES" --tag $(REGISTRY)/mysql:$$series --version "mysqld --version" --push || \
	    echo "images: MySQL $$series is left out: its image cannot be built" >&2
	done
	for major in $$MAJORS; do
	  $(CLUSTER) image --file package/images/backup/postgresql.Dockerfile --context $(OUT)/backup/postgresql --base $(REGISTRY)/postgresql:$$major --tag $(REGISTRY)/backup:postgresql-$$major --push
	done
	for flavour in mysql mongodb; do
	  $(CLUSTER) image --file package/images/backup/$$flavour.Dockerfile --context $(OUT)/backup/$$flavour --tag $(REGISTRY)/backup:$$flavour --push
	done
	$(CLUSTER) image --file package/images/redis/Dockerfile --context package/images/redis --tag $(REGISTRY)/redis:8 --push
	for tier in backend frontend; do
	  for tag in v1 v2; do
	    $(CLUSTER) image --file examples/shop/$$tier.Dockerfile --context $(OUT)/shop/$$tier --base scratch --build-arg VERSION=$$tag --tag $(REGISTRY)/shop-$$tier:$$tag --push
	  done
	done
	hack/vote.sh $(OUT)/vote
	for tag in v1 v2; do
	  $(CLUSTER) image --file examples/vote/vote.Dockerfile --context $(OUT)/vote --base scratch --build-arg VERSION=$$tag --tag $(REGISTRY)/vote:$$tag --push
	done

.PHONY: e2e-images
e2e-images: ## Build the images that only the end-to-end tests and benchmarks need, and push them to REGISTRY.
	hack/e2e-images.sh $(OUT)/e2e-images
	$(CLUSTER) image --file test/e2e/images/stores/Dockerfile --context $(OUT)/e2e-images/stores --base scratch --tag $(REGISTRY)/e2e-stores:latest --push
	$(CLUSTER) image --file test/e2e/images/azurite/Dockerfile --context $(OUT)/e2e-images/azurite --tag $(REGISTRY)/e2e-azurite:latest --push
	$(CLUSTER) image --file test/e2e/images/bench/Dockerfile --context $(OUT)/e2e-images/bench --base $(REGISTRY)/backup:postgresql-17 --tag $(REGISTRY)/e2e-bench:latest --push
	$(CLUSTER) image --file test/e2e/images/ledger/Dockerfile --context test/e2e/images/ledger --base $(REGISTRY)/postgresql:17 --tag $(REGISTRY)/e2e-ledger:latest --push
	$(CLUSTER) image --file test/e2e/images/traefik/Dockerfile --context $(OUT)/e2e-images/traefik --base scratch --tag $(REGISTRY)/e2e-traefik:latest --push
	for image in prometheus browser; do
	  $(CLUSTER) image --file test/e2e/images/$$image/Dockerfile --context test/e2e/images/$$image --tag $(REGISTRY)/e2e-$$image:latest --push
	done
	$(CLUSTER) image --file test/e2e/images/nginx/Dockerfile --context test/e2e/images/nginx --tag $(REGISTRY)/e2e-nginx:root --push
	$(CLUSTER) image --file test/e2e/images/nginx/Dockerfile --context test/e2e/images/nginx --build-arg RUNS_AS=www-data --tag $(REGISTRY)/e2e-nginx:www-data --push
	hack/shop.sh $(OUT)/shop
	$(CLUSTER) image --file test/e2e/images/company/backend.Dockerfile --context $(OUT)/shop/backend --base scratch --tag $(COMPANY)/ecommerce-backend:v2.1.0 --push
	$(CLUSTER) image --file examples/shop/frontend.Dockerfile --context $(OUT)/shop/frontend --base scratch --tag $(COMPANY)/ecommerce-frontend:v2.1.0 --push

.PHONY: install
install: ## Build, push and install the packages on the cluster of KUBECONFIG, from REGISTRY.
	@kubectl get --raw /readyz >/dev/null || { echo "install: no cluster answers: set KUBECONFIG, or run make up" >&2; exit 1; }
	tools=$$(hack/crossplane.sh); eval "$$tools"
	go run ./hack/packages --registry "$(REGISTRY)" $(if $(IMAGES),--images "$(IMAGES)") --version "$(VERSION)" --crossplane "$$CROSSPLANE_CLI" --out $(OUT)/packages --push
	hack/install.sh $(OUT)/packages

.PHONY: release
release: ## Write a folder with all that a release is installed from to _out/release/VERSION: VERSION=v1.2.3 REGISTRY=… that make images has pushed to [IMAGES=… if it is another one].
	tools=$$(hack/crossplane.sh); eval "$$tools"
	go run ./hack/packages --registry "$(REGISTRY)" $(if $(IMAGES),--images "$(IMAGES)") --version "$(VERSION)" --crossplane "$$CROSSPLANE_CLI" --out $(OUT)/packages --releases $(OUT)/release

.PHONY: sboms
sboms: ## Write what each image of the release in _out/packages is made of (CycloneDX), from REGISTRY: [ATTACH=1 to attach it to the image there].
	go run ./hack/sbom --registry "$(REGISTRY)" --packages $(OUT)/packages --out $(OUT)/packages/sboms $(if $(ATTACH),--attach)

.PHONY: signing-key
signing-key: ## Write a key pair to sign releases with, cosign.key and cosign.pub, to DIR, as cosign generate-key-pair does: its password is in COSIGN_PASSWORD of the environment.
	@test -n "$(DIR)" || { echo "signing-key: name the folder to write to: make signing-key DIR=FOLDER" >&2; exit 1; }
	go -C hack/sign build -o $(abspath $(OUT))/sign .
	$(OUT)/sign key-pair --out "$(DIR)"

.PHONY: sign
sign: ## Sign the images and packages of the release in _out/packages in REGISTRY, by their digests: COSIGN_KEY=FILE, its password in COSIGN_PASSWORD of the environment [RELEASE=DIR of make release, to write the signatures there, for its load.sh, instead] [REKOR_URL=… of a transparency log].
	go -C hack/sign build -o $(abspath $(OUT))/sign .
	$(OUT)/sign images $(if $(RELEASE),--release "$(RELEASE)",--registry "$(REGISTRY)" --packages $(OUT)/packages) $(if $(COSIGN_KEY),--key "$(COSIGN_KEY)") $(if $(REKOR_URL),--rekor-url "$(REKOR_URL)")

##@ Develop

.PHONY: generate
generate: ## Write what is made from the API's Go types: deep copies and definitions.
	go generate ./apis/...

.PHONY: test
test: ## Run the tests that need neither root nor a cluster.
	hack/generated.sh
	go vet ./... && go vet -tags e2e ./test/e2e/...
	tools=$$(hack/crossplane.sh && hack/helm.sh && hack/promtool.sh); eval "$$tools"
	go test -short -timeout 20m ./...
	(cd examples/shop && go vet ./... && go test ./...)
	(cd examples/vote/app && go vet ./... && go test ./...)
	(cd test/stores && go vet ./... && go test ./...)

.PHONY: sign-test
sign-test: ## Run the tests of make sign, which make test leaves out: Crossplane's own verification is built with them, which takes minutes once.
	cd hack/sign && go vet ./... && go test ./...

.PHONY: signature-test
signature-test: ## See Crossplane refuse an unsigned package and install a signed one, on the cluster of KUBECONFIG, which is as it was afterwards.
	hack/sign-test.sh "$(REGISTRY)"

.PHONY: test-full
test-full: ## Run the long tests too, which make test leaves out. Needs root where Debian packages are missing.
	$(CLUSTER) packages
	go test -timeout 60m ./...

.PHONY: release-test
release-test: ## Install a release in each of its ways and uninstall it, on the cluster of KUBECONFIG, which has Crossplane and not Storeplane: [RELEASE=DIR, else one of the images in REGISTRY].
	hack/release-test.sh "$(REGISTRY)" $(if $(RELEASE),"$(RELEASE)")

.PHONY: e2e
e2e: ## Run what is quick of the suites on the cluster of KUBECONFIG, else on the embedded one.
	hack/with-cluster.sh hack/e2e.sh core postgresql mysql backup appconfig platform borders plan

.PHONY: e2e-full
e2e-full: ## Run a suite in full: SUITE=core|postgresql|mysql|backup|appconfig|platform|borders|plan|upgrade, after the long tests where they try the same.
	$(if $(filter backup appconfig platform,$(SUITE)),$(MAKE) test-full)
	hack/with-cluster.sh hack/e2e.sh --full "$(or $(SUITE),core)"

.PHONY: soak
soak: ## Hold a database of three under 50 faults: [SUITE=mysql] [SEED=N for the same faults again] [FAULTS=50]. Takes up to an hour, on the cluster of KUBECONFIG, else on the embedded one.
	hack/with-cluster.sh go run ./test/e2e/run --suite "$(or $(SUITE),postgresql)" --soak $(if $(SEED),--seed "$(SEED)") $(if $(FAULTS),--faults "$(FAULTS)")

.PHONY: bench
bench: ## Measure the function against a floor, in one run.
	go test ./test/bench -run '^$$' -bench . -benchmem -count 1 -timeout 30m

.PHONY: bench-plan
bench-plan: ## Measure plans of an edit of one claim of each kind, and of 1,000 claims against another release.
	go test ./internal/plan -run '^$$' -bench . -benchtime 2s -timeout 30m

.PHONY: bench-postgresql
bench-postgresql: ## Measure PostgreSQL of a claim against the same image run plainly, on the cluster of KUBECONFIG, else on the embedded one.
	hack/with-cluster.sh go run ./test/bench/postgresql

.PHONY: bench-mysql
bench-mysql: ## Measure MySQL of a claim of one and of three against the same image run plainly, on the cluster of KUBECONFIG, else on the embedded one.
	hack/with-cluster.sh go run ./test/bench/mysql

.PHONY: bench-backup
bench-backup: ## Measure a logical backup of 2 GB against the plain pipe and against pgBackRest, on the cluster of KUBECONFIG, else on the embedded one.
	hack/with-cluster.sh go run ./test/bench/backup

.PHONY: bench-archive
bench-archive: ## Measure how fast PostgreSQL's WAL gets into a repository on a volume.
	go test ./internal/instance/archive -run '^$$' -bench . -benchtime 1x -timeout 30m

.PHONY: bench-scale
bench-scale: ## Measure 100 to 1,000 WebApps and 10 to 200 shops on simulated nodes of the embedded cluster, into docs/benchmarks.md: [ARGS=--webapps=100 …].
	tools=$$(hack/kwok.sh); eval "$$tools"
	hack/with-cluster.sh go run ./test/bench/scale --out docs/benchmarks.md $(ARGS)

.PHONY: bench-appconfig
bench-appconfig: ## Measure rollouts of 200 workloads, and of 1,000 AppConfigs with 5,000, on an API server of its own.
	go run ./test/bench/appconfig

.PHONY: scan
scan: ## Look for known vulnerabilities that the code reaches. Needs the Go vulnerability database.
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) -C package/images/backup/tools tool
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) -C hack/sign ./...
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) -C examples/shop ./...
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) -C examples/vote/app ./...

.PHONY: lint
lint: ## Run golangci-lint, built from its module.
	go tool -modfile=hack/lint/go.mod golangci-lint run ./...
