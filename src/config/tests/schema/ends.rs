//! What each kind of value takes at its ends, and what is just beyond them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::config::raw::Kind;
use crate::config::units::{show_duration, show_size};

/// What is right for a kind at its ends, and what is just beyond them.
pub(super) fn ends(kind: &Kind) -> (Vec<Value>, Vec<Value>) {
    let times = |least: Duration, most: Duration| {
        let step = Duration::from_millis(1);
        let show = |time: Duration| Value::from(show_duration(time));
        let below = least.checked_sub(step).map(show);
        (vec![show(least), show(most)], below.into_iter().chain([show(most + step)]).collect())
    };
    match *kind {
        Kind::Switch => (vec![json!(true), json!(false)], vec![json!(1), json!("maybe"), json!(null)]),
        Kind::Whole(least, most) => {
            let (below, above) = (i64::from(least) - 1, i64::from(most) + 1);
            let wrong = vec![json!(below), json!(above), json!(1.5), json!("1"), json!([1]), json!(true)];
            (vec![json!(least), json!(most)], wrong)
        }
        Kind::WholeOr(least, most, _) => {
            let (below, above) = (i64::from(least) - 1, i64::from(most) + 1);
            (vec![json!(least), json!(most)], vec![json!(below), json!(above), json!({}), json!("x")])
        }
        Kind::Time(least, most) => times(least, most),
        Kind::Seconds(least, most) => {
            let (mut right, mut wrong) = times(least, most);
            right.extend([json!(least.as_secs_f64()), json!(most.as_secs())]);
            wrong.extend([json!(0), json!(most.as_secs() + 1), json!("soon")]);
            (right, wrong)
        }
        Kind::Size(least, most) => {
            let right = vec![json!(least), json!(most), show_size(least).into(), show_size(most).into()];
            let wrong = vec![json!(least - 1), json!(most + 1), show_size(most + 1).into(), json!("10 MB")];
            (right, wrong)
        }
        Kind::Choice(names) => {
            let right = names().into_iter().flat_map(|name| [json!(name), json!(name.to_uppercase())]);
            (right.collect(), vec![json!("no_such_name"), json!(1), json!(null), json!([])])
        }
        Kind::ChoiceOr(names, _) | Kind::ChoiceOrGroup(names, _) => ends(&Kind::Choice(names)),
        Kind::ChoiceAs(names, aliases) => {
            let (right, wrong) = ends(&Kind::Choice(names));
            ([ends(&Kind::Choice(aliases)).0, right].concat(), wrong)
        }
        Kind::TimeOrZero(most) => {
            let (mut right, wrong) = times(Duration::ZERO, most);
            right.push(json!(0));
            (right, [wrong, vec![json!(1), json!("x"), json!(null)]].concat())
        }
        Kind::PercentOrWhole(least, most) => {
            let above = most + 1;
            let right =
                vec![json!(least), json!(most), json!(format!("{least}%")), json!(format!("{most}%"))];
            let wrong =
                vec![json!(above), json!(-1), json!(0.5), json!("x%"), json!(null), json!({}), json!(true)];
            let below = least.checked_sub(1).map(|below| json!(below));
            (right, [wrong, vec![json!(format!("{above}%"))], below.into_iter().collect()].concat())
        }
        Kind::ChoiceOrWhole(names, least, most, text) => {
            let (choices, _) = ends(&Kind::Choice(names));
            let (right, wrong) = ends(&Kind::WholeOr(least, most, text));
            ([right, choices].concat(), [wrong, vec![json!(null), json!("no_such_name")]].concat())
        }
        Kind::SwitchOrChoice(names) => {
            let (right, wrong) = ends(&Kind::Choice(names));
            ([right, ends(&Kind::Switch).0].concat(), wrong)
        }
        Kind::SwitchOrText(form) => {
            let (right, wrong) = ends(&Kind::Text(form));
            let wrong = wrong.into_iter().filter(|value| !value.is_boolean()).collect();
            ([right, vec![json!(true), json!(false)]].concat(), wrong)
        }
        Kind::SwitchOr(_) => {
            let right = vec![json!("on"), json!("off"), json!(true), json!(false), json!("YES"), json!({})];
            (right, vec![json!("maybe"), json!(1), json!([]), json!({ "no such": 1 })])
        }
        Kind::Percent(least, most) => {
            let wrong = vec![json!(least), json!("x%"), json!(null), json!({}), json!("-1%")];
            let beyond = [json!(format!("{}%", least - 1)), json!(format!("{}%", most + 1))];
            let right = vec![json!(format!("{least}%")), json!(format!("{most}%"))];
            (right, [wrong, beyond.to_vec()].concat())
        }
        Kind::Numeral(names, _) => {
            let right =
                names().into_iter().flat_map(|name| [json!(name), json!(name.parse::<f64>().unwrap())]);
            (right.collect(), vec![json!(0.5), json!(1), json!("no_such_name"), json!(null), json!([])])
        }
        Kind::OrOff(inner) => {
            let (mut right, wrong) = ends(inner);
            right.extend([json!("off"), json!(false), json!("NO")]);
            (right, wrong)
        }
        Kind::List(item) | Kind::Items(item) => {
            (Vec::new(), vec![json!("x"), json!(1), json!({}), json!([{ "x": 1 }]), list_of(item)])
        }
        Kind::OneOrItems(item) => {
            let (right, wrong) = ends(item);
            let lists = |values: &[Value]| values.iter().map(|value| json!([value])).collect::<Vec<_>>();
            ([lists(&right), right].concat(), [lists(&wrong), wrong, vec![json!([])]].concat())
        }
        Kind::OneOrList(item) => {
            let (right, mut wrong) = ends(&Kind::OneOrItems(item));
            wrong.retain(|value| *value != json!([]));
            ([right, vec![json!([])]].concat(), wrong)
        }
        Kind::Text(_) => (Vec::new(), vec![json!(""), json!(1), json!(true), json!(null), json!(["/x"])]),
        Kind::Word(_) => (Vec::new(), vec![json!(""), json!(true), json!(null), json!({})]),
        Kind::Conditions => {
            let right = [
                json!("b"),
                json!(["b", 1]),
                json!(true),
                json!({ "present": false }),
                json!({ "regex": "^b" }),
            ];
            let wrong = [
                json!("x"),
                json!(1),
                json!(null),
                json!([]),
                json!({}),
                json!({ "A": { "no such": 1 } }),
                json!({ "A": [] }),
            ];
            (right.map(|test| json!({ "A": test })).into(), wrong.into())
        }
        Kind::Values => {
            let right = [json!("b"), json!(1), json!(true)];
            let wrong = [json!("x"), json!(1), json!([]), json!({ "A": [] }), json!({ "A": { "b": 1 } })];
            (right.map(|value| json!({ "A": value })).into(), wrong.into())
        }
        Kind::Headers => {
            let wrong = [json!(true), json!(null), json!([]), json!("a b"), json!({})];
            let others = [json!("x"), json!(1), json!(null), json!([]), json!({})];
            let wrong = wrong.map(|header| json!({ "A": header })).into_iter().chain(others);
            (vec![json!({ "A": "X-User" })], wrong.collect())
        }
        Kind::Lines(has_lists) => {
            let mut right = vec![json!({ "X-A": "b" }), json!({ "X-A": 2.10 }), json!({ "X-A": true })];
            let wrong = ["x", "1"].map(Value::from).to_vec();
            let values = [json!(null), json!({}), json!([])].map(|value| json!({ "X-A": value }));
            let wrong =
                [wrong, values.to_vec(), vec![json!(null), json!([]), json!({}), json!({ "X A": 1 })]];
            let list = json!({ "X-A": ["b", 1] });
            if has_lists {
                right.push(list);
                (right, wrong.concat())
            } else {
                (right, [wrong.concat(), vec![list]].concat())
            }
        }
        Kind::Weights(least, most) => {
            let (_, wrong) = ends(&Kind::Whole(least, most));
            let wrong = wrong.into_iter().map(|weight| json!({ "web": weight }));
            let others = [json!("x"), json!(1), json!(null), json!([]), json!({}), json!({ "a b": 1 })];
            (vec![json!({ "web": most })], wrong.chain(others).collect())
        }
        Kind::ChoicesOrGroups(names, _) => {
            let right = names().into_iter().flat_map(|name| [json!(name), json!([name])]);
            let wrong = ["x", "1"].map(Value::from).to_vec();
            let others =
                [json!(null), json!(true), json!([]), json!([null]), json!({ "no such": 1 }), json!({})];
            (right.collect(), [wrong, others.to_vec()].concat())
        }
        Kind::ChoicesOrGroup(names, _) => {
            let right = names().into_iter().flat_map(|name| [json!(name), json!([name])]);
            let wrong =
                [json!("x"), json!(1), json!(true), json!([]), json!([null]), json!({ "no such": 1 })];
            (right.chain([json!(names())]).collect(), wrong.into())
        }
        Kind::SwitchOrChoicesOrGroup(names, shape) => {
            let (right, wrong) = ends(&Kind::ChoicesOrGroup(names, shape));
            let wrong = wrong.into_iter().filter(|value| *value != json!(true)).collect();
            ([right, ends(&Kind::SwitchOr(shape)).0].concat(), wrong)
        }
        Kind::Rules(_) => {
            let wrong = [json!(true), json!([]), json!([true]), json!("a b"), json!({ "no such": 1 })];
            (Vec::new(), wrong.into())
        }
        Kind::Group(_) | Kind::Named(_) => {
            (Vec::new(), vec![json!("x"), json!(1), json!([]), json!({ "no such": 1 })])
        }
    }
}

/// A list with an item that is wrong.
fn list_of(item: &Kind) -> Value {
    json!([ends(item).1.first().unwrap()])
}
