//! Routes under one config, with the targets that they lead to.

use std::sync::{Arc, Weak};

use crate::access::passwords::Passwords;
use crate::access::{AddressRules, RuleStock};
use crate::cache::{KeyRules, QueryRule};
use crate::config::model::cache::CachePolicy;
use crate::config::model::resilience::Retries;
use crate::config::model::route::{Action, HeaderEdit, RouteOverrides};
use crate::config::model::text::{TextPiece, Variable};
use crate::config::model::{Auth, AuthKind, HashKey, ListenerConfig, Protocol, RouteConfig, Timeouts};
use crate::message::RouteId;
use crate::route::LineEdits;
use crate::slots::{HeldSlot, Slots};
use crate::targets::{Target, TargetState};
use crate::telemetry::access_log::RouteName;

use super::known_keys::KnownKeys;
use super::rates::{NamedRates, RateChecks};
use super::token_keys::TokenKeys;

/// What a route is under every config that has one of its name on its listener, or its way to a target under every config in which it
/// leads there: its number.
#[derive(Debug, Default)]
pub struct RouteState {
    pub(super) slot: HeldSlot,
}

impl RouteState {
    fn id(&self) -> RouteId {
        // Past 65,535 of them at a time the last number is shared.
        RouteId(u16::try_from(self.slot.number()).unwrap_or(u16::MAX))
    }
}

/// Ways of earlier configs that a route remembers.
const FORMER: usize = 32;

/// A way that a route had under an earlier config, and has again where it leads to that target again.
#[derive(Clone, Debug)]
struct FormerWay {
    state: Arc<RouteState>,
    target: Weak<TargetState>,
}

/// Where a route gets its numbers from.
#[derive(Clone, Copy)]
pub struct RouteNumbers<'n> {
    /// Those that nobody has.
    pub free: &'n Slots,
    /// The route of its name under the config before; `None`: there was none.
    pub before: Option<&'n Route>,
}

impl RouteNumbers<'_> {
    fn next(self) -> Arc<RouteState> {
        Arc::new(RouteState { slot: self.free.give() })
    }

    fn of_route(self) -> Arc<RouteState> {
        self.before.map_or_else(|| self.next(), |before| Arc::clone(&before.state))
    }

    /// Those of ways that are none of these.
    fn former(self, ways: &[Destination]) -> Vec<FormerWay> {
        let Some(before) = self.before else { return Vec::new() };
        let is_there = |former: &FormerWay| ways.iter().any(|way| Arc::ptr_eq(&way.state, &former.state));
        let latest = before.destinations.iter().map(|way| FormerWay {
            state: Arc::clone(&way.state),
            target: Arc::downgrade(&way.target.state),
        });
        let all = before.former.iter().cloned().chain(latest);
        let mut gone: Vec<_> = all.filter(|former| !is_there(former)).collect();
        gone.drain(..gone.len().saturating_sub(FORMER));
        gone
    }

    /// That of the way to `target`, if that is one that the route has or had: who goes to and fro between two targets has two ways.
    fn of_way(self, target: &Target) -> Arc<RouteState> {
        let Some(before) = self.before else { return self.next() };
        let way = before.destinations.iter().find(|way| Arc::ptr_eq(&way.target.state, &target.state));
        // What is remembered of a target that is gone keeps its place in memory from being another's.
        let is_it = |former: &&FormerWay| std::ptr::eq(former.target.as_ptr(), Arc::as_ptr(&target.state));
        let former = || before.former.iter().find(is_it).map(|former| &former.state);
        way.map(|way| &way.state).or_else(former).map_or_else(|| self.next(), Arc::clone)
    }
}

