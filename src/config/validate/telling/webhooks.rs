//! Who is told of events by HTTP.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::config::effective::{EffectiveRows, number_of};
use crate::config::model::{Webhook, WebhookEvent, WebhookSecret};
use crate::config::origin::{Field, Origin, Written};
use crate::config::raw::RawWebhook;
use crate::config::report::Report;
use crate::config::validate::balance::key_in;
use crate::config::validate::show::name_of;

/// What GoLoadBalance's key asks for.
const OF_SEED: [WebhookEvent; 2] = [WebhookEvent::BackendDown, WebhookEvent::BackendUp];

/// Makes the accepted form.
pub(in crate::config::validate) fn accept(
    raw: &[RawWebhook],
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<Webhook> {
    if raw.is_empty() {
        rows.note("webhooks", "none", Origin::Default);
    }
    let mut first: HashMap<String, &Origin> = HashMap::new();
    let mut accepted = Vec::with_capacity(raw.len());
    let mut index = 0;
    for webhook in raw {
        let base = if webhook.is_seed {
            "on_dead_server_webhook".to_owned()
        } else {
            index += 1;
            format!("webhooks[{}]", index - 1)
        };
        let path = |key: &str| if webhook.is_seed { base.clone() } else { format!("{base}.{key}") };
        let Written { value: url, spot } = &webhook.url;
        let identity = url.identity();
        if let Some(place) = first.get(&identity) {
            let message = format!("the webhook at {url} is there twice: first at {place}");
            report.spot(spot, message).note("one receiver can have several `events`");
            continue;
        }
        let content = number_of([identity.as_bytes()]);
        rows.note_hidden(path("url"), url.to_string(), spot.origin.clone(), content);
        first.insert(identity, &spot.origin);
        let events = if webhook.is_seed {
            OF_SEED.to_vec()
        } else {
            rows.settle(path("events"), webhook.events.as_ref(), WebhookEvent::USUAL.to_vec(), |events| {
                let names: Vec<&str> =
                    events.iter().map(|event| name_of(WebhookEvent::ALL, *event)).collect();
                format!("[{}]", names.join(", "))
            })
        };
        let secret = match &webhook.secret_file {
            Field::Given(written) => secret(written, path("secret_file"), report, rows),
            Field::Absent if webhook.is_seed => None,
            Field::Absent => {
                rows.note(path("secret_file"), "none: messages are not signed", Origin::Default);
                None
            }
            Field::Faulty => None,
        };
        if !webhook.is_seed {
            rows.settle(path("format"), webhook.format.as_ref(), (), |()| "json".to_owned());
        }
        accepted.push(Webhook { url: url.clone(), events, secret });
    }
    accepted
}

fn secret(
    written: &Written<PathBuf>,
    path: String,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<WebhookSecret> {
    match key_in(&written.value) {
        Ok(key) => {
            let content = number_of([&*key]);
            rows.note_file(path, &written.value, written.spot.origin.clone(), Some(content));
            Some(WebhookSecret::new(key))
        }
        Err(wrong) => {
            report.wrong(&written.spot, "`secret_file`", wrong);
            None
        }
    }
}
