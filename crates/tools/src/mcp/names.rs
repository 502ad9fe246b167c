//! Names of MCP tools for models.
//!
//! Providers accept up to 64 letters, digits, `_` and `-`. A tool's name depends on the server's other tools
//! only if two would get the same name, and never on their order, because policy rules refer to names.

use std::collections::{HashMap, HashSet};

/// Maximum length of a tool name in characters, which are all ASCII.
pub(super) const MAX: usize = 64;
const BETWEEN: &str = "__";
/// Number of hexadecimal digits of the hash that distinguishes two tool names.
const HASH: usize = 8;

/// Returns whether an MCP server can have this id: short enough for tool names, and recognisable in
/// them.
pub fn is_server_id(id: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    (1..=32).contains(&id.len())
        && id.bytes().all(is_letter)
        && !id.contains(BETWEEN)
        && !id.ends_with('_')
}

/// Returns the id of the MCP server that a tool belongs to by its name; `None` for a name without
/// `__`.
pub fn server_of(tool: &str) -> Option<&str> {
    tool.split_once(BETWEEN).map(|(server, _)| server)
}

/// Returns our names for the tools of an MCP server, in their order; `None` for a tool without a
/// name or with the name of an earlier one.
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

/// Returns a tool name, cut to the maximum length, with a hash of the name that the MCP server gave
/// the tool.
fn marked(plain: &str, tool: &str) -> String {
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let room = plain.len().min(MAX - HASH - 1);
    format!("{}_{}", &plain[..room], &hash[..HASH])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that are similar, too long, empty, or of invalid characters.
    fn awkward() -> Vec<String> {
        let long = "x".repeat(80);
        let names =
            ["a.b", "a_b", "a b", "a-b", "", "_", "__", "a__b", "ä", "ö", "日本", "\0", "a_b"];
        let mut names: Vec<String> = names.map(str::to_owned).into();
        names.extend([format!("{long}1"), format!("{long}2"), "y".repeat(60), "y".repeat(61)]);
        names
    }

    #[test]
    fn names_are_valid_and_unique() {
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
            // All except the empty and the repeated one.
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
        assert_eq!(expected["a_b"], "s__a_b", "a valid name is unchanged");
    }

    #[test]
    fn ids_are_recognisable_in_names() {
        for id in ["a", "everything", "my-files", "a_b", "A1"] {
            assert!(is_server_id(id), "{id}");
        }
        for id in ["", "a__b", "a_", "a.b", "a b", "ä", &"x".repeat(33)] {
            assert!(!is_server_id(id), "{id}");
        }
    }
}
