//! The admin API over TCP, with TLS where that is asked for; and, elsewhere, what whoever watches the process asks for.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::arrival::ArrivingBody;
use super::conversation::{HEAD_TIME, converse};
use super::entry::caller_of;
use super::guest_list::{GuestList, GuestPlace};
use super::revocable::revocable;
use crate::admin::api::Api;
use crate::admin::exchange::answers::{self, AdminAnswer};
use crate::admin::exchange::caller::Caller;
use crate::admin::exchange::problem_document::ProblemDocument;
use crate::config::model::{AdminAccess, Bind, Scope};
use crate::events;
use crate::lasting::again;
use crate::net::socket;
use crate::net::wall::unix_seconds;
use crate::reload::bound::Unbound;
use crate::tls::{ServedNames, server_config};

/// Connections at once, a hundred pages that are open among them; when one more comes, another one makes room ([`GuestList`]).
const CONNECTIONS: usize = 160;
/// Those beside them that are being closed.
const LEAVING: usize = 16;
/// Until the next try to accept.
const PAUSE: Duration = Duration::from_millis(100);

/// What is given at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Desk {
    /// The admin API, to those whom it lets in.
    Admin,
    /// `/metrics`, `/healthz` and `/readyz`, to everybody.
    Metrics,
}

impl Desk {
    /// What is given here; others ask in vain.
    const METRICS: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

    /// What is told of it.
    const fn name(self) -> &'static str {
        match self {
            Desk::Admin => "the admin listener",
            Desk::Metrics => "the metrics listener",
        }
    }
}

/// The bound addresses of the admin API, or of metrics.
#[derive(Debug)]
pub struct AdminDoor {
    /// None: they were given up.
    listeners: Mutex<Vec<TcpListener>>,
    addresses: Vec<SocketAddr>,
    written: Vec<SocketAddr>,
    desk: Desk,
}

/// What TLS is made with, as long as the config says the same.
#[derive(Default)]
struct Secured {
    of: Option<Arc<AdminAccess>>,
    acceptor: Option<TlsAcceptor>,
}

impl AdminDoor {
    /// Binds all of these but for those that the process before has `left`, each as it was written. Nobody else has these addresses, not even with
    /// SO_REUSEPORT.
    ///
    /// # Errors
    /// One can't be bound; then none is.
    pub fn open(
        binds: &[SocketAddr],
        desk: Desk,
        left: &mut Vec<(SocketAddr, TcpListener)>,
    ) -> Result<AdminDoor, Unbound> {
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        let owner = match desk {
            Desk::Admin => "admin",
            Desk::Metrics => "metrics",
        };
        for &address in binds {
            // As it is written: of a port that the system chose the process before has told so.
            let before = left.iter().position(|(written, _)| *written == address);
            let bound = match before.map(|place| left.swap_remove(place).1) {
                Some(listener) => listener.local_addr().map(|address| (listener, address)),
                None => socket::listen_alone(address),
            };
            let (listener, address) =
                bound.map_err(|error| Unbound::new(owner, &Bind::Tcp(address), error))?;
            listeners.push(listener);
            addresses.push(address);
        }
        Ok(AdminDoor { listeners: Mutex::new(listeners), addresses, written: binds.to_vec(), desk })
    }

    /// Where it is bound, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Another descriptor of each socket, with its address as it was written and as it is; none: they were given up.
    ///
    /// # Errors
    /// What the system reports.
    pub fn copies(&self) -> std::io::Result<Vec<(SocketAddr, SocketAddr, TcpListener)>> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let all = listeners.iter().zip(self.written.iter().zip(&self.addresses));
        all.map(|(one, (written, address))| Ok((*written, *address, one.try_clone()?))).collect()
    }

    /// Gives up the addresses. What is being answered is finished.
    pub fn close(&self) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Answers requests until `drains`, then [closes](AdminDoor::close). Called inside of the control runtime.
    pub async fn serve(self: &Arc<Self>, api: &Arc<Api>, drains: &CancellationToken) {
        let guests = GuestList::new(CONNECTIONS);
        let room = Arc::new(Semaphore::new(CONNECTIONS + LEAVING));
        let secured: Arc<Mutex<Secured>> = Arc::default();
        let copies: Vec<_> = {
            let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().map(TcpListener::try_clone).collect()
        };
        for copy in copies {
            let listener = match copy.and_then(tokio::net::TcpListener::from_std) {
                Ok(listener) => Arc::new(listener),
                Err(error) => {
                    return events::no_admin_listener(
                        self.desk.name().trim_start_matches("the "),
                        &error.to_string(),
                    );
                }
            };
            let (guests, room, secured) = (Arc::clone(&guests), Arc::clone(&room), Arc::clone(&secured));
            let (api, drains, desk) = (Arc::clone(api), drains.clone(), self.desk);
            tokio::spawn(again(desk.name(), async move || {
                accept(&listener, &guests, &room, (&secured, desk), &api, &drains).await;
            }));
        }
        drains.cancelled().await;
        self.close();
    }
}

