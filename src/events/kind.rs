//! What kinds of events there are.

macro_rules! kinds {
    ($($kind:ident $name:literal $meaning:literal,)*) => {
        /// What an event is about: a closed list, each with a name that stays.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl EventKind {
            /// All of them.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$kind),*];

            /// As logs, streams and webhooks call it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    BackendUp "backend_up" "A backend gets requests.",
    BackendDown "backend_down" "A backend gets none.",
    BackendDraining "backend_draining" "A backend finishes what it has, and gets no new clients.",
    TargetUp "target_up" "A target is served by backends that are no backups.",
    TargetBackups "target_backups" "A target is served by its backups only.",
    TargetDown "target_down" "A target has no backend left.",
    PanicBegan "panic_began" "So few are left that outliers get requests.",
    PanicEnded "panic_ended" "Enough are left again.",
    LimitMet "limit_met" "For the first time a backend has as many requests as were found out to be good for it.",
    SuccessorsUp "successors_up" "The backends of another config have taken over.",
    SuccessorsLate "successors_late" "None of them is up in time.",
    ProbeStarved "probe_starved" "A backend can't be probed for want of a local resource.",
    AgentUnheard "agent_unheard" "An agent tells nothing new.",
    NameLost "name_lost" "A name does not resolve any more.",
    ClusterJoined "cluster_joined" "This node is one of its cluster.",
    ClusterDetached "cluster_detached" "It is not, since nobody answers: it serves on with what it knows.",
    ClusterRefused "cluster_refused" "It may not join its cluster.",
    ClusterStoreRefuses "cluster_store_refuses" "What the cluster shares can't be changed: its store has no room, or does not let this node.",
    ClusterStoreWorks "cluster_store_works" "It can again.",
    NodeJoined "node_joined" "Another node of the cluster is there, or has started again.",
    NodeGone "node_gone" "One is not there any more.",
    RevisionInForce "revision_in_force" "Another revision of the cluster's config is in force here.",
    SecretsUnshared "secrets_unshared" "What is secret is not shared with the other nodes.",
    RevisionLost "revision_lost" "A revision can't be had or kept: what is in force stays.",
    FileDiffers "file_differs" "This node's file says something else than the cluster's config, which is in force.",
    ProposalRefused "proposal_refused" "This node would not take a config that is proposed.",
    BackendsFound "backends_found" "Addresses of a name have become backends, or are none any more.",
    NameNotFound "name_not_found" "DNS gives no address of a name; those that are known stay.",
    NameFound "name_found" "It gives some again.",
    NameTooLong "name_too_long" "A name has more addresses than it may.",
    ResolversChanged "resolvers_changed" "The system names others who are asked for names.",
    AddressLeftOut "address_left_out" "An address of a name is no backend.",
    FoundRefused "found_refused" "What DNS says can't be put into force now.",
    Refused "refused" "Requests or connections were refused for want of room.",
    AcceptFailed "accept_failed" "Connections can't be accepted.",
    HandoverFailed "handover_failed" "A connection of another worker can't be served.",
    ConnectionsCut "connections_cut" "Connections of a listener that is gone were cut.",
    FieldsDropped "fields_dropped" "Header lines that routes were to write were left out: requests had in them what no value may have.",
    UpstreamTlsFailed "upstream_tls_failed" "TLS with a backend fails.",
    UpstreamUnverified "upstream_unverified" "Whoever answers is taken for a backend.",
    ScaleOut "scale_out" "A target needs more backends.",
    ScaleIn "scale_in" "A target would do with fewer backends.",
    StickyKeyMade "sticky_key_made" "Sticky cookies are made with a key of this process.",
    CertificateExpires "certificate_expires" "A certificate ends soon.",
    CertificateIssued "certificate_issued" "An authority has issued a certificate that was ordered.",
    CertificateNotIssued "certificate_not_issued" "It has not, and why.",
    ProofUnseen "proof_unseen" "Nodes have not said that they answer an authority, which is told to look all the same.",
    CertificateMissing "certificate_missing" "A certificate was never issued, so one is shown that signs itself.",
    RenewalOverdue "renewal_overdue" "A certificate should have been renewed by now.",
    OrdersUnkept "orders_unkept" "Certificates can't be ordered, since nothing can be kept.",
    RevocationListOverdue "revocation_list_overdue" "A list of revoked certificates should have been renewed.",
    KeysFetched "keys_fetched" "The keys of tokens that are behind a URL are there, or others are.",
    KeysNotFetched "keys_not_fetched" "They can't be fetched.",
    NoTlsSession "no_tls_session" "No TLS session can be made: a bug.",
    AuthorityUnreadable "authority_unreadable" "One of the system's trusted certificates can't be read.",
    NoAuthorities "no_authorities" "Variables that name trusted certificates lead to none.",
    OwnAuthorities "own_authorities" "The system has no trusted certificates, so a list of our own is used.",
    Reload "reload" "Another config is in force.",
    ReloadRefused "reload_refused" "Another config was not taken.",
    Applied "applied" "Somebody has put another config into force, on trial or for good.",
    Confirmed "confirmed" "What was on trial takes the place of the config's file.",
    Rollback "rollback" "What was on trial is taken back.",
    RollbackFailed "rollback_failed" "It can't be taken back now.",
    EditOnTrial "edit_on_trial" "The config's file has changed while another one is on trial.",
    LeftoverRemoved "leftover_removed" "What a killed process had left beside the config is gone.",
    ConfigWarning "config_warning" "What `check` warns of in a config that was put into force.",
    WatchFallsBack "watch_falls_back" "The kernel can't say when files change.",
    ChangedByHand "changed_by_hand" "Somebody has changed something by hand.",
    ByHandOver "by_hand_over" "A change by hand is over.",
    Saved "saved" "Changes by hand were written into the config's files.",
    ByHandInForce "by_hand_in_force" "How many changes by hand the process starts with.",
    ByHandAside "by_hand_aside" "A change by hand has no effect.",
    ByHandUnkept "by_hand_unkept" "Changes by hand are refused, since they can't be kept.",
    ByHandBehind "by_hand_behind" "What is over by hand can't be kept yet.",
    Blocked "blocked" "Somebody is kept out at run time.",
    LetIn "let_in" "Somebody who was blocked is let in again.",
    JournalCut "journal_cut" "The journal of changes by hand was not whole.",
    WebhookFails "webhook_fails" "A webhook does not take messages.",
    WebhookWorks "webhook_works" "It takes them again.",
    WebhookDropped "webhook_dropped" "Messages to a webhook are not sent any more.",
    WebhooksMissed "webhooks_missed" "Events were gone before webhooks could tell them.",
    WebhooksUnkept "webhooks_unkept" "Messages to webhooks can't be kept, so a restart loses those that wait.",
    WebhooksKept "webhooks_kept" "They can be kept again.",
    WebhooksCut "webhooks_cut" "The journal of messages to webhooks was not whole.",
    TracesFail "traces_fail" "The collector of traces does not take them.",
    TracesWork "traces_work" "It takes them again.",
    StatsdFails "statsd_fails" "Numbers do not arrive at statsd.",
    StatsdWorks "statsd_works" "They arrive again.",
    AdminSocket "admin_socket" "Where the admin socket is.",
    NoAdminSocket "no_admin_socket" "There is none.",
    AdminListener "admin_listener" "Where the admin API is over TCP.",
    MetricsListener "metrics_listener" "Where metrics are over TCP.",
    NoAdminListener "no_admin_listener" "One of the two is nowhere.",
    EventReaderDropped "event_reader_dropped" "Somebody reads the event stream too slowly, and was dropped.",
    ConnectionBudget "connection_budget" "How many connections there is room for.",
    DescriptorsShort "descriptors_short" "`max_connections` is more than descriptors are enough for.",
    BacklogCapped "backlog_capped" "The system shortens the queues of listening sockets.",
    Listening "listening" "An address is bound.",
    Upgrading "upgrading" "Another process is to take the place of this one, or does not after all.",
    Upgraded "upgraded" "It has, or this one has taken the place of another.",
    SupervisorNotTold "supervisor_not_told" "Whoever supervises the process could not be told of it.",
    SocketUnused "socket_unused" "A socket that the supervisor has bound is no listener's.",
    WorkerStuck "worker_stuck" "A worker does nothing any more, so the watchdog is not fed.",
    Draining "draining" "The shutdown has begun, or its next step has.",
    Cutting "cutting" "What is left is cut.",
    Stopped "stopped" "The process ends.",
    Fatal "fatal" "It ends with an error.",
    TaskPanicked "task_panicked" "A bug: a task has ended by a panic.",
    BegunAgain "begun_again" "What lasts was begun again after a panic.",
    NoLogFile "no_log_file" "There is no access log to reopen.",
    AccessLogFailed "access_log_failed" "The access log can't be written.",
    AccessLogWorks "access_log_works" "It can be written again.",
    AccessLogReopened "access_log_reopened" "It goes on in a new file.",
    RecordsDropped "records_dropped" "Records never reached it.",
    EventsLost "events_lost" "Events never reached standard error.",
}

impl EventKind {
    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}
