//! UDP targets: what one client's address and port send is a flow, and a flow has one backend.
//!
//! Each worker has a socket for each address ([`front`]), and the kernel keeps what comes from one client on one of them. A flow has a socket
//! of its own to its backend ([`leg`]): it is connected, so what comes back on it is that backend's and that flow's, and the kernel says on it that
//! nobody is there. [`relay`] is both together; who makes way for whom, and what a client may get, is decided in [`flows`].

pub mod flows;
pub mod front;
pub mod leg;
pub mod relay;
pub mod returning;
