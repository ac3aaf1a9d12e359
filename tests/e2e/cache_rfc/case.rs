//! A case: requests one after the other, what the origin says to each, and what its client must get.

/// Where an answer has to come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The origin was asked, once, and this step's answer is what the client gets.
    Origin,
    /// The origin was not asked; the answer is what it said in the step of this number.
    Stored(usize),
    /// The same, and the origin is asked meanwhile.
    StoredAndAsked(usize),
    /// The origin was asked by a condition and has said 304; the answer is that of the step of this number.
    Validated(usize),
    /// The origin was asked, but the answer is that of an earlier step.
    Instead(usize),
    /// The origin was asked and did not answer; the answer is the proxy's own.
    Failure,
    /// The origin was not asked, and nothing is stored.
    Nobody,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Step {
    pub method: String,
    /// Behind the path of the case.
    pub place: String,
    pub asking: Vec<String>,
    pub sending: Option<String>,
    pub status: u16,
    pub saying: Vec<String>,
    /// The body, if it is not a text that names the case and the step.
    pub body: Option<String>,
    /// What the origin writes in front of its answer.
    pub interim: String,
    /// What it writes behind it.
    pub surplus: String,
    pub chunked: bool,
    /// It closes the connection instead of answering.
    pub dies: bool,
    /// It closes the connection behind what it has written.
    pub cuts: bool,
    pub source: Source,
    pub gets: Option<u16>,
    pub text: Option<String>,
    pub has: Vec<String>,
    pub lacks: Vec<String>,
    pub origin_has: Vec<String>,
    pub origin_lacks: Vec<String>,
    pub least_age: Option<u64>,
    /// The method that the origin gets, if it is another one.
    pub origin_method: Option<String>,
    pub in_time: bool,
    /// How many times the origin may be asked more than the source says.
    pub more: usize,
}

/// A GET that the origin answers with 200.
pub fn get() -> Step {
    Step {
        method: "GET".into(),
        place: String::new(),
        asking: Vec::new(),
        sending: None,
        status: 200,
        saying: Vec::new(),
        body: None,
        interim: String::new(),
        surplus: String::new(),
        chunked: false,
        dies: false,
        cuts: false,
        source: Source::Origin,
        gets: None,
        text: None,
        has: Vec::new(),
        lacks: Vec::new(),
        origin_has: Vec::new(),
        origin_lacks: Vec::new(),
        least_age: None,
        origin_method: None,
        in_time: false,
        more: 0,
    }
}

fn add(to: &mut Vec<String>, lines: &[&str]) {
    to.extend(lines.iter().map(|line| (*line).to_owned()));
}

impl Step {
    pub fn method(mut self, method: &str) -> Step {
        self.method = method.into();
        self
    }

    /// Somewhere else than at the path of the case.
    pub fn at(mut self, place: &str) -> Step {
        self.place = place.into();
        self
    }

    /// With these lines.
    pub fn asking(mut self, lines: &[&str]) -> Step {
        add(&mut self.asking, lines);
        self
    }

    /// With this body.
    pub fn sending(mut self, body: &str) -> Step {
        self.sending = Some(body.into());
        self
    }

    /// The origin answers with this status.
    pub fn status(mut self, status: u16) -> Step {
        self.status = status;
        self
    }

    /// The origin answers with these lines; a value `@N` is the date in N seconds.
    pub fn saying(mut self, lines: &[&str]) -> Step {
        add(&mut self.saying, lines);
        self
    }

    /// The origin answers with this body.
    pub fn body(mut self, body: &str) -> Step {
        self.body = Some(body.into());
        self
    }

    /// The origin sends its body in chunks.
    pub fn chunked(mut self) -> Step {
        self.chunked = true;
        self
    }

    /// The origin sends this head first.
    pub fn interim(mut self, head: &str) -> Step {
        self.interim = head.into();
        self
    }

    /// The origin sends this behind its answer.
    pub fn surplus(mut self, bytes: &str) -> Step {
        self.surplus = bytes.into();
        self
    }

