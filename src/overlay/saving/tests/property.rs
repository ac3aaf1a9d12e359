//! Files of random styles, random changes: what is written loads to the same state, and no line differs that is not told.

use super::*;

/// Numbers that a seed gives.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn hit(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len() as u64) as usize]
    }
}

/// A backend as an item whose dash stands behind `lead`.
fn backend(dice: &mut Dice, number: u64, lead: &str) -> String {
    let quote = dice.one(&["", "", "\"", "'"]);
    let mut keys = vec![format!("{quote}name{quote}: b{number}")];
    match dice.roll(3) {
        0 => keys.push(format!("url: {quote}http://10.0.0.{number}:80{quote}")),
        1 => keys.extend([format!("host: {quote}10.0.0.{number}{quote}"), "port: 80".to_owned()]),
        _ => keys.extend(["host: ${HOST}".to_owned(), format!("port: {}", 80 + number)]),
    }
    if dice.hit(3) {
        keys.push(format!("weight: {}", dice.one(&["2", "0x03", "${WEIGHT}", "&w 4", "!!int 5", "1"])));
    }
    if dice.hit(3) {
        keys.push(format!("{quote}state{quote}: {quote}{}{quote}", dice.one(&["up", "drain"])));
    }
    if dice.hit(8) {
        keys.push("<<: *usual".to_owned());
    }
    let turn = dice.roll(keys.len() as u64) as usize;
    keys.rotate_left(turn);
    let mut text = String::new();
    for comment in ["# above", "# and more"] {
        if dice.hit(4) {
            text += &format!("{lead}{comment}\n");
        }
    }
    let mark = dice.one(&["", "", "", "", "", "&item "]);
    if dice.hit(3) {
        let joint = dice.one(&[", ", " , ", &format!(",\n{lead}    ")]).to_owned();
        return text + &format!("{lead}- {mark}{{{}}}{}\n", keys.join(&joint), dice.one(&["", " # eol"]));
    }
    let gap = if mark.is_empty() { dice.one(&[" ", "   "]) } else { " " };
    let deep = format!("{lead} {}", gap);
    if mark.is_empty() && !dice.hit(5) {
        text += &format!("{lead}-{gap}");
    } else {
        text += &format!("{lead}- {mark}\n{deep}");
    }
    let ends = ["", "", "", " # eol", "\n", &format!("\n{deep}# inside")].map(str::to_owned);
    let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
    for (place, key) in keys.iter().enumerate() {
        let lead = if place == 0 { "" } else { deep.as_str() };
        text += &format!("{lead}{key}{}\n", dice.one(&ends));
    }
    text
}

fn config(dice: &mut Dice) -> String {
    let mut text = String::from(
        "x-usual: &usual {health_path: /up, weight: 6}\nx-one: &one {name: one, host: 10.9.9.9, port: 1}\n",
    );
    text += dice.one(&["", "# top\n", "workers: 1\n"]);
    let lead = dice.one(&["  ", "    "]);
    text += &format!("targets:\n{lead}web:{}\n", dice.one(&["", "", "", "", "", " &web"]));
    let mut keys = vec!["protocol: http".to_owned(), "listener: 127.0.0.1:0".to_owned()];
    if dice.hit(3) {
        keys.push(format!("max_in_flight: {}", dice.one(&["5", "off", "\"off\"", "${WEIGHT}", "adaptive"])));
    }
    if dice.hit(2) {
        keys.push(format!("health_check:\n{lead}{lead}  interval: 5s"));
    }
    let turn = dice.roll(keys.len() as u64) as usize;
    keys.rotate_left(turn);
    let list = if dice.hit(8) {
        "backends: [{name: b1, host: 10.0.0.1, port: 80}, {name: b2, host: 10.0.0.2, port: 80, weight: 2}]"
            .to_owned()
    } else {
        let deep = format!("{lead}{lead}{}", dice.one(&["", "  ", "    "]));
        let mut list = format!("backends:{}\n", dice.one(&["", " # all"]));
        for number in 1..=2 + dice.roll(3) {
            list += &backend(dice, number, &deep);
            list += dice.one(&["", "", "\n", &format!("{deep}  # below\n")]);
            if dice.hit(12) && !list.contains("*one") {
                list += &format!("{deep}- *one\n");
            }
        }
        list.trim_end_matches('\n').to_owned()
    };
    let at = dice.roll(keys.len() as u64 + 1) as usize;
    keys.insert(at, list);
    for key in keys {
        text += &format!("{lead}{lead}{key}\n");
    }
    if dice.hit(2) {
        text += &format!(
            "{lead}# between\n{lead}api: {{protocol: http, listener: 127.0.0.1:0, backends: [{{host: a, port: 1}}]}}\n"
        );
    }
    text += dice.one(&["", "", "# the end\n"]);
    if dice.hit(6) {
        text.truncate(text.trim_end().len());
    }
    if dice.hit(6) {
        text = text.replace('\n', "\r\n");
    }
    if dice.hit(10) {
        text.insert(0, '\u{feff}');
    }
    text
}

fn wishes(dice: &mut Dice) -> Vec<Wish> {
    let one = |dice: &mut Dice| {
        let name = dice.one(&["b1", "b2", "b3", "b4", "one", "new"]);
        match dice.roll(6) {
            0 | 1 => wish(&format!("weight web/{name} {}", dice.roll(9))),
            2 => wish(&format!("state web/{name} {}", dice.one(&["up", "drain", "down"]))),
            3 => wish(&format!("remove web/{name}")),
            4 => wish(dice.one(&[
                "add web http://10.1.0.1:80 name=new weight=3",
                "add web http://10.1.0.2:80",
                "add web unix:/run/a zone=z",
            ])),
            _ => wish(dice.one(&[
                "max_in_flight web 8",
                "max_in_flight web off",
                "weight api/a:1 4",
                "max_in_flight api 2",
            ])),
        }
    };
    (0..=dice.roll(5)).map(|_| one(dice)).collect()
}

#[test]
fn whatever_is_written_loads_to_the_same_state() {
    let (mut written, mut refused, mut unread) = (0, 0, 0);
    let path = Path::new("/random.yaml");
    for seed in 0..3_000 {
        let dice = &mut Dice(seed);
        let text = config(dice);
        let texts = Instead::from([(path.to_owned(), Arc::from(&*text))]);
        // Some are wrong by chance: an anchor with two meanings, or one backend twice.
        let Ok(file) = load_with(path, &texts, &Flags::default(), &env).map(Arc::new) else {
            unread += 1;
            continue;
        };
        let entries = entries(&file, wishes(dice), false);
        match save(path, &texts, &file, &entries) {
            Ok(all) => written += all.len(),
            Err(unwritten) => {
                assert!(unwritten.iter().all(|one| one.line.is_some()), "{seed}: {unwritten:#?}\n{text}");
                refused += 1;
            }
        }
    }
    assert!(written > 800 && refused > 100 && unread < 1_000, "{written} {refused} {unread}");
}