/// One route of a listener, ready for use.
#[derive(Debug)]
pub struct Route {
    /// Its number, which it has under every config: of what comes to it and goes to none of its destinations.
    pub id: RouteId,
    /// What outlives this config.
    pub(super) state: Arc<RouteState>,
    /// Of ways that it had under configs before: what was counted there is the route's. The latest of them, no more than [`FORMER`].
    former: Vec<FormerWay>,
    /// What it says.
    pub config: Arc<RouteConfig>,
    /// Its name in the access log.
    pub name: RouteName,
    /// Whose clients may have it, beside what its listener says.
    pub access: AddressRules,
    /// How its clients show who they are; `None`: they need not.
    pub auth: Option<RouteAuth>,
    /// What its requests count in, what its listener says included.
    pub rates: RateChecks,
    /// Where its requests go: one, the sides of a split in their order, or none.
    pub destinations: Vec<Destination>,
    /// What is answered from what is stored; `None`: nothing.
    pub cache: Option<Box<RouteCache>>,
    /// Who gets copies.
    pub mirror: Option<Arc<Target>>,
    /// Bytes of a request body; `None`: any.
    pub body: Option<u64>,
    /// Edits of requests on their way to a backend.
    pub request_edits: LineEdits,
    /// Edits of answers on their way to the client.
    pub answer_edits: LineEdits,
    /// The lines of its own answer, beside those that say how it is to be read.
    pub own_lines: LineEdits,
    /// Whoever asks for the same gets the same from it: neither its match nor its redirect looks at more than method, host and path.
    pub is_same_for_all: bool,
    /// It leads all its requests to one target, as they came but for lines that are the same for all of them, and asks nobody who he is.
    is_plain: bool,
}

/// What a route answers from what is stored.
#[derive(Debug)]
pub struct RouteCache {
    /// What it says.
    pub policy: Arc<CachePolicy>,
    /// What tells objects apart.
    pub key_rules: KeyRules,
    /// Listener and route, as they stand in keys.
    pub name: Box<str>,
}

impl RouteCache {
    fn new(policy: &Arc<CachePolicy>, [listener, route]: [&str; 2]) -> RouteCache {
        let query = policy
            .query
            .as_ref()
            .map_or(QueryRule::Whole, |names| QueryRule::named(names.iter().map(String::as_bytes)));
        RouteCache {
            key_rules: KeyRules {
                query,
                headers: policy.headers.iter().map(|name| name.as_str().into()).collect(),
            },
            name: format!("{listener}/{route}").into(),
            policy: Arc::clone(policy),
        }
    }
}

/// How the clients of a route show who they are.
#[derive(Debug)]
pub struct RouteAuth {
    /// What it says.
    pub config: Arc<Auth>,
    /// What is known of passwords.
    pub passwords: Arc<Passwords>,
    /// The keys of tokens that were fetched, if they are.
    pub keys: Option<Arc<KnownKeys>>,
    /// The target that is asked, if one is.
    pub asked: Option<Destination>,
}

/// What is known of clients, under every config.
#[derive(Clone, Copy, Debug)]
pub struct AuthState<'s> {
    /// What is known of passwords.
    pub passwords: &'s Arc<Passwords>,
    /// The keys of tokens.
    pub keys: &'s TokenKeys,
}

/// A target, and what holds for requests that come to it on this route.
#[derive(Debug)]
pub struct Destination {
    /// The number of this way. What asks whether somebody may come in has none of its own, and is not counted.
    pub id: RouteId,
    /// What outlives this config.
    pub(super) state: Arc<RouteState>,
    /// The target.
    pub target: Arc<Target>,
    /// The target's rules, and the route's where it has its own.
    pub rules: RequestRules,
}

/// What holds for a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRules {
    /// How long it may take.
    pub timeouts: Timeouts,
    /// After what it is tried again; `None`: after nothing.
    pub retries: Option<Retries>,
    /// What of it is hashed.
    pub hash_key: HashKey,
    /// Protocols that its client may upgrade to, in lower case.
    pub upgrade: Vec<String>,
}

impl RequestRules {
    /// What a target and a route say together: the route where it says anything.
    #[must_use]
    pub fn of(target: &Target, own: &RouteOverrides) -> RequestRules {
        let config = &target.config;
        let mut timeouts = config.timeouts;
        timeouts.idle = own.idle.unwrap_or(timeouts.idle);
        timeouts.tunnel = own.tunnel.unwrap_or(timeouts.tunnel);
        timeouts.total = own.total.unwrap_or(timeouts.total);
        RequestRules {
            timeouts,
            retries: own.retries(config.resilience.retries.as_ref()),
            hash_key: own.hash_key.as_ref().unwrap_or(&config.balance.hash_key).clone(),
            upgrade: own.upgrade.as_ref().unwrap_or(&config.upgrade).clone(),
        }
    }
}

