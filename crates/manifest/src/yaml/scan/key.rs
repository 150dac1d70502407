//! Keys: after `?`, and tokens before `:`.

use super::{Kind, Mark, Scanned, Scanner};
use crate::yaml::Fault;

/// The most characters between the beginning of a key without `?` and its colon.
const MAX_KEY: usize = 1024;

/// A token that may be a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SimpleKey {
    possible: bool,
    required: bool,
    token: isize,
    mark: Mark,
}

impl Scanner<'_> {
    /// Whether the first token of the queue may yet become a key.
    pub(super) fn may_become_key(&mut self) -> Scanned<bool> {
        match self.by_token.get(&self.parsed).copied() {
            Some(level) if level < self.simple_keys.len() => self.is_valid(level),
            _ => Ok(false),
        }
    }

    /// Whether the key of a level is still possible: it has one line.
    fn is_valid(&mut self, level: usize) -> Scanned<bool> {
        let key = &mut self.simple_keys[level];
        if !key.possible {
            return Ok(false);
        }
        let here = self.cursor.mark;
        if key.mark.line < here.line || key.mark.index + MAX_KEY < here.index {
            if key.required {
                return Err(missing_colon(key));
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// A key may begin here.
    pub(super) fn save_simple_key(&mut self) -> Scanned {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let required = self.flow_level == 0 && self.indent == self.cursor.column().cast_signed();
        let token = self.parsed + self.tokens.len().cast_signed();
        self.remove_simple_key()?;
        let level = self.simple_keys.len() - 1;
        self.simple_keys[level] = SimpleKey { possible: true, required, token, mark: self.cursor.mark };
        self.by_token.insert(token, level);
        Ok(())
    }

    pub(super) fn remove_simple_key(&mut self) -> Scanned {
        let level = self.simple_keys.len() - 1;
        let key = &mut self.simple_keys[level];
        if key.possible {
            if key.required {
                return Err(missing_colon(key));
            }
            key.possible = false;
            self.by_token.remove(&key.token);
        }
        Ok(())
    }

    pub(super) fn increase_flow_level(&mut self) {
        let token = self.parsed + self.tokens.len().cast_signed();
        self.simple_keys.push(SimpleKey { token, mark: self.cursor.mark, ..SimpleKey::default() });
        self.flow_level += 1;
    }

    pub(super) fn decrease_flow_level(&mut self) {
        if self.flow_level > 0 {
            self.flow_level -= 1;
            // An empty flow has the number of its own mark, which may be a key: its end makes kubectl forget that.
            if let Some(key) = self.simple_keys.pop() {
                self.by_token.remove(&key.token);
            }
        }
    }

    pub(super) fn key(&mut self) -> Scanned {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.fail("mapping keys are not allowed in this context");
            }
            self.roll_indent(self.cursor.column(), None, Kind::BlockMappingStart, self.cursor.mark.at);
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.one(Kind::Key);
        Ok(())
    }

    pub(super) fn value(&mut self) -> Scanned {
        let level = self.simple_keys.len() - 1;
        if self.is_valid(level)? {
            let SimpleKey { token, mark, .. } = self.simple_keys[level];
            self.insert(Some(token - self.parsed), Kind::Key, mark.at);
            self.roll_indent(mark.column, Some(token), Kind::BlockMappingStart, mark.at);
            self.simple_keys[level].possible = false;
            self.by_token.remove(&token);
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return self.fail("mapping values are not allowed in this context");
                }
                self.roll_indent(self.cursor.column(), None, Kind::BlockMappingStart, self.cursor.mark.at);
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.one(Kind::Value);
        Ok(())
    }
}

fn missing_colon(key: &SimpleKey) -> Fault {
    Fault { message: "could not find expected ':' while scanning a simple key".to_owned(), offset: key.mark.at }
}
