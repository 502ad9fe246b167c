//! The names by which models call the tools of MCP servers.
//!
//! Providers take up to 64 letters, digits, `_` and `-`. A tool's name depends on the tools beside it
//! only where two would get the same, and never on their order: rules for approvals name them.

use std::collections::{HashMap, HashSet};

pub(super) const MAX: usize = 64;
const BETWEEN: &str = "__";
/// Letters of the hash that tells two names apart.
const HASH: usize = 8;

/// A server's id must leave room for its tools' names, and be found again in them.
pub fn is_server_id(id: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    (1..=32).contains(&id.len())
        && id.bytes().all(is_letter)
        && !id.contains(BETWEEN)
        && !id.ends_with('_')
}

/// Whose tool this is.
pub fn server_of(tool: &str) -> Option<&str> {
    tool.split_once(BETWEEN).map(|(server, _)| server)
}

/// Our names for tools that a server lists, in the order of the list. None for those that cannot be
/// told from an earlier one.
pub(super) fn names(server: &str, tools: &[&str]) -> Vec<Option<String>> {
    let mut wanted_by: HashMap<String, HashSet<&str>> = HashMap::new();
    for tool in tools {
        wanted_by.entry(plain(server, tool)).or_default().insert(tool);
    }
    let mut taken = HashSet::new();
    let mut name = |tool: &&str| {
        let plain = plain(server, tool);
        let is_alone = wanted_by[&plain].len() == 1;
        let is_own = plain == format!("{server}{BETWEEN}{tool}");
        let name = if is_alone || is_own { plain } else { marked(&plain, tool) };
        (!tool.is_empty() && taken.insert(name.clone())).then_some(name)
    };
    tools.iter().map(&mut name).collect()
}

fn plain(server: &str, tool: &str) -> String {
    let letter = |it: char| if it.is_ascii_alphanumeric() || "_-".contains(it) { it } else { '_' };
    let name: String = format!("{server}{BETWEEN}{tool}").chars().map(letter).collect();
    if name.len() <= MAX { name } else { marked(&name, tool) }
}

/// Cut, and told apart by what the server calls it.
fn marked(plain: &str, tool: &str) -> String {
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let room = plain.len().min(MAX - HASH - 1);
    format!("{}_{}", &plain[..room], &hash[..HASH])
}

#[cfg(test)]
mod tests {
    //! Names that every provider takes, whatever a server calls its tools.

    use super::*;

    /// Names that are alike, too long, empty, or of letters that nobody takes.
    fn awkward() -> Vec<String> {
        let long = "x".repeat(80);
        let names =
            ["a.b", "a_b", "a b", "a-b", "", "_", "__", "a__b", "ä", "ö", "日本", "\0", "a_b"];
        let mut names: Vec<String> = names.map(str::to_owned).into();
        names.extend([format!("{long}1"), format!("{long}2"), "y".repeat(60), "y".repeat(61)]);
        names
    }

    #[test]
    fn providers_take_every_name_and_each_is_there_once() {
        for server in ["s", "a-b_c", &"s".repeat(32)] {
            let tools = awkward();
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let names: Vec<String> = names(server, &tools).into_iter().flatten().collect();
            let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
            for name in &names {
                assert!(name.len() <= MAX && name.bytes().all(is_letter), "{name}");
                assert_eq!(server_of(name), Some(server), "{name}");
            }
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
            // All but the one without a name and the one that is there twice.
            assert_eq!(names.len(), tools.len() - 2);
        }
    }

    #[test]
    fn the_order_of_the_list_changes_no_name() {
        let tools = awkward();
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let by_tool = |tools: &[&str]| -> HashMap<String, String> {
            let named = tools.iter().zip(names("s", tools));
            named.filter_map(|(tool, name)| Some(((*tool).to_owned(), name?))).collect()
        };
        let expected = by_tool(&tools);
        for n in 0..tools.len() {
            let mut turned = tools.clone();
            turned.rotate_left(n);
            assert_eq!(by_tool(&turned), expected);
            turned.reverse();
            assert_eq!(by_tool(&turned), expected);
        }
        assert_eq!(expected["a_b"], "s__a_b", "one that is as it should be stays as it is");
    }

    #[test]
    fn an_id_is_found_again_in_every_name() {
        for id in ["a", "everything", "my-files", "a_b", "A1"] {
            assert!(is_server_id(id), "{id}");
        }
        for id in ["", "a__b", "a_", "a.b", "a b", "ä", &"x".repeat(33)] {
            assert!(!is_server_id(id), "{id}");
        }
    }
}
