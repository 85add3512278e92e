//! A small real Rust program for the benchmarks: counts words of its input in several threads and prints a report.
//! Nearly all of its code is that of the standard library.

use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

#[derive(Debug)]
enum Problem {
    Io(io::Error),
    Number(std::num::ParseFloatError),
    Empty(PathBuf),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Io(error) => write!(f, "input failed: {error}"),
            Problem::Number(error) => write!(f, "no number: {error}"),
            Problem::Empty(path) => write!(f, "{} is empty", path.display()),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Problem::Io(error)
    }
}

impl From<std::num::ParseFloatError> for Problem {
    fn from(error: std::num::ParseFloatError) -> Self {
        Problem::Number(error)
    }
}

#[derive(Default, Debug, Clone)]
struct Counts {
    words: HashMap<String, usize>,
    lengths: BTreeMap<usize, Vec<String>>,
    numbers: Vec<f64>,
    letters: HashSet<char>,
}

impl Counts {
    fn add(&mut self, line: &str) -> Result<(), Problem> {
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '.').filter(|word| !word.is_empty()) {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                self.numbers.push(word.trim_end_matches('.').parse()?);
                continue;
            }
            let lower = word.to_lowercase();
            self.letters.extend(lower.chars());
            self.lengths.entry(lower.chars().count()).or_default().push(lower.clone());
            *self.words.entry(lower).or_insert(0) += 1;
        }
        Ok(())
    }

    fn merge(&mut self, other: Counts) {
        for (word, count) in other.words {
            *self.words.entry(word).or_insert(0) += count;
        }
        for (length, mut words) in other.lengths {
            self.lengths.entry(length).or_default().append(&mut words);
        }
        self.numbers.extend(other.numbers);
        self.letters.extend(other.letters);
    }
}

fn read(path: &Path) -> Result<Vec<String>, Problem> {
    let mut text = String::new();
    fs::File::open(path)?.read_to_string(&mut text)?;
    if text.is_empty() {
        return Err(Problem::Empty(path.to_path_buf()));
    }
    Ok(text.lines().map(str::to_owned).collect())
}

fn count(lines: Vec<String>, workers: usize) -> Result<Counts, Problem> {
    let queue = Arc::new(Mutex::new(lines.into_iter().collect::<VecDeque<_>>()));
    let failures = Arc::new(RwLock::new(Vec::new()));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..workers)
        .map(|_| {
            let (queue, failures, sender) = (Arc::clone(&queue), Arc::clone(&failures), sender.clone());
            thread::spawn(move || {
                let mut counts = Counts::default();
                loop {
                    let line = queue.lock().unwrap().pop_front();
                    let Some(line) = line else { break };
                    if let Err(problem) = counts.add(&line) {
                        failures.write().unwrap().push(problem);
                    }
                }
                sender.send(counts).unwrap();
            })
        })
        .collect();
    drop(sender);
    let mut total = Counts::default();
    receiver.iter().for_each(|counts| total.merge(counts));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let first = failures.write().unwrap().pop();
    first.map_or(Ok(total), Err)
}

fn reachable(host: &str) -> Option<IpAddr> {
    let address = (host, 80).to_socket_addrs().ok()?.next()?;
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok()?;
    stream.write_all(b"HEAD / HTTP/1.0\r\n\r\n").ok()?;
    Some(address.ip())
}

fn main() {
    let started = Instant::now();
    let mut lines = Vec::new();
    for argument in env::args().skip(1) {
        match (read(Path::new(&argument)), reachable(&argument)) {
            (Ok(mut found), _) => lines.append(&mut found),
            (Err(_), Some(address)) => lines.push(address.to_string()),
            (Err(problem), None) => {
                eprintln!("{argument}: {problem}");
                process::exit(1);
            }
        }
    }
    lines.extend(io::stdin().lock().lines().map_while(Result::ok));
    let counts = count(lines, thread::available_parallelism().map_or(1, usize::from)).unwrap_or_else(|problem| {
        eprintln!("{problem}");
        process::exit(1)
    });
    let mut heap: BinaryHeap<_> = counts.words.iter().map(|(word, &count)| (count, word)).collect();
    while let Some((count, word)) = heap.pop() {
        println!("{count:>8} {word:?}");
    }
    let mut numbers = counts.numbers.clone();
    numbers.sort_by(f64::total_cmp);
    println!("{numbers:.3?} {:?} {:#?}", counts.letters, counts.lengths);
    println!("{:?}", started.elapsed());
}
