//! Orders of several nodes: one of them asks an authority, all of them answer it, and what it issues all of them have.
//!
//! Rows of the store, below `acme/`:
//!
//! | row | says | goes |
//! |---|---|---|
//! | `proof/BOOT-N` | what an authority may ask for now, of any node | with the lease of who orders |
//! | `seen/BOOT-N/NODE` | that this node gives it | with the lease of that node |
//! | `able/AUTHORITY/NODE` | that this node can keep what is issued | with its lease |
//! | `asked/AUTHORITY` | what the authority was asked for | never |
//! | `account/AUTHORITY/FILE` | as whom nodes come to it | when the authority does not know it any more |
//! | `cert/AUTHORITY/FILE` | a certificate and its key | once it has ended and nobody wants it |
//!
//! The last three are there where the cluster has a key alone, and sealed with it; without one each node orders for itself, and all answer.
//!
//! Invariants:
//!
//! 1. An authority is asked by the first of the nodes that can keep what it issues, in an order of its own for each authority; by nobody who is not one of them at the moment.
//! 2. What it is about to be asked for stands in `asked` before it is, under the condition that nobody else has written there meanwhile: of two who take
//!    themselves for the first one has to look again.
//! 3. No authority is told to look before every node that is there has said that it answers, unless that takes longer than two leases.
//! 4. What was issued gives way only to what was issued later, on every node, in whichever order nodes come to know of it.

pub(super) mod duty;
pub(super) mod proofs;
pub(super) mod shelves;
