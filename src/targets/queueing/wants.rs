//! What an algorithm wants to hear of leases, which is told to nobody else.

/// What the algorithm in force wants to hear of leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::targets) enum Wants {
    /// Nothing: it looks at the backends themselves.
    #[default]
    Nothing,
    /// How many there are, in order.
    Order,
    /// How many there are over all backends.
    Total,
    /// How soon answers came.
    Latency,
}
