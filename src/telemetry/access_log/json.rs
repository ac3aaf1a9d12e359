//! A record as a line of JSON: an object of all fields in their order, each a key and a value.
//!
//! `members` is the rule. It is asked for every field where a record is unusual. For usual ones what is the same
//! in nearly every line is copied in long pieces: most of the bytes of a line are keys and nulls.

use super::batch::{Left, LineSpace, put, put_either, put_front};
use super::facts::{Facts, SeldomSaid};
use super::names::Name;
use super::stamp::OPENING;
use super::value::{Clock, write_client};
use super::{digits, escape};
use crate::config::model::template::LogField;
use crate::message::{CacheNote, Cause, ClientAddress, HeaderField, RecordKind, Tracing};
use crate::telemetry::cells::{connect_time, first_byte_time, span};

/// Writes one field after the other, each with a comma and its key before it.
macro_rules! members {
    ($room:ident, $facts:ident, $clock:ident: $($field:ident)*) => {{
        $(
            let $room = put($room, LogField::$field.json_key().as_bytes())?;
            let $room = $facts.value(LogField::$field).write_json($room, $clock)?;
        )*
        Some($room)
    }};
}

/// What is told of few.
#[cold]
fn write_seldom<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    let has = |of: fn(&SeldomSaid) -> bool| facts.said.is_some_and(of);
    let room = if has(|said| said.user.is_some()) { members!(room, facts, clock: User)? } else { room };
    let room = if has(|said| said.sni.is_some()) { members!(room, facts, clock: TlsSni)? } else { room };
    if has(|said| said.told.as_ref().is_some_and(|told| !told.told.is_empty())) {
        return members!(room, facts, clock: ProxyAlpn ProxyAuthority ProxyUniqueId ProxyTls ProxyClientCn);
    }
    Some(room)
}

/// Writes the object and the end of the line; `sampled`: with the field that tells for how many records it stands.
// Inlined into its caller it would have too few registers, and cost a fifth more.
#[inline(never)]
pub(super) fn write<'r>(
    room: LineSpace<'r>,
    facts: &Facts<'_>,
    clock: &mut Clock<'_>,
    sampled: bool,
) -> Left<'r> {
    let room = write_beginning(room, facts, clock)?;
    let room = write_names(room, facts, clock)?;
    let room = write_request(room, facts, clock)?;
    let room = write_outcome(room, facts, clock)?;
    let room = write_times(room, facts, clock)?;
    let room = write_session(room, facts, clock)?;
    let room = write_headers(room, facts)?;
    let room = match facts.route {
        None => room,
        Some(route) => match route.member() {
            Some((member, length)) => put_front(room, member, length)?,
            None => members!(room, facts, clock: Route)?,
        },
    };
    let room = if facts.said.is_some() { write_seldom(room, facts, clock)? } else { room };
    let is_traced = facts.record.tracing != Tracing::Off;
    let is_over = facts.record.grpc.is_none() && !is_traced && !sampled;
    let room = match facts.record.cache {
        Some(CacheNote::Hit) if is_over => return put(room, b",\"cache\":\"hit\"}\n"),
        None => room,
        Some(CacheNote::Hit) => put(room, br#","cache":"hit""#)?,
        Some(note) => {
            let room = members!(room, facts, clock: Cache)?;
            if note.reason().is_some() { members!(room, facts, clock: CacheReason)? } else { room }
        }
    };
    let room = if facts.record.grpc.is_some() { write_call(room, facts, clock)? } else { room };
    let room = if is_traced { write_trace(room, facts)? } else { room };
    let room = if sampled { members!(room, facts, clock: SampleRate)? } else { room };
    put(room, b"}\n")
}

/// What a call has ended with.
#[inline(never)]
fn write_call<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    members!(room, facts, clock: GrpcStatus)
}

