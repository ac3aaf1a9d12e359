//! How often somebody may ask, in the accepted form.

/// A limit under its name: how many requests, or connections, those have who count together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Its name under `rate_limits`: its buckets hang on it.
    pub name: String,
    /// Requests per `per`, 1 to 1,000,000.
    pub count: u32,
    /// The time in which so many may come.
    pub per: RatePeriod,
    /// How many may come at once, 1 to 1,000,000. Default: those of one second, at least 1.
    pub burst: u32,
    /// Who counts together; each must pass. Default: `client_ip`.
    pub by: Vec<RateBy>,
    /// Nobody is refused; who would be is counted.
    pub dry_run: bool,
}

impl RateLimit {
    /// Nanoseconds in which one request comes back.
    #[must_use]
    pub fn interval(&self) -> u64 {
        self.per.seconds() * 1_000_000_000 / u64::from(self.count.max(1))
    }

    /// Whether all count together, whoever they are.
    #[must_use]
    pub fn is_for_all(&self) -> bool {
        self.by == [RateBy::Global]
    }

    /// `burst` where nobody says.
    #[must_use]
    pub fn usual_burst(count: u32, per: RatePeriod) -> u32 {
        (u64::from(count) / per.seconds()).try_into().unwrap_or(u32::MAX).max(1)
    }
}

/// The time in which so many may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatePeriod {
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
}

impl RatePeriod {
    /// In seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            RatePeriod::Second => 1,
            RatePeriod::Minute => 60,
            RatePeriod::Hour => 3_600,
        }
    }

    /// As it is written.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            RatePeriod::Second => "s",
            RatePeriod::Minute => "m",
            RatePeriod::Hour => "h",
        }
    }
}

/// Who counts together. Where a request has no such thing it is the client's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateBy {
    /// The client's address, as trusted proxies tell it; of IPv6 a /64.
    ClientIp,
    /// Who the client is, as `auth` has found out.
    User,
    /// All requests of a route.
    Route,
    /// All.
    Global,
    /// The first header line of this name, which is in lower case.
    Header(String),
    /// The cookie of this name.
    Cookie(String),
}

impl RateBy {
    /// Those that have a name alone; the others have a name of their own to look for.
    pub const NAMED: &'static [(&'static str, RateBy)] = &[
        ("client_ip", RateBy::ClientIp),
        ("user", RateBy::User),
        ("route", RateBy::Route),
        ("global", RateBy::Global),
    ];
}

impl std::fmt::Display for RateBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RateBy::ClientIp => f.write_str("client_ip"),
            RateBy::User => f.write_str("user"),
            RateBy::Route => f.write_str("route"),
            RateBy::Global => f.write_str("global"),
            RateBy::Header(name) => write!(f, "{{header: {name}}}"),
            RateBy::Cookie(name) => write!(f, "{{cookie: {name}}}"),
        }
    }
}
