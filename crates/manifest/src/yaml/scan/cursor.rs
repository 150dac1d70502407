//! The place in a document, and the characters there.

/// A place: its byte, its number and column in characters, and its line.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Mark {
    pub at: usize,
    pub index: usize,
    pub line: usize,
    pub column: usize,
}

pub(super) struct Cursor<'a> {
    pub text: &'a str,
    bytes: &'a [u8],
    pub mark: Mark,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), mark: Mark::default() }
    }

    pub fn column(&self) -> usize {
        self.mark.column
    }

    /// So many bytes after the place; 0 after the end.
    pub fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.mark.at + ahead).copied().unwrap_or_default()
    }

    pub fn at_end(&self) -> bool {
        self.mark.at >= self.bytes.len()
    }

    pub fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    /// Ends of lines: also NEL, LS and PS.
    pub fn is_break(&self, ahead: usize) -> bool {
        match self.byte(ahead) {
            b'\r' | b'\n' => true,
            0xC2 => self.byte(ahead + 1) == 0x85,
            0xE2 => self.byte(ahead + 1) == 0x80 && matches!(self.byte(ahead + 2), 0xA8 | 0xA9),
            _ => false,
        }
    }

    pub fn is_breakz(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0 || self.is_break(ahead)
    }

    pub fn is_blankz(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_breakz(ahead)
    }

    /// Whether the next character may be part of the name of an anchor or of a directive.
    pub fn is_alpha(&self) -> bool {
        let byte = self.byte(0);
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
    }

    /// Whether `---` or `...` begins a line here.
    pub fn is_document_mark(&self, of: u8) -> bool {
        self.mark.column == 0 && (0..3).all(|ahead| self.byte(ahead) == of) && self.is_blankz(3)
    }

    fn width(&self) -> usize {
        match self.byte(0) {
            0..0x80 => 1,
            0x80..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        }
    }

    pub fn skip(&mut self) {
        self.mark.index += 1;
        self.mark.column += 1;
        self.mark.at = (self.mark.at + self.width()).min(self.bytes.len());
    }

    /// Copies a character.
    pub fn read(&mut self, into: &mut String) {
        let start = self.mark.at;
        self.skip();
        into.push_str(&self.text[start..self.mark.at]);
    }

    pub fn skip_line(&mut self) {
        let (width, characters) =
            if self.byte(0) == b'\r' && self.byte(1) == b'\n' { (2, 2) } else { (self.width(), 1) };
        self.mark.at += width;
        self.mark.index += characters;
        self.mark.column = 0;
        self.mark.line += 1;
    }

    /// Copies the end of a line, if one is here. LS and PS stay what they are.
    pub fn read_line(&mut self, into: &mut String) {
        if !self.is_break(0) {
            return;
        }
        let start = self.mark.at;
        let kept = self.byte(0) == 0xE2;
        self.skip_line();
        into.push_str(if kept { &self.text[start..self.mark.at] } else { "\n" });
    }

    /// The end of the text is the beginning of a line.
    pub fn force_line(&mut self) {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }
}
