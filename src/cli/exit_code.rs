//! What the process ends with.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | all went well; after a shutdown: nothing was cut |
//! | 1 | a wrong config, also one that `plan` or `reload` is told of; or the server could not start or failed, or output could not be written; of `status`: what was asked for is not up |
//! | 2 | a wrong command line; or of commands that ask a process: nobody, or not exactly one process, answers |
//! | 3 | after a shutdown: connections were cut |

/// The command line makes no sense.
pub(super) const WRONG_COMMAND_LINE: u8 = 2;
/// Connections were cut at shutdown.
pub(super) const CUT: u8 = 3;
