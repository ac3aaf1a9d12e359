//! What the cache has done for a request, as its record tells it.

/// Why an answer is not stored, or a request not answered from what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WhyNot {
    /// Only GET is stored, and only GET and HEAD are answered.
    Method,
    /// The request has a body, or wants another protocol.
    Body,
    /// `Connection` of the request names a line that the backend does not get.
    Connection,
    /// The request says `no-store`.
    RequestNoStore,
    /// The status is not final, is 206 or 304, or one that `must-understand` asks us to understand.
    Status,
    /// The answer says `no-store`.
    NoStore,
    /// The answer says `private`.
    Private,
    /// The request has Authorization, and the answer doesn't say that others may have it.
    Authorization,
    /// Evenkeel knows the client, and the answer doesn't say that others may have it.
    KnownClient,
    /// The answer sets a cookie, and doesn't say that others may have it.
    SetCookie,
    /// The request has a cookie, and the answer says nothing.
    Cookie,
    /// `Vary: *`.
    VaryStar,
    /// The answer doesn't say how long it is fresh, and the route doesn't either.
    SaysNothing,
    /// Only the origin may judge what the client asks (`If-Match`, or a part of what is still coming).
    Precondition,
    /// Its body is larger than what is kept.
    TooLarge,
    /// It would be stale at once, and there is nothing by which it could be asked for again.
    Stale,
    /// It is large, there is no room for it but that of others, and nobody has wanted it before.
    WantedOnce,
    /// What is just coming, or still being sent, takes all the room.
    NoRoom,
}

impl WhyNot {
    /// Every reason, in the order of its number.
    pub const ALL: &'static [WhyNot] = &[
        WhyNot::Method,
        WhyNot::Body,
        WhyNot::Connection,
        WhyNot::RequestNoStore,
        WhyNot::Status,
        WhyNot::NoStore,
        WhyNot::Private,
        WhyNot::Authorization,
        WhyNot::KnownClient,
        WhyNot::SetCookie,
        WhyNot::Cookie,
        WhyNot::VaryStar,
        WhyNot::SaysNothing,
        WhyNot::Precondition,
        WhyNot::TooLarge,
        WhyNot::Stale,
        WhyNot::WantedOnce,
        WhyNot::NoRoom,
    ];

    /// Whether another request's answer, were it the same, could be stored: what is stored already is none the worse for it.
    #[must_use]
    pub const fn is_about_request(self) -> bool {
        matches!(
            self,
            WhyNot::Method
                | WhyNot::Body
                | WhyNot::Connection
                | WhyNot::RequestNoStore
                | WhyNot::Authorization
                | WhyNot::KnownClient
                | WhyNot::Cookie
                | WhyNot::Precondition
        )
    }

    /// Whether the same answer might be stored when it comes for the next time.
    #[must_use]
    pub const fn is_of_the_moment(self) -> bool {
        matches!(self, WhyNot::WantedOnce | WhyNot::NoRoom)
    }

    /// A short name for logs, counts and Cache-Status.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            WhyNot::Method => "method",
            WhyNot::Body => "body",
            WhyNot::Connection => "connection",
            WhyNot::RequestNoStore => "request_no_store",
            WhyNot::Status => "status",
            WhyNot::NoStore => "no_store",
            WhyNot::Private => "private",
            WhyNot::Authorization => "authorization",
            WhyNot::KnownClient => "known_client",
            WhyNot::SetCookie => "set_cookie",
            WhyNot::Cookie => "cookie",
            WhyNot::VaryStar => "vary_star",
            WhyNot::SaysNothing => "says_nothing",
            WhyNot::Precondition => "precondition",
            WhyNot::TooLarge => "too_large",
            WhyNot::Stale => "stale",
            WhyNot::WantedOnce => "wanted_once",
            WhyNot::NoRoom => "no_room",
        }
    }
}

/// What the cache has done for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheNote {
    /// Answered from what is stored, which is fresh.
    Hit,
    /// Answered from what is stored though it is stale: meanwhile it is asked for again, or the backend has failed.
    Stale,
    /// Answered from what is stored, and the backend has said that it still holds.
    Revalidated,
    /// Answered with what somebody else was just asking for.
    Collapsed,
    /// Asked for, and stored.
    Miss,
    /// Asked for, and not stored.
    Uncacheable(WhyNot),
}

impl CacheNote {
    /// The names of all kinds, in the order of their numbers.
    pub const KINDS: [&'static str; 6] = ["hit", "stale", "revalidated", "collapsed", "miss", "uncacheable"];

    /// The number of its kind: its place in [`CacheNote::KINDS`].
    #[must_use]
    pub const fn kind(self) -> usize {
        match self {
            CacheNote::Hit => 0,
            CacheNote::Stale => 1,
            CacheNote::Revalidated => 2,
            CacheNote::Collapsed => 3,
            CacheNote::Miss => 4,
            CacheNote::Uncacheable(_) => 5,
        }
    }

    /// Its kind in logs.
    #[must_use]
    pub const fn token(self) -> &'static str {
        CacheNote::KINDS[self.kind()]
    }

    /// Why nothing was stored or taken from what is stored; `None`: something was.
    #[must_use]
    pub const fn reason(self) -> Option<WhyNot> {
        match self {
            CacheNote::Uncacheable(why) => Some(why),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_stands_at_its_number_with_a_name_of_its_own() {
        for (number, why) in WhyNot::ALL.iter().enumerate() {
            assert_eq!(*why as usize, number, "{why:?}");
            assert_eq!(WhyNot::ALL.iter().filter(|other| other.token() == why.token()).count(), 1);
        }
        assert_eq!(*WhyNot::ALL.last().unwrap(), WhyNot::NoRoom);
    }
}
