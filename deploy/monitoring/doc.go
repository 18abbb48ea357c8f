// Package monitoring has a Grafana dashboard and Prometheus rules for weir. Its tests evaluate both,
// with Prometheus's own library, on what real servers export.
package monitoring
