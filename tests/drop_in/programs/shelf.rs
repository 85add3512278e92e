// Counts and keeps titles: inlined functions of the standard library, generics, a closure.
use std::collections::HashMap;

#[derive(Debug)]
struct Shelf {
    titles: Vec<String>,
    counts: HashMap<String, u32>,
}

impl Shelf {
    #[inline(never)]
    fn add(&mut self, title: &str) {
        *self.counts.entry(title.to_string()).or_insert(0) += 1;
        self.titles.push(title.to_owned());
    }

    #[inline(never)]
    fn longest(&self) -> Option<&String> {
        self.titles.iter().max_by_key(|title| title.len())
    }
}

fn main() {
    let mut shelf = Shelf { titles: Vec::new(), counts: HashMap::new() };
    for word in std::env::args() {
        shelf.add(&word);
    }
    println!("{:?} {:?}", shelf.longest(), shelf);
}