/// Which trace it belongs to.
#[inline(never)]
fn write_trace<'r>(room: LineSpace<'r>, facts: &Facts<'_>) -> Left<'r> {
    put(digits::write_hex(put(room, br#","trace_id":""#)?, facts.trace_id())?, b"\"")
}

/// Time, kind and client.
#[inline(always)]
fn write_beginning<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    let room = put_front(room, clock.0.opening(clock.1, facts.start), OPENING)?;
    match (facts.record.kind, &facts.record.client) {
        // Nearly all are like this.
        (RecordKind::Http, Some(client)) => {
            put(write_client(put(room, br#"http","client":""#)?, client)?, b"\"")
        }
        (kind, client) => write_seldom_beginning(room, kind, client.as_ref()),
    }
}

#[cold]
fn write_seldom_beginning<'r>(
    room: LineSpace<'r>,
    kind: RecordKind,
    client: Option<&ClientAddress>,
) -> Left<'r> {
    let room = match kind {
        RecordKind::Http => put(room, br#"http","client":"#),
        RecordKind::Upgrade => put(room, br#"upgrade","client":"#),
        RecordKind::Tcp => put(room, br#"tcp","client":"#),
        RecordKind::Udp => put(room, br#"udp","client":"#),
    }?;
    match client {
        Some(client) => put(write_client(put(room, b"\"")?, client)?, b"\""),
        None => put(room, b"null"),
    }
}

/// Listener, target and backend.
#[inline(always)]
fn write_names<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    if let (Some(target), Some(last)) = (facts.record.target, facts.last)
        && let Some(listener) = facts.names.listener(facts.record.listener).and_then(Name::member)
        && let Some(target) = facts.names.target(target).and_then(Name::member)
        && let Some(backend) = facts.names.backend(last.backend).and_then(Name::member)
    {
        let room = put_front(room, listener.0, listener.1)?;
        let room = put_front(room, target.0, target.1)?;
        return put_front(room, backend.0, backend.1);
    }
    if let (Some(target), None) = (facts.record.target, facts.last)
        && let Some(listener) = facts.names.listener(facts.record.listener).and_then(Name::member)
        && let Some(target) = facts.names.target(target).and_then(Name::member)
    {
        let room = put_front(put_front(room, listener.0, listener.1)?, target.0, target.1)?;
        return put(room, br#","backend":null"#);
    }
    write_any_names(room, facts, clock)
}

#[cold]
fn write_any_names<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    members!(room, facts, clock: Listener Target Backend)
}

/// Method, path and host.
#[inline(always)]
fn write_request<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    let Some(head) = facts.head else { return members!(room, facts, clock: Method Path Host) };
    let room = match head.method() {
        b"GET" => put(room, br#","method":"GET""#)?,
        other => write_bytes(room, br#","method":""#, other)?,
    };
    let room = write_bytes(room, br#","path":""#, head.path())?;
    write_bytes(room, br#","host":""#, head.authority())
}

/// Status, cause and how many bytes there were.
#[inline(always)]
fn write_outcome<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    const DONE: &[u8; 38] = br#","status":000,"cause":null,"bytes_in":"#;
    let record = facts.record;
    if record.cause != Cause::Done || !(100..1000).contains(&record.status) {
        return write_any_outcome(room, facts, clock);
    }
    let (here, room) = room.split_first_chunk_mut()?;
    *here = *DONE;
    here[10..13].copy_from_slice(&digits::triple(record.status.into()));
    let room = digits::write(room, record.bytes_in)?;
    digits::write(put(room, br#","bytes_out":"#)?, record.bytes_out)
}

#[cold]
fn write_any_outcome<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    members!(room, facts, clock: Status Cause BytesIn BytesOut)
}

/// How long it took and how many attempts.
#[inline(always)]
fn write_times<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    let record = facts.record;
    if let Some(duration) = span(facts.start, record.done)
        && let Some(last) = facts.last
        && let Some(first_byte) = first_byte_time(last)
        && record.attempts_made == 1
    {
        let room = digits::write_millis(put(room, br#","duration_ms":"#)?, duration)?;
        let room = match connect_time(last) {
            None => put(room, br#","connect_ms":null,"first_byte_ms":"#)?,
            Some(connect) => {
                let room = digits::write_millis(put(room, br#","connect_ms":"#)?, connect)?;
                put(room, br#","first_byte_ms":"#)?
            }
        };
        let room = digits::write_millis(room, first_byte)?;
        let room = put(room, br#","attempts":1,"earlier_causes":null,"reused":"#)?;
        return put_either(room, last.reused, [b"true", b"false"]);
    }
    if let Some(duration) = span(facts.start, record.done)
        && facts.last.is_none()
        && record.attempts_made == 0
    {
        let room = digits::write_millis(put(room, br#","duration_ms":"#)?, duration)?;
        const NONE: &[u8] =
            br#","connect_ms":null,"first_byte_ms":null,"attempts":0,"earlier_causes":null,"reused":null"#;
        return put(room, NONE);
    }
    write_any_times(room, facts, clock)
}

#[cold]
fn write_any_times<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    members!(room, facts, clock: Duration Connect FirstByte Attempts EarlierCauses Reused)
}

/// TLS with the client, and the request's number.
#[inline(always)]
fn write_session<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    if facts.record.tls.is_some() || facts.record.id == 0 {
        return write_any_session(room, facts, clock);
    }
    let room = put(room, br#","tls":null,"tls_resumed":null,"tls_ms":null,"id":""#)?;
    put(digits::write_hex(room, facts.record.id)?, b"\"")
}

fn write_any_session<'r>(room: LineSpace<'r>, facts: &Facts<'_>, clock: &mut Clock<'_>) -> Left<'r> {
    members!(room, facts, clock: Tls TlsResumed Handshake Id)
}

/// What the client said of itself.
#[inline(always)]
fn write_headers<'r>(room: LineSpace<'r>, facts: &Facts<'_>) -> Left<'r> {
    let value = |field| facts.head.and_then(|head| head.value(field)).unwrap_or_default();
    let room = write_bytes(room, br#","user_agent":""#, value(HeaderField::UserAgent))?;
    write_bytes(room, br#","referer":""#, value(HeaderField::Referer))
}

/// A member with a stranger's bytes; empty ones are null. `key` goes up to the first quote of the value.
#[inline(always)]
fn write_bytes<'r, const N: usize>(room: LineSpace<'r>, key: &[u8; N], value: &[u8]) -> Left<'r> {
    if value.is_empty() {
        return put(put(room, &key[..N - 1])?, b"null");
    }
    escape::write_json_rest(put(room, key)?, value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::model::Share;
    use crate::message::{BackendId, ClientAddress, Head, ListenerId, Record, TargetId, TlsSession, WhyNot};
    use crate::telemetry::access_log::RouteName;
    use crate::telemetry::access_log::batch::text_of;
    use crate::telemetry::access_log::{Names, Stamps, WallStart};
    use crate::tick::Tick;

    /// What the rule alone makes of a record.
    fn write_by_rule<'r>(
        room: LineSpace<'r>,
        facts: &Facts<'_>,
        clock: &mut Clock<'_>,
        sampled: bool,
    ) -> Left<'r> {
        let room = put(room, b"{\"time\":")?;
        let room = facts.value(LogField::Time).write_json(room, clock)?;
        let room = members!(room, facts, clock: Kind Client Listener Target Backend Method Path Host Status Cause
            BytesIn BytesOut Duration Connect FirstByte Attempts EarlierCauses Reused Tls TlsResumed Handshake Id UserAgent
            Referer)?;
        let room = if facts.route.is_some() { members!(room, facts, clock: Route)? } else { room };
        let room = if facts.said.is_some() { write_seldom(room, facts, clock)? } else { room };
        let room = if facts.record.cache.is_some() { members!(room, facts, clock: Cache)? } else { room };
        let reason = facts.record.cache.and_then(CacheNote::reason);
        let room = if reason.is_some() { members!(room, facts, clock: CacheReason)? } else { room };
        let room = if facts.record.grpc.is_some() { members!(room, facts, clock: GrpcStatus)? } else { room };
        let is_traced = facts.record.tracing != Tracing::Off;
        let room = if is_traced { members!(room, facts, clock: TraceId)? } else { room };
        let room = if sampled { members!(room, facts, clock: SampleRate)? } else { room };
        put(room, b"}\n")
    }

    fn names() -> Names {
        let mut names = Names::default();
        names.name_listener(ListenerId(0), "web");
        names.name_listener(ListenerId(1), "a name that is too long to be copied in one short piece");
        names.name_target(TargetId(0), "\"api\"");
        names.name_backend(BackendId(0), "192.0.2.1:8001");
        names.name_backend(BackendId(1), "é");
        names
    }

    /// Numbers of all lengths, often small ones.
    fn number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
    }

    fn client() -> impl Strategy<Value = Option<ClientAddress>> {
        let v4 = any::<([u8; 4], u16)>().prop_map(|(ip, port)| ClientAddress::new(ip.into(), port));
        let v6 = any::<([u8; 16], u16)>().prop_map(|(ip, port)| ClientAddress::new(ip.into(), port));
        prop_oneof![4 => v4.prop_map(Some), 1 => v6.prop_map(Some), 1 => Just(None)]
    }

    prop_compose! {
        fn record()(
            client in client(),
            kind in prop_oneof![6 => Just(RecordKind::Http), 1 => Just(RecordKind::Upgrade), 1 => Just(RecordKind::Tcp), 1 => Just(RecordKind::Udp)],
            cause in prop_oneof![4 => Just(Cause::Done), 1 => prop::sample::select(Cause::ALL)],
            status in prop_oneof![6 => 100..1000_u16, 1 => any::<u16>(), 1 => Just(0)],
            id in prop_oneof![4 => any::<u128>(), 1 => Just(0)],
            (listener, target, backend) in (0..3_u16, prop::option::weighted(0.8, 0..2_u16), 0..3_u32),
            (attempts, reused) in (0..12_u8, any::<bool>()),
            tls in prop::option::weighted(0.3, any::<bool>()),
            cache in prop::sample::select(&[None, Some(CacheNote::Hit), Some(CacheNote::Miss), Some(CacheNote::Uncacheable(WhyNot::Cookie))]),
            tracing in prop::sample::select(&[Tracing::Off, Tracing::Off, Tracing::Unsampled, Tracing::Sampled]),
            ticks in prop::array::uniform8(number()),
            (bytes_in, bytes_out) in (number(), number()),
        ) -> Record {
            let [accepted, secured, started, done, picked, connected, sent, first_byte] = ticks.map(Tick);
            let mut record = Record {
                kind, client, id, status, cause, cache, tracing, accepted, secured, started, done, bytes_in, bytes_out,
                listener: ListenerId(listener),
                target: target.map(TargetId),
                tls: tls.map(|resumed| TlsSession { is_tls13: true, resumed }),
                ..Record::default()
            };
            for _ in 0..attempts {
                let attempt = record.attempt(BackendId(backend), picked);
                (attempt.reused, attempt.connected, attempt.sent) = (reused, connected, sent);
                attempt.first_byte = first_byte;
            }
            record
        }
    }

    proptest! {
        #[test]
        fn usual_records_are_written_as_by_the_rule(
            record in record(), method in "GET|POST|[A-Z]{1,8}", path in "/[ -~é]{0,40}", host in "[ -~]{0,20}",
            agent in prop::option::of("[ -~é]{0,40}"), route in prop::option::of("[ -~é]{1,40}"), user in prop::option::weighted(0.2, "[ -~é]{1,20}"), headed: bool, sampled: bool, start in number(),
        ) {
            let (mut head, names) = (Head::request(&method, &path, &host), names());
            agent.into_iter().for_each(|agent| head.push(b"user-agent", agent.as_bytes()));
            let facts = Facts::new(&record, Some(&head).filter(|_| headed), &names, Share::ALL);
            let route = route.as_deref().map(RouteName::new);
            let said = user.map(|user| SeldomSaid { user: Some(user.into()), ..SeldomSaid::default() });
            let facts = facts.on(route.as_ref()).with(said.as_ref());
            let wall = WallStart(start);
            let usual = text_of(|room| write(room, &facts, &mut (&mut Stamps::default(), wall), sampled));
            let ruled = text_of(|room| write_by_rule(room, &facts, &mut (&mut Stamps::default(), wall), sampled));
            prop_assert_eq!(usual, ruled);
        }
    }
}
