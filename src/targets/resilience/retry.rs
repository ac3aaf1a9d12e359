//! Whether a failed attempt is repeated on another backend: one pure function.
//!
//! A request is repeated only if that can do no harm: nothing of it was sent, or its method is idempotent. And only
//! within the target's [`Budget`](crate::targets::Budget) when a backend may have worked on it, or an overload would feed itself.

use std::time::Duration;

use crate::config::model::GrpcStatus;
use crate::config::model::resilience::Retries;
use crate::message::grpc::Pushback;

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedAttempt {
    /// There was no connection on which the backend would have listened: nothing was worked on.
    Unconnected,
    /// The connection broke before a byte of the answer.
    Reset,
    /// The answer's head took too long.
    Timeout,
    /// The answer has this status.
    Status(u16),
    /// The call of gRPC has ended with this before it has begun to answer.
    Grpc(GrpcStatus),
    /// In a way that is never repeated: a malformed answer, a fault of the client or of our own.
    Otherwise,
}

/// A connection that a backend closes within this time of the first byte of a request was being closed when that was sent: its
/// end, or the reset that met us, was a round trip under way. That is a few milliseconds in a region; the rest is for machines that
/// have more to do than they can: the backend's own end waits for its turn there, and so does our loop. (5 ms were too few for that: clients
/// got 502 where only a pooled connection was gone.) Whoever takes longer may have worked on the request.
pub const AT_ONCE: Duration = Duration::from_millis(20);

/// Of a backend that asks for a longer pause its answer goes on as it is, with what it says about trying again: its place there is kept
/// meanwhile.
const LONGEST_PUSHBACK: Duration = Duration::from_secs(5);

/// The end of a connection under a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// It had served a request before.
    pub reused: bool,
    /// How long before the socket had taken the first byte of the request; `None`: it has taken none.
    pub sent: Option<Duration>,
    /// A byte of an answer came.
    pub answered: bool,
    /// See [`Case::idempotent`].
    pub idempotent: bool,
}

/// Whether it is no attempt at all that has failed: the connection had only seemed to be open. Then the same backend is asked
/// once more on a fresh one, whatever the target's [`Retries`], nothing is charged and nobody blamed.
#[must_use]
pub fn is_stale(end: &ConnectionEnd) -> bool {
    let harmless = end.sent.is_none_or(|ago| end.idempotent && ago <= AT_ONCE);
    end.reused && !end.answered && harmless
}

/// A failed attempt, and what is known about its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// How it failed.
    pub failed: FailedAttempt,
    /// A byte of the request was taken by the socket.
    pub sent: bool,
    /// Doing it twice is as good as once (RFC 9110 §9.2.2).
    pub idempotent: bool,
    /// It is a call of gRPC to a target that speaks it. Whoever has asked for retries by its statuses has said that doing it twice is as
    /// good as once, and a connection that was not to be had, or that broke, is `unavailable`.
    pub is_call: bool,
    /// What the backend says about trying again.
    pub pushback: Option<Pushback>,
    /// All of its body can be sent again.
    pub replayable: bool,
    /// It is somebody's retry already: a proxy in front of us has made it, and would make another one.
    pub foreign: bool,
    /// Attempts made, this one included.
    pub made: u8,
    /// Retries made of which the budget was charged.
    pub charged: u8,
    /// What is left of the total time; `None`: there is no limit.
    pub left: Option<Duration>,
}

/// What is done about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the failure is the answer.
    Stop,
    /// Another backend is tried at once, and nothing charged: no backend has worked on the request.
    AtOnce,
    /// Another backend is tried if the budget has a token, after a pause of this length at most: see [`pause`].
    Charged(Duration),
    /// The same after a pause of just this length: the backend has asked for it.
    ChargedAfter(Duration),
}

