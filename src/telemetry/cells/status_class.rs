//! Statuses by their first digit.

/// The first digit of a status (RFC 9110 §15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StatusClass {
    /// No status was sent: a TCP connection, or nobody was there to answer.
    #[default]
    None,
    /// 1xx; the end of an upgraded connection counts here as 101.
    Informational,
    /// 2xx.
    Success,
    /// 3xx.
    Redirection,
    /// 4xx.
    ClientError,
    /// 5xx, and everything above as RFC 9110 §15 asks.
    ServerError,
}

impl StatusClass {
    /// Every class, in the order of its number.
    pub const ALL: [StatusClass; 6] = [
        StatusClass::None,
        StatusClass::Informational,
        StatusClass::Success,
        StatusClass::Redirection,
        StatusClass::ClientError,
        StatusClass::ServerError,
    ];

    /// The class of `status`; below 100: [`StatusClass::None`].
    #[must_use]
    pub const fn of(status: u16) -> StatusClass {
        let capped = if status > 599 { 599 } else { status };
        StatusClass::ALL[(capped / 100) as usize]
    }

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StatusClass::None => "none",
            StatusClass::Informational => "1xx",
            StatusClass::Success => "2xx",
            StatusClass::Redirection => "3xx",
            StatusClass::ClientError => "4xx",
            StatusClass::ServerError => "5xx",
        }
    }
}
