//! What a config touches: the listeners and targets that do something differently with it.

use std::collections::BTreeSet;

use super::sample::{JudgedObject, Roster};
use crate::reload::plan::{ObjectChange, ObjectKind, Plan};

/// Keys at the top level that change what every listener does. What others change, such as the defaults of health checks, is seen at
/// the objects that are different with them; logs, the admin API and the shutdown have no part in requests.
const OF_EVERYBODY: &[&str] = &["max_connections", "trusted_proxies"];

/// What a change touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// All listeners.
    pub every_listener: bool,
    /// These.
    pub objects: BTreeSet<JudgedObject>,
}

/// What `plan` touches. What it takes away is not there to be judged; a backend that comes, goes or changes touches its target.
#[must_use]
pub fn touched(plan: &Plan) -> Touched {
    let mut touched = Touched::default();
    for object in &plan.objects {
        match object.kind {
            ObjectKind::Process => {
                let is_common = |key: &str| {
                    let top = key.split(['.', '[']).next().unwrap_or(key);
                    OF_EVERYBODY.contains(&top)
                };
                touched.every_listener |= object.keys.iter().any(|key| is_common(&key.key));
            }
            ObjectKind::Listener if object.change != ObjectChange::Removed => {
                touched.objects.insert(JudgedObject::Listener(object.name.as_str().into()));
            }
            ObjectKind::Target if object.change != ObjectChange::Removed => {
                touched.objects.insert(JudgedObject::Target(object.name.as_str().into()));
            }
            ObjectKind::Backend => {
                let target = object.name.split_once('/').map_or(&*object.name, |(target, _)| target);
                touched.objects.insert(JudgedObject::Target(target.into()));
            }
            ObjectKind::Listener | ObjectKind::Target => {}
        }
    }
    for address in &plan.addresses {
        touched.objects.insert(JudgedObject::Listener(address.listener.as_str().into()));
    }
    touched
}

impl Touched {
    /// Whether a change with this effect can make nothing worse.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        !self.every_listener && self.objects.is_empty()
    }

    /// Those that are there, in the order of `roster`, and those that show how it goes without the change. What shares requests with
    /// a touched object shows nothing: where all that a listener takes in goes to a target that fails, both fail.
    #[must_use]
    pub(super) fn split(&self, roster: &Roster) -> (Vec<JudgedObject>, Vec<JudgedObject>) {
        let objects = roster.objects();
        let is_touched: Vec<bool> = objects.iter().map(|entry| self.has(&entry.object)).collect();
        // From listeners to their targets and back, until nothing is added.
        let mut is_near = is_touched.clone();
        loop {
            let before = is_near.iter().filter(|near| **near).count();
            for (place, entry) in objects.iter().enumerate() {
                if is_near[place] || entry.leads_to.iter().any(|&target| is_near[target]) {
                    is_near[place] = true;
                    entry.leads_to.iter().for_each(|&target| is_near[target] = true);
                }
            }
            if is_near.iter().filter(|near| **near).count() == before {
                break;
            }
        }
        let those = |wanted: &dyn Fn(usize) -> bool| -> Vec<JudgedObject> {
            let all = objects.iter().enumerate().filter(|(place, _)| wanted(*place));
            all.map(|(_, entry)| entry.object.clone()).collect()
        };
        (those(&|place| is_touched[place]), those(&|place| !is_near[place]))
    }

    fn has(&self, object: &JudgedObject) -> bool {
        let is_listener = matches!(object, JudgedObject::Listener(_));
        (is_listener && self.every_listener) || self.objects.contains(object)
    }
}
