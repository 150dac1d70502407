//! Directives, anchors, aliases and tags.

use super::{Kind, Scanned, Scanner};

/// The characters that a tag may have in addition to letters, digits, `_` and `-`.
const OF_URI: &[u8] = b";/?:@&=+$,.!~*'()[]%";

impl<'a> Scanner<'a> {
    pub(super) fn directive(&mut self) -> Scanned {
        self.unroll_to(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark.at;
        self.cursor.skip();
        let name = self.name();
        if name.is_empty() {
            return self.fail("could not find expected directive name");
        }
        if !self.cursor.is_blankz(0) {
            return self.fail("found unexpected non-alphabetical character while scanning a directive");
        }
        let kind = match name {
            "YAML" => self.version()?,
            "TAG" => self.tag_directive()?,
            _ => return self.fail("found unknown directive name"),
        };
        self.push(kind, start);
        self.blanks();
        if self.cursor.byte(0) == b'#' {
            while !self.cursor.is_breakz(0) {
                self.cursor.skip();
            }
        }
        if !self.cursor.is_breakz(0) {
            return self.fail("did not find expected comment or line break while scanning a directive");
        }
        if self.cursor.is_break(0) {
            self.cursor.skip_line();
        }
        Ok(())
    }

    fn name(&mut self) -> &'a str {
        let start = self.cursor.mark.at;
        while self.cursor.is_alpha() {
            self.cursor.skip();
        }
        &self.cursor.text[start..self.cursor.mark.at]
    }

    fn blanks(&mut self) {
        while self.cursor.is_blank(0) {
            self.cursor.skip();
        }
    }

    fn version(&mut self) -> Scanned<Kind<'a>> {
        self.blanks();
        let major = self.version_number()?;
        if self.cursor.byte(0) != b'.' {
            return self.fail("did not find expected digit or '.' character while scanning a %YAML directive");
        }
        self.cursor.skip();
        Ok(Kind::Version(major, self.version_number()?))
    }

    fn version_number(&mut self) -> Scanned<u8> {
        let (mut value, mut length) = (0, 0);
        while self.cursor.byte(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return self.fail("found extremely long version number");
            }
            value = value * 10 + (self.cursor.byte(0) - b'0');
            self.cursor.skip();
        }
        if length == 0 {
            return self.fail("did not find expected version number");
        }
        Ok(value)
    }

    fn tag_directive(&mut self) -> Scanned<Kind<'a>> {
        self.blanks();
        let handle = self.handle(true)?;
        if !self.cursor.is_blank(0) {
            return self.fail("did not find expected whitespace while scanning a %TAG directive");
        }
        self.blanks();
        let prefix = self.uri(None)?;
        if !self.cursor.is_blankz(0) {
            return self.fail("did not find expected whitespace or line break while scanning a %TAG directive");
        }
        Ok(Kind::TagDirective { handle, prefix })
    }

    pub(super) fn anchor(&mut self, alias: bool) -> Scanned {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark.at;
        self.cursor.skip();
        let name = self.name();
        let ends = self.cursor.is_blankz(0)
            || matches!(self.cursor.byte(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            return self.fail(if alias {
                "did not find expected alphabetic or numeric character while scanning an alias"
            } else {
                "did not find expected alphabetic or numeric character while scanning an anchor"
            });
        }
        self.push(if alias { Kind::Alias(name) } else { Kind::Anchor(name) }, start);
        Ok(())
    }

    pub(super) fn tag(&mut self) -> Scanned {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark.at;
        let (mut handle, mut suffix) = (String::new(), String::new());
        if self.cursor.byte(1) == b'<' {
            self.cursor.skip();
            self.cursor.skip();
            suffix = self.uri(None)?;
            if self.cursor.byte(0) != b'>' {
                return self.fail("did not find the expected '>' while scanning a tag");
            }
            self.cursor.skip();
        } else {
            handle = self.handle(false)?;
            if handle.len() > 1 && handle.ends_with('!') {
                suffix = self.uri(None)?;
            } else {
                suffix.push_str(&self.uri(Some(&handle))?);
                "!".clone_into(&mut handle);
                if suffix.is_empty() {
                    std::mem::swap(&mut handle, &mut suffix);
                }
            }
        }
        if !self.cursor.is_blankz(0) {
            return self.fail("did not find expected whitespace or line break while scanning a tag");
        }
        self.push(Kind::Tag { handle, suffix }, start);
        Ok(())
    }

    fn handle(&mut self, directive: bool) -> Scanned<String> {
        if self.cursor.byte(0) != b'!' {
            return self.fail("did not find expected '!' while scanning a tag");
        }
        let mut handle = String::new();
        self.cursor.read(&mut handle);
        handle.push_str(self.name());
        if self.cursor.byte(0) == b'!' {
            self.cursor.read(&mut handle);
        } else if directive && handle != "!" {
            return self.fail("did not find expected '!' while parsing a %TAG directive");
        }
        Ok(handle)
    }

    /// The rest of a tag, of which the beginning may be read already.
    fn uri(&mut self, head: Option<&str>) -> Scanned<String> {
        let mut uri = head.map(|head| head[1..].to_owned()).unwrap_or_default().into_bytes();
        let mut found = head.is_some();
        while self.cursor.is_alpha() || OF_URI.contains(&self.cursor.byte(0)) {
            if self.cursor.byte(0) == b'%' {
                self.escaped_octets(&mut uri)?;
            } else {
                uri.push(self.cursor.byte(0));
                self.cursor.skip();
            }
            found = true;
        }
        if !found {
            return self.fail("did not find expected tag URI");
        }
        // Of other bytes the reader takes any, and no tag of YAML has them.
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// The octets of one character.
    fn escaped_octets(&mut self, uri: &mut Vec<u8>) -> Scanned {
        let mut left = None;
        while left != Some(0_u32) {
            let digit = |ahead: usize| char::from(self.cursor.byte(ahead)).to_digit(16);
            let octet = match (self.cursor.byte(0), digit(1), digit(2)) {
                (b'%', Some(high), Some(low)) => u8::try_from(high << 4 | low).unwrap_or_default(),
                _ => return self.fail("did not find URI escaped octet"),
            };
            left = Some(match left {
                None => match octet {
                    0..0x80 => 0,
                    0xC0..0xE0 => 1,
                    0xE0..0xF0 => 2,
                    0xF0..0xF8 => 3,
                    _ => return self.fail("found an incorrect leading UTF-8 octet"),
                },
                Some(_) if octet & 0xC0 != 0x80 => {
                    return self.fail("found an incorrect trailing UTF-8 octet");
                }
                Some(left) => left - 1,
            });
            uri.push(octet);
            (0..3).for_each(|_| self.cursor.skip());
        }
        Ok(())
    }
}
