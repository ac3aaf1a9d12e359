//! `evenkeel status`: the state of everything, of a target or of a backend.

use std::process::ExitCode;

use hyper::{Method, StatusCode};

use super::ask::AdminQuestion;
use super::config::encoded;
use super::{complain, lost, status_text, tell, understood};
use crate::admin::status::report::{BackendReport, StatusReport, TargetReport};
use crate::cli::args::status::StatusOptions;
use crate::cli::output;

/// What is asked for.
enum Subject<'a> {
    Everything,
    Target(&'a str),
    Backend(&'a str, &'a str),
}

impl<'a> Subject<'a> {
    /// A backend's name may have slashes in it, a target's has none.
    fn of(object: Option<&'a str>) -> Subject<'a> {
        match object.map(|object| object.split_once('/').ok_or(object)) {
            None => Subject::Everything,
            Some(Err(target)) => Subject::Target(target),
            Some(Ok((target, backend))) => Subject::Backend(target, backend),
        }
    }

    fn path(&self) -> String {
        let segment = |name: &str| encoded(name).replace('/', "%2F");
        match self {
            Subject::Everything => "/api/v1/status".to_owned(),
            Subject::Target(target) => format!("/api/v1/targets/{}", segment(target)),
            Subject::Backend(target, backend) => {
                format!("/api/v1/targets/{}/backends/{}", segment(target), segment(backend))
            }
        }
    }
}

/// Asks for the state, prints it, and ends with whether it is good.
pub(in crate::cli) fn run(options: &StatusOptions) -> anyhow::Result<ExitCode> {
    let subject = Subject::of(options.object.as_deref());
    if let Some(object) =
        options.object.as_deref().filter(|object| object.split('/').take(2).any(str::is_empty))
    {
        return lost(&format!("`{object}` is no TARGET and no TARGET/BACKEND"));
    }
    let question = AdminQuestion { method: Method::GET, path: subject.path(), body: Vec::new() };
    let heard = match tell(&options.process, question) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if heard.status != StatusCode::OK {
        return complain(&heard, options.json);
    }
    let (text, is_up) = match subject {
        Subject::Everything => {
            let report: StatusReport = understood(&heard)?;
            (status_text::everything(&report), report.targets.iter().all(|target| target.state == "up"))
        }
        Subject::Target(_) => {
            let report: TargetReport = understood(&heard)?;
            (status_text::one_target(&report), report.state == "up")
        }
        Subject::Backend(..) => {
            let report: BackendReport = understood(&heard)?;
            (status_text::one_backend(&report), report.state == "up")
        }
    };
    output::print(&if options.json { heard.json() } else { text })?;
    Ok(if is_up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_named_behind_the_first_slash() {
        let path = |object| Subject::of(object).path();
        assert_eq!(path(None), "/api/v1/status");
        assert_eq!(path(Some("web")), "/api/v1/targets/web");
        assert_eq!(path(Some("web/[::1]:80")), "/api/v1/targets/web/backends/%5B%3A%3A1%5D%3A80");
        assert_eq!(path(Some("web/unix:/run/a b")), "/api/v1/targets/web/backends/unix%3A%2Frun%2Fa%20b");
    }
}
