//! Where a target and its backends stand in the texts, or what keeps one from saying so.

use crate::config::yaml::{NodeForm, YamlPiece};

/// Why something can't be done.
#[derive(Debug)]
pub(super) struct Obstacle {
    /// Number of the file, and of the line in it, counted from 0; `None`: it is in no file.
    pub(super) at: Option<(usize, usize)>,
    /// In words.
    pub(super) why: String,
    /// What is to be written stands in brackets.
    pub(super) is_flow: bool,
}

impl Obstacle {
    /// One that stands in no file.
    pub(super) fn nowhere(why: String) -> Obstacle {
        Obstacle { at: None, why, is_flow: false }
    }
}

/// A target as it is written.
pub(super) struct FoundTarget<'r> {
    /// Number of its file.
    pub(super) source: usize,
    /// All that is around its list of backends, outermost first; the last is the target. With `servers` there is none.
    around: Vec<&'r YamlPiece>,
    /// The key in front of the list, and the list; `None`: it is not written in the target.
    list: Option<&'r (YamlPiece, YamlPiece)>,
    is_servers: bool,
}

/// Finds a target. What comes by a merge or an alias is not found.
pub(super) fn target<'r>(roots: &'r [Option<YamlPiece>], name: &str) -> Result<FoundTarget<'r>, Obstacle> {
    let roots = roots.iter().enumerate().filter_map(|(number, root)| Some((number, root.as_ref()?)));
    for (source, root) in roots {
        if let Some((_, targets)) = root.entry("targets") {
            if targets.form == NodeForm::Alias {
                let at = Some((source, targets.start.line));
                return Err(Obstacle { at, why: "the targets are an alias".to_owned(), is_flow: false });
            }
            if let Some((_, target)) = targets.entry(name) {
                let around = vec![root, targets, target];
                return Ok(FoundTarget { source, around, list: target.entry("backends"), is_servers: false });
            }
        }
        if let ("default", Some(servers)) = (name, root.entry("servers")) {
            return Ok(FoundTarget { source, around: vec![root], list: Some(servers), is_servers: true });
        }
    }
    Err(Obstacle::nowhere(format!("the target {name} is written out in no file")))
}

impl<'r> FoundTarget<'r> {
    /// Something in the way at this line of the file.
    pub(super) fn obstacle(&self, line: usize, why: impl Into<String>) -> Obstacle {
        Obstacle { at: Some((self.source, line)), why: why.into(), is_flow: false }
    }

    /// The line where it begins.
    pub(super) fn at(&self) -> usize {
        self.list
            .map_or_else(|| self.around.last().map_or(0, |piece| piece.start.line), |(key, _)| key.start.line)
    }

    /// The target's own mapping.
    pub(super) fn target(&self) -> Result<&'r YamlPiece, Obstacle> {
        if self.is_servers {
            return Err(self.obstacle(self.at(), "`servers` takes nothing but URLs"));
        }
        self.check_around()?;
        let target = self.around.last().copied();
        target.ok_or_else(|| self.obstacle(0, "the target is not written out"))
    }

    /// The items of the list, and the list.
    pub(super) fn items(&self) -> Result<(&'r YamlPiece, &'r [YamlPiece]), Obstacle> {
        self.check_around()?;
        let Some((_, list)) = self.list else {
            return Err(self.obstacle(self.at(), "the backends come by a merge (`<<`)"));
        };
        match &list.form {
            NodeForm::Alias => Err(self.obstacle(list.start.line, "the backends are an alias")),
            _ if list.is_marked => Err(self.marked(list, "the list of the backends")),
            NodeForm::List { items, .. } => Ok((list, items)),
            NodeForm::Scalar(..) | NodeForm::Map { .. } => {
                Err(self.obstacle(list.start.line, "this is no list"))
            }
        }
    }

    /// One backend, as a mapping of its own.
    pub(super) fn item(&self, number: usize) -> Result<&'r YamlPiece, Obstacle> {
        let item = self.one(number)?;
        match &item.form {
            _ if item.is_marked => Err(self.marked(item, "this backend")),
            NodeForm::Map { .. } => Ok(item),
            NodeForm::Alias => Err(self.obstacle(item.start.line, "this backend is an alias")),
            NodeForm::Scalar(..) | NodeForm::List { .. } if self.is_servers => {
                let why = "`servers` takes nothing but URLs: it has to become a target below `targets`";
                Err(self.obstacle(item.start.line, why))
            }
            NodeForm::Scalar(..) | NodeForm::List { .. } => {
                Err(self.obstacle(item.start.line, "this backend is no mapping"))
            }
        }
    }

    /// One item, whatever it is.
    pub(super) fn one(&self, number: usize) -> Result<&'r YamlPiece, Obstacle> {
        let (list, items) = self.items()?;
        items.get(number).ok_or_else(|| self.obstacle(list.start.line, "this list does not have the backend"))
    }

    /// Whether the list takes URLs alone.
    pub(super) fn is_servers(&self) -> bool {
        self.is_servers
    }

    /// An anchor or a tag on what is changed: who refers to it would change too.
    pub(super) fn marked(&self, piece: &YamlPiece, what: &str) -> Obstacle {
        self.obstacle(piece.start.line, format!("{what} has an anchor or a tag"))
    }

    fn check_around(&self) -> Result<(), Obstacle> {
        for piece in &self.around {
            if piece.is_marked {
                return Err(self.marked(piece, "what is around the backends"));
            }
            if piece.form == NodeForm::Alias {
                return Err(self.obstacle(piece.start.line, "the target is an alias"));
            }
        }
        Ok(())
    }
}
