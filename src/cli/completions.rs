//! `evenkeel completions`: the command line as a shell's own script. Names of targets and backends come from the process that
//! runs, at the moment when somebody asks for them.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _, Id};
use clap_complete::Shell;

use super::args::{Args, CompletionsOptions};
use super::output;

/// Prints the script for one shell.
pub(super) fn run(options: &CompletionsOptions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = visible(&Args::command());
    clap_complete::generate(options.shell, &mut command, "evenkeel", &mut script);
    let mut script = String::from_utf8(script)?.replace(NAMES, asked(options.shell));
    if options.shell == Shell::Fish {
        // What is written for it completes no values that have no option.
        for inner in command.get_subcommands().filter(|inner| inner.get_arguments().any(takes_name)) {
            let (name, asked) = (inner.get_name(), asked(options.shell));
            let line = format!(
                "complete -c evenkeel -n \"__fish_evenkeel_using_subcommand {name}\" -f -a \"{asked}\""
            );
            script += &(line + "\n");
        }
    }
    if options.shell == Shell::Bash {
        script = script.replace("complete -F _evenkeel ", "complete -F _evenkeel_whole ");
        script += WHOLE_WORDS;
    }
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Names of backends have colons, at which bash begins another word: the words are put together again, and what is proposed loses
/// what stands there already.
const WHOLE_WORDS: &str = r#"
_evenkeel_whole() {
    local line="${COMP_LINE:0:$COMP_POINT}"
    local word="${line##*[[:space:]]}"
    if [[ "$word" != *:* || "$COMP_WORDBREAKS" != *:* ]]; then
        _evenkeel "$@"
        return
    fi
    local before="${word%:*}:"
    read -ra COMP_WORDS <<< "$line"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _evenkeel "$1" "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
"#;

/// Whether it is the name of a target or a backend.
fn takes_name(arg: &Arg) -> bool {
    let is_name = |names: &[clap::builder::Str]| names.iter().any(|name| name.starts_with("TARGET"));
    arg.is_positional() && arg.get_value_names().is_some_and(is_name)
}

/// Stands in a script where the names of targets and backends belong.
const NAMES: &str = "__names__";

/// How a shell asks for them.
fn asked(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash | Shell::Zsh => "$(evenkeel names 2>/dev/null)",
        Shell::Fish => "(evenkeel names 2>/dev/null)",
        // What is written for these completes no values.
        _ => "",
    }
}

/// `arg` with the names of targets and backends for its values, if it takes one.
fn with_names(arg: &Arg) -> Arg {
    if takes_name(arg) { arg.clone().value_parser(PossibleValuesParser::new([NAMES])) } else { arg.clone() }
}

/// `command` without its hidden commands, and its hidden flags, which are there to be refused: the generators would propose them.
fn visible(command: &Command) -> Command {
    let is_shown = |id: &Id| !command.get_arguments().any(|arg| arg.get_id() == id && arg.is_hide_set());
    let mut same = Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).map(with_names))
        .groups(command.get_groups().filter(|group| group.get_args().all(is_shown)).cloned())
        .subcommands(command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(visible));
    if let Some(version) = command.get_version() {
        same = same.version(version.to_owned());
    }
    same
}
