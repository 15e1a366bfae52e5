// Its own module: Grafana's schema is not part of what saltclusterd is made of.
module saltclusterd/integration/grafana

go 1.26.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