/// What is done about a failed attempt. `retries`: the target's; `None`: nothing is repeated.
#[must_use]
pub fn decide(retries: Option<&Retries>, case: &Case) -> Next {
    let Some(retries) = retries else { return Next::Stop };
    let asked = case.is_call
        && match case.failed {
            FailedAttempt::Grpc(status) => retries.on_grpc.has(status),
            FailedAttempt::Unconnected | FailedAttempt::Reset => retries.on_grpc.has(GrpcStatus::Unavailable),
            FailedAttempt::Timeout | FailedAttempt::Status(_) | FailedAttempt::Otherwise => false,
        };
    let wanted = match case.failed {
        _ if asked => true,
        FailedAttempt::Unconnected => retries.on_connect,
        FailedAttempt::Reset => retries.on_reset,
        FailedAttempt::Timeout => retries.on_timeout,
        FailedAttempt::Status(status) => retries.on_statuses.iter().any(|range| range.contains(&status)),
        FailedAttempt::Grpc(_) | FailedAttempt::Otherwise => false,
    };
    let harmless = !case.sent || case.idempotent || asked;
    if !wanted || !harmless || !case.replayable || case.made >= retries.attempts {
        return Next::Stop;
    }
    if !case.sent || case.failed == FailedAttempt::Unconnected {
        return if case.left == Some(Duration::ZERO) { Next::Stop } else { Next::AtOnce };
    }
    let longest = retries.backoff.saturating_mul(1 << case.charged.min(16));
    let (least, next) = match case.pushback {
        None => (longest / 2, Next::Charged(longest)),
        Some(Pushback::After(pause)) if pause <= LONGEST_PUSHBACK => (pause, Next::ChargedAfter(pause)),
        Some(Pushback::After(_) | Pushback::Never) => return Next::Stop,
    };
    let too_late = case.left.is_some_and(|left| left <= least);
    if case.foreign || retries.budget == 0 || too_late { Next::Stop } else { next }
}

