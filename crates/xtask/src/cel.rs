//! CEL in lines that can be read.

use std::fmt::Write as _;

/// The longest line.
const WIDTH: usize = 108;

/// Breaks an expression into lines: first at what is least deep in brackets, and there before operators.
pub(crate) fn lines(expression: &str) -> String {
    let mut out = String::new();
    write(&mut out, expression, 0);
    out
}

fn write(out: &mut String, text: &str, indent: usize) {
    let width = |text: &str| text.chars().count();
    let pieces = if indent + width(text) > WIDTH { split(text) } else { vec![text] };
    if let [one] = pieces[..] {
        let _ = writeln!(out, "{:indent$}{one}", "");
        return;
    }
    // The terms of a sum and the elements of a list share lines, what is chosen between does not.
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line)
                if (piece.starts_with("+ ")
                    || (line.ends_with("',") && piece.starts_with('\'') && !piece.contains(" + ")))
                    && indent + 2 + width(line) + 1 + width(piece) <= WIDTH =>
            {
                line.push(' ');
                line.push_str(piece);
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    for (index, line) in lines.into_iter().enumerate() {
        write(out, &line, if index == 0 { indent } else { indent + 2 });
    }
}

/// Splits at the places that are least deep: before an operator, or after a comma.
fn split(text: &str) -> Vec<&str> {
    let mut places: Vec<(i32, usize)> = Vec::new();
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ' ' if at > 0 => {
                let rest = &text[at + 1..];
                let operator = ["&& ", "|| ", "+ ", "? ", ": "].iter().any(|operator| rest.starts_with(operator));
                if operator || text[..at].ends_with(',') {
                    places.push((depth, at));
                }
            }
            _ => {}
        }
    }
    let Some(least) = places.iter().map(|(depth, _)| *depth).min() else { return vec![text] };
    let mut pieces = Vec::new();
    let mut start = 0;
    for (_, at) in places.into_iter().filter(|(depth, _)| *depth == least) {
        pieces.push(&text[start..at]);
        start = at + 1;
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn only_spaces_become_line_breaks() {
        let long = "variables.containers.map(c, !(c.?a.orValue('it\\'s a + b') in ['Default', 'Another', 'And another one']) \
                    && variables.spec.?hostUsers.orValue(true), '[procMount] container \"' + c.name + '\": is ' + c.a)";
        let broken = lines(long);
        assert!(broken.lines().count() > 1 && broken.lines().all(|line| line.len() <= super::WIDTH), "{broken}");
        let joined: Vec<_> = broken.lines().map(str::trim_start).collect();
        assert_eq!(joined.join(" "), long);
        assert_eq!(lines("a && b"), "a && b\n");
    }
}
