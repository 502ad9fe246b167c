//! Files that every page loads: stylesheet, script and icon. They are part of the program.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use crate::text::ansi;

/// Static file that the web page loads: stylesheet, icon or script module.
pub struct Asset {
    /// File name of the asset, as in its URL `/assets/VERSION/NAME`.
    pub name: &'static str,
    /// Media type with which the asset is served.
    pub media_type: &'static str,
    /// Content of the asset.
    pub text: &'static str,
}

/// Builds a table of files in a folder of `web`: name and content of each.
macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../web/", $folder, "/", $name)))),*]
    };
}

/// Files of the stylesheet, one cascade layer each: name and content. Rules of a later file win.
const LAYERS: &[(&str, &str)] = files!("style":
    "tokens.css" "base.css" "frame.css" "messages.css" "calls.css" "looks.css" "text.css"
    "dialogs.css" "phone.css" "states.css" "print.css"
);
/// Modules of the page's script: file name and content of each.
const MODULES: &[(&str, &str)] = files!("script":
    "main.js" "approvals.js" "clock.js" "composer.js" "connection.js" "content.js" "dom.js"
    "focus.js" "frame.js" "keys.js" "list.js" "patches.js" "queue.js" "reading.js" "server.js"
    "sessions.js" "settings.js" "status.js" "updates.js" "uploads.js"
);
/// File name of the script module that imports all others.
pub(crate) const MAIN: &str = "main.js";
pub(crate) const STYLESHEET: &str = "page.css";
pub(crate) const ICON: &str = "icon.svg";

/// Returns the complete stylesheet of the web page. Each file is a cascade layer; later layers win.
pub fn stylesheet() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::new();
        for (file, rules) in LAYERS {
            let layer = file.trim_end_matches(".css");
            let ansi = if layer == "text" { ansi::stylesheet() } else { String::new() };
            text += &format!("@layer {layer} {{\n{rules}{ansi}}}\n");
        }
        text
    });
    &TEXT
}

/// Returns all assets that web pages load: stylesheet, icon and script modules.
pub fn assets() -> &'static [Asset] {
    static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
        let stylesheet = (STYLESHEET, "text/css; charset=utf-8", stylesheet());
        let icon = (ICON, "image/svg+xml", include_str!("../../../web/icon.svg"));
        let modules =
            MODULES.iter().map(|(name, text)| (*name, "text/javascript; charset=utf-8", *text));
        let files = [stylesheet, icon].into_iter().chain(modules);
        files.map(|(name, media_type, text)| Asset { name, media_type, text }).collect()
    });
    &ASSETS
}

/// Returns a hash of all assets, as hexadecimal digits, for their URLs. Script modules import each
/// other by relative paths, so one version covers all of them.
pub fn assets_version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        // Without a random key, so that the version is the same after a restart.
        let mut hasher = DefaultHasher::new();
        for Asset { name, text, .. } in assets() {
            (name, text).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    });
    &VERSION
}

/// Returns the URL of an asset, which contains the version of all assets.
pub(crate) fn asset_url(name: &str) -> String {
    format!("/assets/{}/{name}", assets_version())
}

/// Returns the file names of all script modules except the main one, which imports them.
pub(crate) fn imported_modules() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|(name, _)| *name).filter(|name| *name != MAIN)
}
