//! Markdown for forges and chats: tables, and escaped text.

use crate::report::one_line;

/// A table. Columns with a title that begins with `#` have numbers.
pub fn table(titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cell = |cell: &str| if cell.is_empty() { "| ".to_owned() } else { format!("| {cell} ") };
        cells.map(cell).collect::<String>() + "|\n"
    };
    let mut text = line(&mut titles.iter().map(|title| title.trim_start_matches('#')));
    text.extend(titles.iter().map(|title| if title.starts_with('#') { "|---:" } else { "|---" }));
    text.push_str("|\n");
    text.extend(rows.into_iter().map(|row| line(&mut row.iter().map(String::as_str))));
    text
}

/// Text without any Markdown or HTML.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // No mentions and links of a forge.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '!' | '|' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_tenants_is_no_markdown() {
        assert_eq!(
            plain("a|b\n<img src=x> [l](http://x) @all `c`"),
            "a\\|b &lt;img src=x&gt; \\[l\\]\\(http://x\\) &#64;all \\`c\\`"
        );
    }

    #[test]
    fn columns_of_numbers_are_at_the_right() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec![String::new(), "2".to_owned()]];
        assert_eq!(table(&["what", "#count"], rows), "| what | count |\n|---|---:|\n| a | 1 |\n| | 2 |\n");
        assert_eq!(table(&["", "#n"], []), "| | n |\n|---|---:|\n");
    }
}