async fn accept(
    listener: &tokio::net::TcpListener,
    guests: &Arc<GuestList>,
    room: &Arc<Semaphore>,
    (secured, desk): (&Arc<Mutex<Secured>>, Desk),
    api: &Arc<Api>,
    drains: &CancellationToken,
) {
    loop {
        // It is never closed.
        let Ok(permit) = Arc::clone(room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = drains.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            // For want of descriptors, most likely.
            sleep(PAUSE).await;
            continue;
        };
        // Whoever comes while the requests of all are worked on is closed.
        let Some(place) = guests.admit() else { continue };
        let acceptor = if desk == Desk::Admin { acceptor(secured, api) } else { None };
        tokio::spawn(welcome(stream, (acceptor, desk), place, permit, Arc::clone(api), drains.clone()));
    }
}

/// By what a client's handshake is taken; `None`: it is plain.
fn acceptor(secured: &Mutex<Secured>, api: &Api) -> Option<TlsAcceptor> {
    let access = api.running.reloader.admin.borrow().clone()?;
    let mut secured = secured.lock().unwrap_or_else(PoisonError::into_inner);
    if !secured.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &access)) {
        let keys = |tls| api.running.reloader.snapshots.tickets().of(tls);
        let config = access.tls.as_ref().map(|tls| {
            let names = ServedNames::new(&tls.identities);
            server_config(tls, &names, &tls.alpn, keys(tls))
        });
        secured.acceptor = config.map(TlsAcceptor::from);
        secured.of = Some(access);
    }
    secured.acceptor.clone()
}

async fn welcome(
    stream: TcpStream,
    (acceptor, desk): (Option<TlsAcceptor>, Desk),
    place: GuestPlace,
    _room: OwnedSemaphorePermit,
    api: Arc<Api>,
    drains: CancellationToken,
) {
    // Answers are short, and a line of an event stream is not to wait for the next.
    let _ = stream.set_nodelay(true);
    let address = stream.peer_addr().ok().map(|address| address.ip());
    let respond = |request| respond(&api, desk, address, request);
    let Some(acceptor) = acceptor else {
        return converse(stream, &place, true, &drains, respond).await;
    };
    let shaken = tokio::select! {
        shaken = timeout(HEAD_TIME, acceptor.accept(stream)) => shaken,
        () = place.left() => return,
    };
    if let Ok(Ok(session)) = shaken {
        converse(session, &place, true, &drains, respond).await;
    }
}

/// The answer to a request, by what the config in force says of who may come.
async fn respond(
    api: &Arc<Api>,
    desk: Desk,
    address: Option<IpAddr>,
    request: Request<ArrivingBody<Incoming>>,
) -> AdminAnswer {
    if desk == Desk::Metrics {
        return give_metrics(api, address, request).await;
    }
    let (parts, body) = request.into_parts();
    let mut changes = api.running.reloader.admin.subscribe();
    let access = changes.borrow_and_update().clone();
    let Some(access) = access else {
        let detail = "the admin API is given over TCP no more";
        return answers::problem(&ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    let (logouts, now) = (api.sessions.ended(), unix_seconds());
    match caller_of(&parts, &access, (&api.sessions, now)) {
        Ok(caller) => {
            let left = caller.session_ends.map(|ends| Duration::from_secs(ends.saturating_sub(now)));
            let answer = api.answer(Request::from_parts(parts, body), Caller { address, ..caller }).await;
            revocable(answer, changes, logouts, left)
        }
        Err(problem) => answers::problem(&problem),
    }
}

/// The same where everybody gets the little that there is.
async fn give_metrics(
    api: &Arc<Api>,
    address: Option<IpAddr>,
    request: Request<ArrivingBody<Incoming>>,
) -> AdminAnswer {
    let path = request.uri().path();
    if !Desk::METRICS.contains(&path.strip_suffix('/').unwrap_or(path)) {
        let detail = format!("there are {} here", Desk::METRICS.join(", "));
        return answers::problem(&ProblemDocument::plain(StatusCode::NOT_FOUND, detail));
    }
    api.answer(request, Caller { address, ..Caller::anonymous(Scope::Read) }).await
}
