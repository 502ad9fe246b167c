//! Patterns on what a call is aimed at: `*` stands for anything, `?` for one letter, all else for
//! itself. A pattern is about the whole subject, not about a part of it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<char>);

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    pub fn text(&self) -> String {
        self.0.iter().collect()
    }

    pub fn is_exactly(&self, subject: &str) -> bool {
        self.0.iter().copied().eq(subject.chars())
    }

    /// Goes back to the last star only, so it takes at most length times length steps.
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