    /// The origin closes the connection instead of answering; if anybody asks.
    pub fn dies(mut self) -> Step {
        self.dies = true;
        self
    }

    /// The origin closes the connection behind what it has written, too early.
    pub fn cuts(mut self) -> Step {
        self.cuts = true;
        self
    }

    /// It comes out of the cache: what the first step was answered with.
    pub fn stored(self) -> Step {
        self.stored_of(1)
    }

    pub fn stored_of(mut self, step: usize) -> Step {
        self.source = Source::Stored(step);
        self
    }

    /// The same, and the origin is asked meanwhile.
    pub fn stored_and_asked(mut self) -> Step {
        self.source = Source::StoredAndAsked(1);
        self
    }

    /// The origin is asked with these lines, says 304, and the answer is that of the first step.
    pub fn validated(self, lines: &[&str]) -> Step {
        self.validated_of(1, lines)
    }

    pub fn validated_of(mut self, step: usize, lines: &[&str]) -> Step {
        self.source = Source::Validated(step);
        add(&mut self.origin_has, lines);
        self
    }

    /// The origin is asked, but what it said in the first step is the answer.
    pub fn instead(mut self) -> Step {
        self.source = Source::Instead(1);
        self
    }

    /// Neither origin nor cache answer.
    pub fn nobody(mut self, status: u16) -> Step {
        (self.source, self.gets) = (Source::Nobody, Some(status));
        self
    }

    /// The origin was asked and did not answer.
    pub fn failed(mut self, status: u16) -> Step {
        (self.source, self.gets) = (Source::Failure, Some(status));
        self
    }

    /// The client gets this status, other than that of its source.
    pub fn gets(mut self, status: u16) -> Step {
        self.gets = Some(status);
        self
    }

    /// The client gets this body, other than that of its source.
    pub fn text(mut self, text: &str) -> Step {
        self.text = Some(text.into());
        self
    }

    /// The client gets these lines: `Name: value`, or `Name` with any value.
    pub fn has(mut self, lines: &[&str]) -> Step {
        add(&mut self.has, lines);
        self
    }

    /// The client gets none of these lines.
    pub fn lacks(mut self, lines: &[&str]) -> Step {
        add(&mut self.lacks, lines);
        self
    }

    /// The origin gets these lines.
    pub fn origin_has(mut self, lines: &[&str]) -> Step {
        add(&mut self.origin_has, lines);
        self
    }

    /// The origin gets none of these lines.
    pub fn origin_lacks(mut self, lines: &[&str]) -> Step {
        add(&mut self.origin_lacks, lines);
        self
    }

    /// The client's answer says that it is at least so old.
    pub fn least_age(mut self, seconds: u64) -> Step {
        self.least_age = Some(seconds);
        self
    }

    /// The origin is asked with another method.
    pub fn method_of_origin(mut self, method: &str) -> Step {
        self.origin_method = Some(method.into());
        self
    }

    /// The origin is asked once more than the source says.
    pub fn twice(mut self) -> Step {
        self.more = 1;
        self
    }

    /// It may take a while until this holds: it is asked again and again. Only where nothing but time can bring it about.
    pub fn in_time(mut self) -> Step {
        self.in_time = true;
        self
    }
}

/// A case: its name begins with the RFC and the section that it is about.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub steps: Vec<Step>,
    /// It is asserted as it is, which is not as others might wish; and why.
    pub known: Option<&'static str>,
}

/// A case.
pub fn case(name: impl Into<String>, steps: impl IntoIterator<Item = Step>) -> Case {
    Case { name: name.into(), steps: steps.into_iter().collect(), known: None }
}

impl Case {
    /// That others might wish it otherwise.
    pub fn known(mut self, why: &'static str) -> Case {
        self.known = Some(why);
        self
    }
}

/// What the origin has said with these lines is used again.
pub fn reused(name: &str, lines: &[&str]) -> Case {
    case(name, [get().saying(lines), get().stored()])
}

/// What the origin has said with these lines is not used again without asking.
pub fn not_reused(name: &str, lines: &[&str]) -> Case {
    case(name, [get().saying(lines), get()])
}
