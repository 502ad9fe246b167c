//! The attributes and colours of SGR escape sequences, as classes.

use std::fmt::Write;

use vte::Params;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    foreground: Option<u8>,
    background: Option<u8>,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
    is_inverse: bool,
    is_struck: bool,
}

impl Style {
    pub(super) fn apply(&mut self, params: &Params) {
        let mut params = params.iter();
        while let Some(param) = params.next() {
            match param[0] {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                3 => self.is_italic = true,
                4 => self.is_underlined = param.get(1) != Some(&0),
                7 => self.is_inverse = true,
                9 => self.is_struck = true,
                21 | 22 => (self.is_bold, self.is_dim) = (false, false),
                23 => self.is_italic = false,
                24 => self.is_underlined = false,
                27 => self.is_inverse = false,
                29 => self.is_struck = false,
                it @ 30..=37 => self.foreground = Some(it as u8 - 30),
                38 => self.foreground = extended(param, &mut params).or(self.foreground),
                39 => self.foreground = None,
                it @ 40..=47 => self.background = Some(it as u8 - 40),
                48 => self.background = extended(param, &mut params).or(self.background),
                49 => self.background = None,
                it @ 90..=97 => self.foreground = Some(it as u8 - 82),
                it @ 100..=107 => self.background = Some(it as u8 - 92),
                _ => (),
            }
        }
    }

    /// Returns the CSS classes of the text style, separated by spaces; empty for plain text.
    pub(super) fn class(&self) -> String {
        let (foreground, background) = match self.is_inverse {
            true => (self.background, self.foreground),
            false => (self.foreground, self.background),
        };
        let mut class = String::new();
        let flags = [
            (self.is_inverse, "ansi-inverse"),
            (self.is_bold, "ansi-bold"),
            (self.is_dim, "ansi-dim"),
            (self.is_italic, "ansi-italic"),
            (self.is_underlined, "ansi-underline"),
            (self.is_struck, "ansi-strike"),
        ];
        for (_, name) in flags.into_iter().filter(|(is_on, _)| *is_on) {
            let _ = write!(class, "{name} ");
        }
        for (name, colour) in [("fg", foreground), ("bg", background)] {
            if let Some(colour) = colour {
                let _ = write!(class, "ansi-{name}-{colour} ");
            }
        }
        class.truncate(class.trim_end().len());
        class
    }
}

/// Parses an extended colour of an SGR escape sequence as an index of the 256-colour palette, to
/// which true colours are mapped. Both `38;5;n` and `38:5:n` are in use.
fn extended<'a>(param: &[u16], rest: &mut impl Iterator<Item = &'a [u16]>) -> Option<u8> {
    let mut next = || rest.next().map(|it| it[0]);
    let byte = |it: u16| u8::try_from(it).ok();
    if let [_, kind, parts @ ..] = param {
        return match (kind, parts) {
            (5, [index, ..]) => byte(*index),
            (2, [red, green, blue]) | (2, [_, red, green, blue, ..]) => {
                Some(nearest(byte(*red)?, byte(*green)?, byte(*blue)?))
            }
            _ => None,
        };
    }
    match next()? {
        5 => byte(next()?),
        2 => {
            let (red, green, blue) = (next()?, next()?, next()?);
            Some(nearest(byte(red)?, byte(green)?, byte(blue)?))
        }
        _ => None,
    }
}

const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Returns the nearest of the palette colours 16 to 255: a cube of 6 levels, then 24 greys.
fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    let distance = |index: u8| {
        let (r, g, b) = rgb(index);
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(red, r) + square(green, g) + square(blue, b)
    };
    (16..=255).min_by_key(|it| distance(*it)).unwrap_or(15)
}

/// Returns the RGB components of a palette colour from 16 to 255.
fn rgb(index: u8) -> (u8, u8, u8) {
    match index.checked_sub(232) {
        Some(grey) => (8 + 10 * grey, 8 + 10 * grey, 8 + 10 * grey),
        None => {
            let cube = usize::from(index.saturating_sub(16));
            (LEVELS[cube / 36], LEVELS[cube / 6 % 6], LEVELS[cube % 6])
        }
    }
}

/// CSS rules for styles of terminal text. For text without its own background, the hue stays and
/// the lightness follows the theme.
const RULES: &str = "\
.ansi-bold { font-weight: 650; }
.ansi-dim { color: var(--muted); }
.ansi-italic { font-style: italic; }
.ansi-underline { text-decoration: underline; }
.ansi-strike { text-decoration: line-through; }
.ansi-inverse { background: var(--ansi-foreground); color: var(--ansi-background); }
[class*='ansi-fg-'] { color: light-dark(oklch(from var(--fg) min(l, 0.52) c h),
    oklch(from var(--fg) max(l, 0.74) c h)); }
[class*='ansi-bg-'] { background: var(--bg); color: var(--on-bg); }
[class*='ansi-bg-'][class*='ansi-fg-'] { color: var(--fg); }
";

/// Returns the CSS rules for all styles of terminal text. The page's own stylesheet sets `--ansi-0`
/// to `--ansi-15` for each theme.
pub fn stylesheet() -> String {
    let mut css = RULES.to_owned();
    for index in 0..=255 {
        let (colour, text) = if index < 16 {
            (format!("var(--ansi-{index})"), "var(--ansi-background)")
        } else {
            let (red, green, blue) = rgb(index);
            let text = if is_light(red, green, blue) { "#000" } else { "#fff" };
            (format!("#{red:02x}{green:02x}{blue:02x}"), text)
        };
        let _ = writeln!(css, ".ansi-fg-{index} {{ --fg: {colour}; }}");
        let _ = writeln!(css, ".ansi-bg-{index} {{ --bg: {colour}; --on-bg: {text}; }}");
    }
    css
}

/// Returns whether black text is easier to read on a background of this colour than white text.
fn is_light(red: u8, green: u8, blue: u8) -> bool {
    299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue) > 128_000
}
