//! Who may come in by address, in the accepted form.

use ipnet::IpNet;

/// Networks that may come in and networks that may not.
///
/// Of all of them the longest prefix decides that an address is in, `deny` at a tie; what is in none passes, unless there is an `allow`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessList {
    /// Its name under `access_lists`; `None`: it is written where it holds.
    pub name: Option<String>,
    /// Who may come in: `allow`, and what is in `allow_file`.
    pub allow: Vec<IpNet>,
    /// Who may not: `deny`, and what is in `deny_file`.
    pub deny: Vec<IpNet>,
    /// There is an `allow` or an `allow_file`, if only an empty one: nobody else may come in.
    pub is_closed: bool,
    /// The status that the others get; `None` (`drop`): nothing, the connection is closed. Default 403.
    pub status: Option<u16>,
}

impl AccessList {
    /// `status` where nobody says.
    pub const STATUS: u16 = 403;
}