/// A pause between half of `longest` and all of it, by `chance`: those that failed together must not come back together.
#[must_use]
pub fn pause(longest: Duration, chance: u64) -> Duration {
    let half = longest / 2;
    half + half.mul_f64((chance >> 32) as f64 / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::model::GrpcStatuses;

    const SENT: Case = Case {
        failed: FailedAttempt::Reset,
        sent: true,
        idempotent: true,
        is_call: false,
        pushback: None,
        replayable: true,
        foreign: false,
        made: 1,
        charged: 0,
        left: None,
    };

    fn by_default(case: Case) -> Next {
        decide(Some(&Retries::default()), &case)
    }

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn by_default_connects_resets_and_503_are_repeated() {
        assert_eq!(by_default(SENT), Next::Charged(millis(25)));
        assert_eq!(
            by_default(Case { failed: FailedAttempt::Status(503), ..SENT }),
            Next::Charged(millis(25))
        );
        assert_eq!(
            by_default(Case { failed: FailedAttempt::Unconnected, sent: false, ..SENT }),
            Next::AtOnce
        );
        for failed in [
            FailedAttempt::Timeout,
            FailedAttempt::Otherwise,
            FailedAttempt::Status(502),
            FailedAttempt::Status(500),
        ] {
            assert_eq!(by_default(Case { failed, ..SENT }), Next::Stop, "{failed:?}");
        }
        assert_eq!(
            decide(None, &Case { failed: FailedAttempt::Unconnected, sent: false, ..SENT }),
            Next::Stop
        );
    }

    #[test]
    fn each_condition_can_be_chosen() {
        let none =
            Retries { on_connect: false, on_reset: false, on_statuses: Vec::new(), ..Retries::default() };
        let unsent = Case { sent: false, ..SENT };
        for (retries, case) in [
            (
                Retries { on_connect: true, ..none.clone() },
                Case { failed: FailedAttempt::Unconnected, ..unsent },
            ),
            (Retries { on_reset: true, ..none.clone() }, SENT),
            (Retries { on_timeout: true, ..none.clone() }, Case { failed: FailedAttempt::Timeout, ..SENT }),
            (
                Retries { on_statuses: vec![500..=501, 520..=529], ..none.clone() },
                Case { failed: FailedAttempt::Status(525), ..SENT },
            ),
        ] {
            assert_ne!(decide(Some(&retries), &case), Next::Stop, "{case:?}");
            assert_eq!(decide(Some(&none), &case), Next::Stop, "{case:?}");
        }
    }

    #[test]
    fn calls_are_repeated_for_the_statuses_that_were_asked_for_and_only_they() {
        let on_grpc = GrpcStatuses::of(|status| status == GrpcStatus::Unavailable);
        let retries = Retries { on_grpc, on_connect: false, on_reset: false, ..Retries::default() };
        let of = |case: Case| decide(Some(&retries), &case);
        let call = Case { is_call: true, idempotent: false, ..SENT };
        let ended = |status| FailedAttempt::Grpc(status);
        assert_eq!(of(Case { failed: ended(GrpcStatus::Unavailable), ..call }), Next::Charged(millis(25)));
        assert_eq!(of(Case { failed: ended(GrpcStatus::Internal), ..call }), Next::Stop);
        assert_eq!(of(Case { failed: FailedAttempt::Reset, ..call }), Next::Charged(millis(25)));
        assert_eq!(of(Case { failed: FailedAttempt::Unconnected, sent: false, ..call }), Next::AtOnce);
        // It is not asked for of what is no call.
        for failed in [FailedAttempt::Reset, FailedAttempt::Unconnected, ended(GrpcStatus::Unavailable)] {
            assert_eq!(of(Case { failed, is_call: false, ..call }), Next::Stop, "{failed:?}");
        }
        let pushed = |pushback| {
            let failed = ended(GrpcStatus::Unavailable);
            of(Case { failed, pushback: Some(pushback), left: Some(millis(300)), ..call })
        };
        assert_eq!(pushed(Pushback::After(millis(299))), Next::ChargedAfter(millis(299)));
        assert_eq!(pushed(Pushback::After(millis(300))), Next::Stop);
        assert_eq!(pushed(Pushback::After(LONGEST_PUSHBACK + millis(1))), Next::Stop);
        assert_eq!(pushed(Pushback::Never), Next::Stop);
    }

    #[test]
    fn pauses_grow_and_never_outlast_what_is_left() {
        assert_eq!(by_default(Case { charged: 1, made: 2, ..SENT }), Next::Charged(millis(50)));
        let left = |left| by_default(Case { charged: 1, made: 2, left: Some(left), ..SENT });
        assert_eq!((left(millis(25)), left(millis(26))), (Next::Stop, Next::Charged(millis(50))));
        assert_eq!((pause(millis(50), 0), pause(millis(50), u64::MAX)), (millis(25), millis(50)));
        let pauses: Vec<_> = (0..8).map(|part| pause(millis(50), part << 61)).collect();
        assert!(pauses.is_sorted() && pauses[0] < pauses[7], "{pauses:?}");
    }

    #[test]
    fn another_proxys_retry_and_an_empty_share_get_only_what_costs_nothing() {
        assert_eq!(by_default(Case { foreign: true, ..SENT }), Next::Stop);
        let unconnected = Case { foreign: true, failed: FailedAttempt::Unconnected, sent: false, ..SENT };
        assert_eq!(by_default(unconnected), Next::AtOnce);
        let broke = Retries { budget: 0, ..Retries::default() };
        assert_eq!(decide(Some(&broke), &SENT), Next::Stop);
        assert_eq!(decide(Some(&broke), &unconnected), Next::AtOnce);
    }

    #[test]
    fn only_a_used_connection_that_was_being_closed_when_the_request_went_out_is_stale() {
        let end = ConnectionEnd { reused: true, sent: Some(AT_ONCE), answered: false, idempotent: true };
        let unsent = ConnectionEnd { sent: None, ..end };
        for stale in [
            end,
            ConnectionEnd { sent: Some(Duration::ZERO), ..end },
            unsent,
            ConnectionEnd { idempotent: false, ..unsent },
        ] {
            assert!(is_stale(&stale), "{stale:?}");
            assert!(!is_stale(&ConnectionEnd { reused: false, ..stale }), "{stale:?}");
            assert!(!is_stale(&ConnectionEnd { answered: true, ..stale }), "{stale:?}");
        }
        let late = ConnectionEnd { sent: Some(AT_ONCE + Duration::from_nanos(1)), ..end };
        for failed in
            [late, ConnectionEnd { idempotent: false, ..end }, ConnectionEnd { idempotent: false, ..late }]
        {
            assert!(!is_stale(&failed), "{failed:?}");
        }
    }

    fn any_failed() -> impl Strategy<Value = FailedAttempt> {
        prop_oneof![
            Just(FailedAttempt::Unconnected),
            Just(FailedAttempt::Reset),
            Just(FailedAttempt::Timeout),
            Just(FailedAttempt::Otherwise),
            (100_u16..=999).prop_map(FailedAttempt::Status),
            (0..GrpcStatus::ALL.len()).prop_map(|number| FailedAttempt::Grpc(GrpcStatus::ALL[number])),
        ]
    }

    prop_compose! {
        fn any_case()(
            failed in any_failed(),
            (sent, idempotent, replayable, foreign) in any::<(bool, bool, bool, bool)>(),
            is_call in any::<bool>(),
            pushback in prop::option::of(prop_oneof![
                Just(Pushback::Never),
                (0_u64..100_000).prop_map(|millis| Pushback::After(Duration::from_millis(millis))),
            ]),
            made in 1_u8..=12,
            charged in 0_u8..=12,
            left in prop::option::of((0_u64..100).prop_map(Duration::from_millis)),
        ) -> Case {
            Case { failed, sent, idempotent, is_call, pushback, replayable, foreign, made, charged, left }
        }
    }

    prop_compose! {
        fn any_retries()(
            attempts in 1_u8..=10,
            (on_connect, on_reset, on_timeout) in any::<(bool, bool, bool)>(),
            on_status in any::<bool>(),
            calls in any::<u32>(),
            budget in 0_u8..=100,
        ) -> Retries {
            let on_statuses = if on_status { vec![100..=999] } else { Vec::new() };
            let on_grpc = GrpcStatuses::of(|status| calls >> status as u8 & 1 == 1);
            Retries { attempts, on_connect, on_reset, on_timeout, on_statuses, on_grpc, budget, ..Retries::default() }
        }
    }

    proptest! {
        #[test]
        fn whatever_is_set_nothing_harmful_is_repeated(retries in any_retries(), case in any_case()) {
            let next = decide(Some(&retries), &case);
            // Who has asked for a status of calls has said that they may be made twice.
            let may_repeat = case.idempotent || case.is_call && !retries.on_grpc.is_empty();
            if case.sent && !may_repeat || !case.replayable || case.made >= retries.attempts
                || case.failed == FailedAttempt::Otherwise || case.left == Some(Duration::ZERO)
            {
                prop_assert_eq!(next, Next::Stop);
            }
            // What may have been worked on is charged, and nothing else is.
            match next {
                Next::Stop => {}
                Next::AtOnce => prop_assert!(!case.sent || case.failed == FailedAttempt::Unconnected),
                Next::Charged(_) | Next::ChargedAfter(_) => prop_assert!(
                    case.sent && !case.foreign && retries.budget > 0 && case.failed != FailedAttempt::Unconnected
                ),
            }
            // What the backend asks for is what happens, within the time that is left.
            match next {
                Next::ChargedAfter(pause) => {
                    prop_assert_eq!(case.pushback, Some(Pushback::After(pause)));
                    prop_assert!(case.left.is_none_or(|left| pause < left));
                }
                Next::Charged(_) => prop_assert_eq!(case.pushback, None),
                Next::Stop | Next::AtOnce => {}
            }
        }
    }
}
