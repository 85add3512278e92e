//! A parser of expressions, its evaluation, and simple text processing.

use std::fmt::Write;
use std::rc::Rc;
use std::time::Instant;

const STEP: i64 = 5;

#[derive(Debug, Clone)]
enum Tree {
    Number(i64),
    Name(String),
    Binary(char, Rc<Tree>, Rc<Tree>),
    Negated(Rc<Tree>),
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    // split: #[inline(never)]
    fn peek(&mut self) -> u8 {
        while self.at < self.text.len() && self.text[self.at] == b' ' {
            self.at += 1;
        }
        *self.text.get(self.at).unwrap_or(&0)
    }

    fn sum(&mut self) -> Result<Tree, String> {
        let mut left = self.product()?;
        while matches!(self.peek(), b'+' | b'-') {
            let sign = self.text[self.at] as char;
            self.at += 1;
            left = Tree::Binary(sign, Rc::new(left), Rc::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Tree, String> {
        let mut left = self.atom()?;
        while matches!(self.peek(), b'*' | b'/') {
            let sign = self.text[self.at] as char;
            self.at += 1;
            left = Tree::Binary(sign, Rc::new(left), Rc::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Tree, String> {
        let begin = match self.peek() {
            b'(' => {
                self.at += 1;
                let inner = self.sum()?;
                if self.peek() != b')' {
                    return Err(format!("expected ) at {}", self.at));
                }
                self.at += 1;
                return Ok(inner);
            }
            b'-' => {
                self.at += 1;
                return Ok(Tree::Negated(Rc::new(self.atom()?)));
            }
            _ => self.at,
        };
        while self.at < self.text.len() && self.text[self.at].is_ascii_alphanumeric() {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[begin..self.at]).map_err(|error| error.to_string())?;
        match word.parse() {
            Ok(number) => Ok(Tree::Number(number)),
            Err(_) if !word.is_empty() => Ok(Tree::Name(word.to_string())),
            Err(error) => Err(format!("{error} at {begin}")),
        }
    }
}

// early: #[inline(never)]
// early: #[no_mangle]
// early: pub extern "C" fn added_early(x: u64) -> u64 { format!("{x}").len() as u64 * x % 977 }

#[inline(never)]
fn value(tree: &Tree) -> i64 {
    match tree {
        Tree::Number(number) => *number,
        Tree::Name(name) => name.bytes().fold(STEP, |sum, each| sum.wrapping_mul(31) + each as i64),
        Tree::Negated(inner) => value(inner).wrapping_neg(),
        Tree::Binary('+', a, b) => value(a).wrapping_add(value(b)),
        Tree::Binary('-', a, b) => value(a).wrapping_sub(value(b)),
        Tree::Binary('*', a, b) => value(a).wrapping_mul(value(b)),
        Tree::Binary(_, a, b) => value(a).checked_div(value(b)).unwrap_or(STEP),
    }
}

#[inline(never)]
fn show(tree: &Tree, out: &mut String) {
    match tree {
        Tree::Number(number) => write!(out, "{number}").unwrap(),
        Tree::Name(name) => out.push_str(name),
        Tree::Negated(inner) => {
            out.push('-');
            show(inner, out);
        }
        Tree::Binary(sign, a, b) => {
            out.push('(');
            show(a, out);
            write!(out, " {sign} ").unwrap();
            show(b, out);
            out.push(')');
        }
    }
}

#[inline(never)]
fn simplify(tree: &Rc<Tree>) -> Rc<Tree> {
    match &**tree {
        Tree::Binary(sign, a, b) => match (sign, &*simplify(a), &*simplify(b)) {
            ('+', Tree::Number(x), Tree::Number(y)) => Rc::new(Tree::Number(x.wrapping_add(*y))),
            ('*', Tree::Number(0), _) | ('*', _, Tree::Number(0)) => Rc::new(Tree::Number(0)),
            (_, x, y) => Rc::new(Tree::Binary(*sign, Rc::new(x.clone()), Rc::new(y.clone()))),
        },
        Tree::Negated(inner) => Rc::new(Tree::Negated(simplify(inner))),
        _ => tree.clone(),
    }
}

#[inline(never)]
fn make(seed: &mut u32, depth: u32, out: &mut String) {
    *seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
    let drawn = *seed >> 10;
    if depth == 0 || drawn % 7 == 0 {
        if drawn % 2 == 0 {
            write!(out, "{}", drawn % 1000).unwrap();
        } else {
            write!(out, "x{}", drawn % 9).unwrap();
        }
        return;
    }
    out.push('(');
    make(seed, depth - 1, out);
    out.push([' ', '+', '-', '*', '/'][1 + drawn as usize % 4]);
    make(seed, depth - 1, out);
    out.push(')');
}

#[inline(never)]
fn longest_common(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(90).collect(), b.chars().take(90).collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in 0..a.len() {
        for j in 0..b.len() {
            rows[i + 1][j + 1] =
                if a[i] == b[j] { rows[i][j] + 1 } else { rows[i][j + 1].max(rows[i + 1][j]) };
        }
    }
    rows[a.len()][b.len()]
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|each| each.parse().ok()).unwrap_or(1.0);
    let (begin, mut seed, mut sum) = (Instant::now(), 1u32, 0i64);
    loop {
        let mut text = String::new();
        make(&mut seed, 9, &mut text);
        match (Parser { text: text.as_bytes(), at: 0 }).sum() {
            Ok(tree) => {
                let (mut shown, tree) = (String::new(), Rc::new(tree));
                show(&simplify(&tree), &mut shown);
                sum = sum.wrapping_add(value(&tree)).wrapping_add(longest_common(&text, &shown) as i64);
            }
            Err(problem) => sum += problem.len() as i64,
        }
        if begin.elapsed().as_secs_f64() >= seconds {
            break;
        }
    }
    println!("{sum}");
}
// late: #[inline(never)]
// late: #[no_mangle]
// late: pub extern "C" fn added_late(x: u64) -> u64 { x * 31 % 977 }
