//! Options of `top`.

use clap::Args as ClapArgs;

use super::running::ProcessOptions;

pub(in crate::cli) const EXAMPLES: &str = "Examples:
  evenkeel top
  evenkeel top -c /etc/evenkeel/evenkeel.yaml
  ssh -t edge-1 evenkeel top
  evenkeel top --once

Keys:
  arrows, j, k  move, as PgUp, PgDn, Home and End do
  Enter, Esc    open what is marked, and go back
  s, r          sort by the next column, and the other way round
  /             show only what has this text in its name, state or reason
  d, u, x, w    drain, make ready, take down, weigh: asked for once more before it is done
  Space, p      hold the picture, and go on
  ?, q          all keys, and the end

Exit status:
  0    it was ended with a key; with --once the screen was printed
  1    the terminal or the output could not be written
  2    a wrong command line, no terminal, or no process, several, or one that does not answer
  129  the terminal went away (SIGHUP); 130 and 143: SIGINT or SIGTERM has ended it";

/// Options of `top`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct TopOptions {
    /// Print one screen as text, when rates are known, and end; no terminal is needed
    #[arg(long)]
    pub(in crate::cli) once: bool,
    /// Use no colours; so it is too where NO_COLOR is set, and on a dumb terminal
    #[arg(long)]
    pub(in crate::cli) no_color: bool,
    /// Use ASCII only; so it is too where the locale (LC_ALL, LC_CTYPE, LANG) has no UTF-8
    #[arg(long)]
    pub(in crate::cli) ascii: bool,
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
}