impl RouteAuth {
    /// What `auth` says; `None`: the target that it asks is not there.
    fn new(
        auth: &Arc<Auth>,
        state: AuthState<'_>,
        find: &impl Fn(&str) -> Option<Arc<Target>>,
    ) -> Option<RouteAuth> {
        let asked = match &auth.kind {
            AuthKind::Forward(forward) => {
                let target = find(&forward.target)?;
                let own = RouteOverrides {
                    total: Some(Some(forward.timeout)),
                    upgrade: Some(Vec::new()),
                    ..RouteOverrides::default()
                };
                let rules = RequestRules::of(&target, &own);
                Some(Destination { id: RouteId::default(), state: Arc::default(), target, rules })
            }
            AuthKind::Basic(_) | AuthKind::Jwt(_) => None,
        };
        let keys = state.keys.of(&auth.name).map(Arc::clone);
        Some(RouteAuth { config: Arc::clone(auth), passwords: Arc::clone(state.passwords), keys, asked })
    }
}

impl Route {
    /// The route that `config` says, on `listener`, with what it was before. `made`: the access lists that are ready, `rates`: the rate
    /// limits, `known`: what is known of clients. `find` knows the targets by name; `None`: not all of those that it leads to.
    #[must_use]
    pub fn new(
        config: &Arc<RouteConfig>,
        (listener, numbers): (&ListenerConfig, RouteNumbers<'_>),
        (made, rates, known): (&mut RuleStock, &NamedRates, AuthState<'_>),
        find: impl Fn(&str) -> Option<Arc<Target>>,
    ) -> Option<Route> {
        let destination = |name: &str| {
            let target = find(name)?;
            let rules = RequestRules::of(&target, &config.own);
            let state = numbers.of_way(&target);
            Some(Destination { id: state.id(), state, target, rules })
        };
        let state = numbers.of_route();
        let destinations = match &config.action {
            Action::Forward(target) => vec![destination(target)?],
            Action::Split(split) => {
                split.sides.iter().map(|side| destination(&side.target)).collect::<Option<_>>()?
            }
            Action::Redirect(_) | Action::Respond(_) => Vec::new(),
        };
        let own_lines = match &config.action {
            Action::Respond(respond) => {
                let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
                let mut edits: Vec<HeaderEdit> = Vec::new();
                for (name, text) in &respond.headers {
                    // Several lines of a name stand beside one another.
                    let is_there = edits.iter().any(|edit| same(edit.name(), name));
                    let edit = if is_there { HeaderEdit::Add } else { HeaderEdit::Set };
                    edits.push(edit(name.clone(), text.clone()));
                }
                LineEdits::new(&edits)
            }
            Action::Forward(_) | Action::Split(_) | Action::Redirect(_) => LineEdits::default(),
        };
        let [request_edits, answer_edits] =
            [&config.headers.request, &config.headers.response].map(|edits| LineEdits::new(edits));
        let is_plain = matches!(config.action, Action::Forward(_))
            && config.auth.is_none()
            && is_same_for_requests(config, &request_edits, &answer_edits);
        let auth = config.auth.as_ref().map(|auth| RouteAuth::new(auth, known, &find).ok_or(()));
        let mirror = config.mirror.as_ref().map(|mirror| find(&mirror.target).ok_or(()));
        // Connections of a listener for bytes count in its own limits before anything is known of them.
        let is_counted = config.is_passthrough && listener.protocol == Protocol::Tcp;
        let levels = [if is_counted { &[][..] } else { &*listener.rate_limits }, &*config.rate_limits];
        let checks = if config.is_passthrough { RateChecks::of_connections } else { RateChecks::new };
        Some(Route {
            id: state.id(),
            former: numbers.former(&destinations),
            state,
            rates: checks(levels, rates, [&listener.name, &config.name]),
            access: AddressRules::new(&config.access, made),
            auth: auth.transpose().ok()?,
            destinations,
            mirror: mirror.transpose().ok()?,
            body: config.own.body.unwrap_or(listener.limits.body),
            request_edits,
            answer_edits,
            own_lines,
            is_same_for_all: is_same_for_all(config),
            is_plain,
            cache: config
                .cache
                .as_ref()
                .map(|policy| Box::new(RouteCache::new(policy, [&listener.name, &config.name]))),
            name: RouteName::new(&config.name),
            config: Arc::clone(config),
        })
    }

    /// Whether it changes every request that has its path in the same way, and every answer, so that nothing need be known of them.
    #[must_use]
    #[inline]
    pub fn is_same_for_requests(&self) -> bool {
        is_same_for_requests(&self.config, &self.request_edits, &self.answer_edits)
    }

    /// Its number and those of its ways, former ones too.
    pub fn ids(&self) -> impl Iterator<Item = RouteId> {
        self.states().map(|state| state.id())
    }

    /// What of it outlives this config.
    pub(super) fn states(&self) -> impl Iterator<Item = &Arc<RouteState>> {
        let ways = self.destinations.iter().map(|way| &way.state);
        std::iter::once(&self.state).chain(ways).chain(self.former.iter().map(|former| &former.state))
    }

    /// Where it leads a request that has its path, whatever else that is like, once its lists and limits let it through; `None`: more has
    /// to be known.
    #[must_use]
    #[inline]
    pub fn only_destination(&self) -> Option<&Destination> {
        if self.is_plain { self.destinations.first() } else { None }
    }

    /// Whether its requests are asked for nothing on the way, neither where they come from nor how many there are.
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        self.access.is_empty() && self.rates.is_empty()
    }

    /// Whether it takes every request and hands it on as it comes.
    #[must_use]
    pub fn is_straight(&self) -> bool {
        let RouteConfig { matches, action, access, auth, rewrite, headers, .. } = &*self.config;
        matches.is_catch_all()
            && !self.config.is_passthrough
            && matches!(action, Action::Forward(_))
            && access.is_empty()
            && auth.is_none()
            && rewrite.is_none()
            && headers.is_empty()
            && self.rates.is_empty()
            && self.mirror.is_none()
            && self.cache.is_none()
    }

    /// Whether it is the same as `other`, down to the targets that it leads to.
    #[must_use]
    pub fn is_like(&self, other: &Route) -> bool {
        let same = |one: &Arc<Target>, other: &Arc<Target>| Arc::ptr_eq(one, other);
        let mirrors = match (&self.mirror, &other.mirror) {
            (Some(one), Some(other)) => same(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let asked = |route: &Route| {
            route.auth.as_ref().and_then(|auth| auth.asked.as_ref()).map(|asked| Arc::as_ptr(&asked.target))
        };
        mirrors
            && asked(self) == asked(other)
            && self.destinations.len() == other.destinations.len()
            && self.destinations.iter().zip(&other.destinations).all(|(a, b)| same(&a.target, &b.target))
            && self.body == other.body
            && (Arc::ptr_eq(&self.config, &other.config) || self.config == other.config)
    }
}

/// See [`Route::is_same_for_requests`].
#[inline]
fn is_same_for_requests(config: &RouteConfig, request: &LineEdits, answer: &LineEdits) -> bool {
    config.rewrite.is_none() && request.constant().is_some() && answer.constant().is_some()
}

/// See [`Route::is_same_for_all`].
fn is_same_for_all(config: &RouteConfig) -> bool {
    let matches = &config.matches;
    let by_host_and_path = |piece: &TextPiece| match piece {
        TextPiece::Plain(_) => true,
        TextPiece::Value(variable) => matches!(
            variable,
            Variable::Host
                | Variable::Hostname
                | Variable::Path
                | Variable::PathOnly
                | Variable::Query
                | Variable::Scheme
                | Variable::Method
                | Variable::Group(_)
        ),
    };
    let text = match &config.action {
        Action::Redirect(redirect) => redirect.to.pieces(),
        Action::Forward(_) | Action::Split(_) | Action::Respond(_) => &[],
    };
    matches.headers.is_empty()
        && matches.cookies.is_empty()
        && matches.clients.is_empty()
        && matches.certificate.is_empty()
        && config.access.is_empty()
        && config.auth.is_none()
        && text.iter().all(by_host_and_path)
}
