//! Flows: `[a, b]` and `{a: b}`.

use super::{Kind, Scanned, Scanner};

impl<'a> Scanner<'a> {
    pub(super) fn flow_start(&mut self, kind: Kind<'a>) -> Scanned {
        self.save_simple_key()?;
        self.increase_flow_level();
        self.simple_key_allowed = true;
        self.one(kind);
        Ok(())
    }

    pub(super) fn flow_end(&mut self, kind: Kind<'a>) -> Scanned {
        self.remove_simple_key()?;
        self.decrease_flow_level();
        self.simple_key_allowed = false;
        self.one(kind);
        Ok(())
    }

    pub(super) fn flow_entry(&mut self) -> Scanned {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.one(Kind::FlowEntry);
        Ok(())
    }
}
