//! Options of `evenkeel cluster`.

use clap::{Args as ClapArgs, Subcommand};

use super::running::AskOptions;

pub(in crate::cli) const EXAMPLES: &str = "Examples:
  evenkeel cluster status
  evenkeel cluster nodes
  evenkeel cluster drain lb-2
  evenkeel cluster ready lb-2
  evenkeel cluster owners
  evenkeel cluster move rails/b7 lb-2
  evenkeel cluster move rails/b7 --auto

Exit status:
  0  it is done; of `status`: this node is a member
  1  of `status`: it is none; it was refused and nothing has changed; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer or stands alone";

/// What of the cluster.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ClusterCommand {
    /// Tell how this node stands to its cluster
    Status(AskOptions),
    /// List the nodes
    Nodes(AskOptions),
    /// Have a node take no new traffic: its `/readyz` says 503, what it gets all the same it serves
    Drain(NodeOptions),
    /// Take back what `drain` has set
    Ready(NodeOptions),
    /// Tell which node prefers which backends of targets with `owner: soft`
    Owners(OwnersOptions),
    /// Have a node prefer a backend, whatever is asked of it
    Move(MoveOptions),
}

/// Of which target.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct OwnersOptions {
    /// A target, with each of its backends; otherwise all targets, with how many of theirs each node prefers
    #[arg(value_name = "TARGET")]
    pub(in crate::cli) target: Option<String>,
    /// Whom to ask.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// Which backend, and where to.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct MoveOptions {
    /// The backend, as `target/backend`
    #[arg(value_name = "BACKEND")]
    pub(in crate::cli) backend: String,
    /// The node that is to prefer it
    #[arg(value_name = "NODE", required_unless_present = "auto")]
    pub(in crate::cli) node: Option<String>,
    /// Let it move as nodes have need of it again
    #[arg(long, conflicts_with = "node")]
    pub(in crate::cli) auto: bool,
    /// Whom to ask.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// Which node.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct NodeOptions {
    /// The name of the node
    #[arg(value_name = "NODE")]
    pub(in crate::cli) node: String,
    /// Whom to ask.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}
