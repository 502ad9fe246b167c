//! Patterns for the subjects of calls: `*` matches anything, `?` one character, everything else itself. A
//! pattern matches the whole subject, not a part of it.

/// Pattern of a policy rule, in which `*` matches any text and `?` any single character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<char>);

impl Pattern {
    /// Creates a policy pattern from its text; every text is a valid pattern.
    pub fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// Returns the text of the policy pattern.
    pub fn text(&self) -> String {
        self.0.iter().collect()
    }

    /// Returns whether the policy pattern equals the subject literally, without the use of
    /// wildcards.
    pub fn is_exactly(&self, subject: &str) -> bool {
        self.0.iter().copied().eq(subject.chars())
    }

    /// Returns whether the policy pattern matches the whole subject. Backtracks to the last star
    /// only, so the cost is at most the product of both lengths.
    pub fn fits(&self, subject: &str) -> bool {
        let subject: Vec<char> = subject.chars().collect();
        let (mut at, mut from) = (0, 0);
        let mut last_star = None;
        while from < subject.len() {
            match self.0.get(at) {
                Some('*') => {
                    last_star = Some((at, from));
                    at += 1;
                }
                Some(letter) if *letter == '?' || *letter == subject[from] => {
                    at += 1;
                    from += 1;
                }
                _ => {
                    let Some((star, taken)) = last_star else { return false };
                    last_star = Some((star, taken + 1));
                    (at, from) = (star + 1, taken + 1);
                }
            }
        }
        self.0[at..].iter().all(|it| *it == '*')
    }
}
