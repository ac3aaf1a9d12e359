//! End-to-end tests: real sockets, the library's server, in-process backends.
//!
//! One binary for all of them, so that they link once. `EVENKEEL_RAW_RELAY=off` runs the same tests without
//! the raw relay.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what it expects by failing; it has no public"
)]

mod addresses;
mod admin_afar;
mod admin_door;
mod admin_events;
mod admin_hostile;
mod balance_hash;
mod balance_load;
mod by_hand;
mod by_hand_commands;
mod by_hand_full;
mod by_hand_kills;
mod by_hand_save;
mod certificate_routes;
mod clients;
mod cuts;
mod door_lab;
mod drain;
mod explain;
mod faults;
mod goloadbalance;
mod hedges;
mod http_aborts;
mod http_answers;
mod http_bodies;
mod http_connections;
mod http_fixtures;
mod http_forwarded;
mod http_limits;
mod http_memory;
mod http_messages;
mod http_preface;
mod http_properties;
mod http_upgrades;
mod identity;
mod leaving;
mod life_agent;
mod life_connection_limits;
mod life_crowd;
mod life_events;
mod life_failure;
mod life_health;
mod life_lab;
mod life_listener;
mod life_peak_ewma;
mod life_pool;
mod life_probes;
mod life_record;
mod life_resilience;
mod life_shutdown;
mod life_splice;
mod life_tcp;
mod mirror;
mod mirror_faults;
mod mirror_lab;
mod openapi;
mod operator;
mod plan;
mod plan_admin;
mod plan_lab;
mod plan_property;
mod rates;
mod reload;
mod reload_in_place;
mod reload_memory;
mod reload_pairs;
mod retries;
mod retry_lab;
mod retry_points;
mod route_lab;
mod routes;
mod routes_actions;
mod routes_headers;
mod spine;
mod status;
mod sticky;
mod stuck;
mod stuck_lab;
mod stuck_records;
mod stuck_states;
mod stuck_tls;
mod support;
mod tls_backends;
mod tls_backends_bodies;
mod tls_backends_failures;
mod tls_backends_lab;
mod tls_backends_pool;
mod tls_backends_probes;
mod tls_clients_certificates;
mod tls_clients_ends;
mod tls_clients_hostile;
mod tls_clients_http;
mod tls_clients_log;
mod tls_clients_names;
mod tls_clients_sessions;
mod trial;
mod watch;
mod webhooks;
