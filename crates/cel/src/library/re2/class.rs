//! Classes of characters as RE2 knows them: Perl's and POSIX' classes are ASCII, Unicode's are those of Unicode 15.0.

use std::sync::LazyLock;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::library::quote::class;

/// The scripts that Go's `regexp` knows by name. Those whose Unicode name has an underscore are not found by Go 1.26.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
    Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han \
    Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya \
    Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese \
    Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai \
    Vithkuqi Wancho Yezidi Yi";

/// The general categories, by short name and, if it has one, by long name.
const CATEGORIES: &str = "C=Other Cc=Control Cf=Format Cn=Unassigned Co=Privateuse Cs=Surrogate L=Letter \
    Lc=Casedletter Ll=Lowercaseletter Lm=Modifierletter Lo=Otherletter Lt=Titlecaseletter Lu=Uppercaseletter M=Mark \
    Mc=Spacingmark Me=Enclosingmark Mn=Nonspacingmark N=Number Nd=Decimalnumber Nl=Letternumber No=Othernumber \
    P=Punctuation Pc=Connectorpunctuation Pd=Dashpunctuation Pe=Closepunctuation Pf=Finalpunctuation \
    Pi=Initialpunctuation Po=Otherpunctuation Ps=Openpunctuation S=Symbol Sc=Currencysymbol Sk=Modifiersymbol \
    Sm=Mathsymbol So=Othersymbol Z=Separator Zl=Lineseparator Zp=Paragraphseparator Zs=Spaceseparator \
    M=Combiningmark Cc=Cntrl Nd=Digit P=Punct";

/// The names under which Go holds characters that differ from one of the class only in case.
const FOLDED: [&str; 9] = ["L", "Ll", "Lt", "Lu", "M", "Mn", "Common", "Greek", "Inherited"];

/// The characters that are assigned in Unicode 15.0, the version of Go 1.26.
fn known() -> &'static ClassUnicode {
    static KNOWN: LazyLock<ClassUnicode> = LazyLock::new(|| class(r"\p{age:15.0}").unwrap_or_else(ClassUnicode::empty));
    &KNOWN
}

/// The characters from the first to the second of each pair.
pub(super) fn of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)))
}

/// All characters.
pub(super) fn any() -> ClassUnicode {
    of(&[('\0', char::MAX)])
}

/// The class with all characters that differ only in case.
pub(super) fn fold(class: &ClassUnicode) -> ClassUnicode {
    let mut folded = class.clone();
    folded.intersect(known());
    if folded.try_case_fold_simple().is_err() {
        return folded;
    }
    folded.intersect(known());
    folded.union(class);
    folded
}

/// `\d`, `\s`, `\w` by their letter, in lower case.
pub(super) fn perl(letter: char) -> Option<ClassUnicode> {
    Some(match letter {
        'd' => of(&[('0', '9')]),
        's' => of(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
        'w' => of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        _ => return None,
    })
}

/// `[:alnum:]` and so on, by name.
pub(super) fn posix(name: &str) -> Option<ClassUnicode> {
    Some(match name {
        "alnum" => of(&[('0', '9'), ('A', 'Z'), ('a', 'z')]),
        "alpha" => of(&[('A', 'Z'), ('a', 'z')]),
        "ascii" => of(&[('\0', '\x7f')]),
        "blank" => of(&[('\t', '\t'), (' ', ' ')]),
        "cntrl" => of(&[('\0', '\x1f'), ('\x7f', '\x7f')]),
        "digit" => of(&[('0', '9')]),
        "graph" => of(&[('!', '~')]),
        "lower" => of(&[('a', 'z')]),
        "print" => of(&[(' ', '~')]),
        "punct" => of(&[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
        "space" => of(&[('\t', '\r'), (' ', ' ')]),
        "upper" => of(&[('A', 'Z')]),
        "word" => of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        "xdigit" => of(&[('0', '9'), ('A', 'F'), ('a', 'f')]),
        _ => return None,
    })
}

/// A name as Go looks it up: the first letter large, the others small, without `_`, `-` and spaces.
fn canonical(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')) {
        out.push(if out.is_empty() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    }
    out
}

/// `\p{name}`, with what differs only in case if `fold_case`.
pub(super) fn unicode(name: &str, fold_case: bool) -> Option<ClassUnicode> {
    let name = canonical(name);
    let category = || {
        let pairs = CATEGORIES.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.clone().find(|(short, long)| name == *short || name == *long).map(|(short, _)| short)
    };
    match name.as_str() {
        "Any" => return Some(any()),
        "Ascii" => {
            let ascii = of(&[('\0', '\x7f')]);
            return Some(if fold_case { fold(&ascii) } else { ascii });
        }
        "Assigned" => {
            let mut assigned = unicode("Cn", false)?;
            assigned.negate();
            return Some(assigned);
        }
        _ => {}
    }
    let (name, mut found) = if let Some(short) = category() {
        (short, class(&format!(r"\p{{gc={short}}}")).unwrap_or_else(ClassUnicode::empty))
    } else {
        let script = SCRIPTS.split_whitespace().find(|script| *script == name)?;
        (script, class(&format!(r"\p{{sc={script}}}"))?)
    };
    if matches!(name, "C" | "Cn") {
        // With what was assigned later.
        let mut unknown = known().clone();
        unknown.negate();
        found.union(&unknown);
    } else {
        found.intersect(known());
    }
    // AHOM CONSONANT SIGN MEDIAL RA, the only character whose category has changed since.
    let ahom = of(&[('\u{1171e}', '\u{1171e}')]);
    match name {
        "Mn" => found.union(&ahom),
        "Mc" => found.difference(&ahom),
        _ => {}
    }
    Some(if fold_case && FOLDED.contains(&name) { fold(&found) } else { found })
}
