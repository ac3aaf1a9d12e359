//! Who is kept out at run time.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use ipnet::IpNet;

use super::api::Api;
use super::exchange::answers::{json, ok};
use super::exchange::percent::encoded;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::hand_routes::{asked_reach, author, scope, shared};
use super::route::AdminOutcome;
use super::wire::{BlockAnswer, BlockedList};
use crate::overlay::BlockDeclined;
use crate::overlay::blocked::network_of;
use crate::reload::blocking::is_in;
use crate::reload::blocks::{BlockAsk, BlockFault, BlockOutcome};

/// `GET` of all.
pub(super) fn blocked(api: &Api) -> AdminOutcome {
    let entries = api.running.blocked_reports();
    Ok(ok(&BlockedList { entries, refused: api.running.by_hand().fault.clone() }))
}

/// `POST` of one.
pub(super) async fn block(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let mut fields = asked.fields()?;
    let expected = "an address such as `192.0.2.7`, or a network such as `192.0.2.0/24`";
    let Some(text) = fields.text("network")? else { return Err(fields.wrong("network", expected)) };
    let network = network_of(&text).map_err(|expected| fields.wrong("network", &expected))?;
    let keep = fields.switch("keep")?.unwrap_or(false);
    let force = fields.switch("force")?.unwrap_or(false);
    let (lasts, reach) = scope(&mut fields)?;
    fields.end()?;
    if !force {
        let proxy = api.running.proxy_in(network);
        if let Some(why) = reason_to_hesitate(network, asked.caller.address, proxy) {
            return Err(ProblemDocument::plain(StatusCode::CONFLICT, why));
        }
    }
    let ask = BlockAsk { network, keep, author: author(asked)?, lasts, reach };
    let BlockOutcome { report, cut } = api.running.block(ask).await.map_err(problem)?;
    let path = format!("/api/v1/access/blocked/entries/{}", encoded(&report.entry.network.to_string()));
    let mut answer = json(StatusCode::CREATED, &BlockAnswer { report, cut });
    if let Ok(place) = HeaderValue::from_str(&path) {
        answer.headers_mut().insert(LOCATION, place);
    }
    Ok(answer)
}

/// `DELETE` of one.
pub(super) async fn unblock(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let network = network_of(asked.parameter("network")).map_err(|expected| {
        ProblemDocument::plain(StatusCode::NOT_FOUND, format!("nothing of this name is blocked: {expected}"))
    })?;
    let report = api.running.unblock(network, &author(asked)?, asked_reach(asked)?).await.map_err(problem)?;
    Ok(ok(&report))
}

/// Why whoever wants `network` out may not mean it.
fn reason_to_hesitate(network: IpNet, caller: Option<IpAddr>, proxy: Option<IpNet>) -> Option<String> {
    let all_the_same = "`force` (`--force`) blocks it all the same";
    if let Some(own) = caller.filter(|own| is_in(*own, network)) {
        let own = own.to_canonical();
        return Some(format!("{own}, from where this is asked, is in {network}; {all_the_same}"));
    }
    let proxy = proxy?;
    Some(format!(
        "{network} has addresses of the trusted proxy {proxy}, and with them goes whoever comes through it; {all_the_same}"
    ))
}

fn problem(fault: BlockFault) -> ProblemDocument {
    match fault {
        BlockFault::Declined(BlockDeclined::Missing(why)) => {
            ProblemDocument::plain(StatusCode::NOT_FOUND, why)
        }
        BlockFault::Declined(full @ BlockDeclined::Full) => {
            ProblemDocument::plain(StatusCode::CONFLICT, full.to_string())
        }
        BlockFault::Unkept(unkept) => ProblemDocument::unkept(
            unkept.is_full,
            &format!("nothing has changed, because it can't be kept: {}", unkept.reason),
        ),
        BlockFault::Shared => shared(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_would_block_himself_or_a_proxy_is_asked_whether_he_means_it() {
        let network = |text: &str| network_of(text).expect("a network");
        let own = |text: &str| Some(text.parse().expect("an address"));
        let why = |of: &str, caller, proxy: Option<&str>| {
            reason_to_hesitate(network(of), caller, proxy.map(network))
        };
        assert_eq!(why("192.0.2.0/24", None, None), None, "over the unix socket nobody has an address");
        assert_eq!(why("192.0.2.0/24", own("192.0.3.1"), None), None);
        assert_eq!(
            why("192.0.2.0/24", own("::ffff:192.0.2.7"), None).as_deref(),
            Some(
                "192.0.2.7, from where this is asked, is in 192.0.2.0/24; `force` (`--force`) blocks it all the same"
            )
        );
        assert_eq!(
            why("10.1.2.3", own("192.0.2.7"), Some("10.0.0.0/8")).as_deref(),
            Some(
                "10.1.2.3/32 has addresses of the trusted proxy 10.0.0.0/8, and with them goes whoever comes through it; \
                 `force` (`--force`) blocks it all the same"
            )
        );
    }
}
