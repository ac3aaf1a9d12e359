//! `cache_store`: how much is kept of answers.

use crate::config::edit::Fix;
use crate::config::effective::EffectiveRows;
use crate::config::model::cache::CacheStoreConfig;
use crate::config::raw::RawCacheStore;
use crate::config::report::Report;
use crate::config::units::show_size;

/// The share of `memory` that one body may have.
const SHARE: u64 = 8;

/// Makes it.
pub(super) fn accept(raw: &RawCacheStore, report: &mut Report, rows: &mut EffectiveRows) -> CacheStoreConfig {
    let default = CacheStoreConfig::default();
    let show = |size: &u64| show_size(*size);
    let memory = rows.settle("cache_store.memory", raw.memory.as_ref(), default.memory, show);
    let most = memory / SHARE;
    let object = rows.settle("cache_store.object", raw.object.as_ref(), default.object.min(most), show);
    if let (true, false, Some(written)) = (object > most, raw.is_faulty, &raw.object) {
        let by_default = if raw.memory.is_none() { ", the default" } else { "" };
        let message = format!(
            "`object` is {}, which is more than an eighth of `memory` ({}{by_default})",
            show_size(object),
            show_size(memory)
        );
        let most = show_size(most);
        let problem = report.spot(&written.spot, message).expected(format!("at most {most}"));
        problem.hint(format!("write `{most}`, or give `memory` more"), Fix::Value(most));
    }
    CacheStoreConfig { memory, object }
}
