// Package kubernetes looks at the example for Kubernetes (packaging/kubernetes): whether it holds together, names what
// saltclusterd has, and is what Kubernetes' own schemas say (make test-kubernetes). No cluster is needed;
// integration/packages runs what is in the containers.
package kubernetes
