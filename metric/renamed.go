package metric

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Rename is a metric that had another name before; both without Prefix.
type Rename struct{ Old, New string }

// Renamed lists the old names. They are exported beside the new ones until version 1.0, which removes this table.
var Renamed = []Rename{
	{"admin_connections_refused_total", "admin_refused_connections_total"},
	{"consensus_attempts_failed_total", "consensus_failed_attempts_total"},
	{"consensus_forwarded_total", "consensus_forwarded_requests_total"},
	{"consensus_messages_refused_total", "consensus_refused_messages_total"},
	{"consensus_proposals_failed_total", "consensus_failed_proposals_total"},
	{"datacache_news_total", "datacache_changes_total"},
	{"datacache_purged_total", "datacache_purged_minions_total"},
	{"datacache_received_total", "datacache_received_records_total"},
	{"datacache_sent_bytes", "datacache_sent_bytes_total"},
	{"datacache_sent_total", "datacache_sent_records_total"},
	{"draining", "node_draining"},
	{"edge_connections_accepted_total", "edge_accepted_connections_total"},
	{"edge_connections_ended_total", "edge_ended_connections_total"},
	{"edge_evicted_total", "edge_evicted_connections_total"},
	{"edge_refused_slowed_total", "edge_slowed_requests_total"},
	{"edge_unauthenticated_refused_total", "edge_unauthenticated_dropped_requests_total"},
	{"fanout_late_dropped_total", "fanout_late_dropped_publications_total"},
	{"fanout_late_total", "fanout_late_publications_total"},
	{"fanout_missed_total", "fanout_missed_records_total"},
	{"fanout_refused_total", "fanout_refused_publications_total"},
	{"guard_refused_total", "minion_refused_requests_total"},
	{"health_connections_refused_total", "health_refused_connections_total"},
	{"jobcache_differing_total", "jobcache_differing_returns_total"},
	{"jobcache_duplicates_total", "jobcache_duplicate_returns_total"},
	{"jobs_known", "jobcache_jobs"},
	{"jobs_news_total", "jobs_changes_total"},
	{"jobs_received_total", "jobs_received_files_total"},
	{"jobs_returned_total", "jobs_arrived_returns_total"},
	{"jobs_running", "master_running_jobs"},
	{"jobs_sent_total", "jobs_sent_files_total"},
	{"keydir_failures_total", "keys_failures_total"},
	{"keydir_keys", "keys_files"},
	{"keydir_overruled_total", "keys_overruled_files_total"},
	{"keydir_proposals_total", "keys_proposals_total"},
	{"keydir_scan_seconds", "keys_scan_seconds"},
	{"keydir_written_total", "keys_written_files_total"},
	{"localmaster_bus_dropped_events_total", "master_bus_dropped_events_total"},
	{"localmaster_bus_fired_events_total", "master_bus_fired_events_total"},
	{"localmaster_bus_malformed_events_total", "master_bus_malformed_events_total"},
	{"localmaster_bus_queue_events", "master_bus_queue_events"},
	{"localmaster_bus_received_events_total", "master_bus_received_events_total"},
	{"localmaster_bus_up", "master_bus_up"},
	{"mine_requests_total", "minion_mine_requests_total"},
	{"minion_events_waiting", "minion_waiting_events"},
	{"missed_jobs_published_total", "master_republished_jobs_total"},
	{"peer_accepted_total", "peer_accepted_connections_total"},
	{"peer_refused_total", "peer_refused_connections_total"},
	{"returns_events_given_up_total", "returns_dropped_events_total"},
	{"returns_total", "minion_returns_total"},
	{"returns_unanswered", "returns_unanswered_records"},
	{"roots_fetched_bytes", "roots_fetched_bytes_total"},
	{"roots_sent_bytes", "roots_sent_bytes_total"},
	{"share_good", "share_up"},
	{"sidecar_awaiting_requests", "minion_awaiting_requests"},
	{"sidecar_catching_up_requests", "minion_catching_up_requests"},
	{"sidecar_copied_bytes", "minion_write_copy_bytes"},
	{"sidecar_copies", "minion_write_copies"},
	{"sidecar_files_held_seconds", "minion_file_hold_seconds"},
	{"sidecar_handed_refused_total", "minion_relayed_refused_requests_total"},
	{"sidecar_held_requests", "minion_held_requests"},
	{"sidecar_request_seconds", "minion_request_seconds"},
	{"sidecar_requests_lost_total", "minion_lost_requests_total"},
	{"sidecar_requests_resealed_total", "minion_resealed_requests_total"},
	{"sidecar_requests_total", "minion_requests_total"},
	{"sidecar_rsa_faults_total", "node_rsa_faults_total"},
	{"signin_rate", "signin_capacity_per_second"},
	{"signin_total", "signin_requests_total"},
	{"signin_waiting", "signin_waiting_requests"},
	{"spool_damages_total", "journal_damages_total"},
	{"spool_group_seconds", "journal_group_seconds"},
	{"spool_groups_total", "journal_groups_total"},
	{"spool_lost_records_total", "journal_lost_records_total"},
	{"spool_records_total", "journal_records_total"},
	{"spool_refusals_total", "journal_refused_records_total"},
	{"spool_written_bytes_total", "journal_written_bytes_total"},
	{"tokens_failures_total", "eauth_failures_total"},
	{"tokens_live", "eauth_live_tokens"},
	{"tokens_received_total", "eauth_received_records_total"},
	{"tokens_revoked", "eauth_revoked_tokens"},
	{"upstream_connections", "master_connections"},
	{"upstream_connects_total", "master_opened_connections_total"},
	{"upstream_held_total", "master_held_requests_total"},
	{"upstream_in_flight_requests", "master_in_flight_requests"},
	{"upstream_probe_seconds", "master_probe_seconds"},
	{"upstream_publications_total", "master_publications_total"},
	{"upstream_queue_requests", "master_queue_requests"},
	{"upstream_request_seconds", "master_request_seconds"},
	{"upstream_requests_total", "master_requests_total"},
	{"upstream_stalls_total", "master_stalls_total"},
	{"upstream_sub_connects_total", "master_opened_subscriptions_total"},
	{"upstream_sub_up", "master_subscription_up"},
	{"upstream_up", "master_up"},
	{"wall_found_total", "wall_findings_total"},
}

// WithOldNames returns a Gatherer of the same metrics that has those of Renamed under their old names as well. The
// values are the same ones in memory, so an old name costs its lines in the answer only.
func WithOldNames(g prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := g.Gather()
		byName := make(map[string]*dto.MetricFamily, len(families))
		for _, f := range families {
			byName[strings.TrimPrefix(f.GetName(), Prefix)] = f
		}
		for _, r := range Renamed {
			if f := byName[r.New]; f != nil {
				name, help := Prefix+r.Old, "Deprecated: use "+Prefix+r.New+"."
				families = append(families, &dto.MetricFamily{Name: &name, Help: &help, Type: f.Type, Metric: f.Metric})
			}
		}
		return families, err
	})
}
