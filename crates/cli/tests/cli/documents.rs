//! What the documents show is accepted.

use std::fs;

use super::{directory, run_in};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// The blocks of YAML in a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[test]
fn profiles_in_guides_are_accepted() {
    let (mut profiles, mut wrong) = (0, Vec::new());
    let pages = fs::read_dir(DOCS).unwrap().map(|entry| entry.unwrap().path());
    for path in pages.filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let page = fs::read_to_string(&path).unwrap();
        let is_whole = |block: &&str| block.contains("\nkind: ToolSecurityProfile\n") && block.contains("\nspec:");
        for block in blocks(&page).filter(is_whole) {
            profiles += 1;
            let at = directory(&[("profile.yaml", block)]);
            let run = run_in(at.path(), &["render", "profile.yaml"], "");
            if run.code != Some(0) {
                wrong.push(format!("{}: {}", path.display(), run.err));
            }
        }
    }
    assert!(profiles > 6, "only {profiles} profiles are found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
