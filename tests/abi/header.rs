//! What the header declares, and which bad arguments each function must have been tried with.

use crate::cc;

/// A function: its name, and its parameters as the header writes them.
pub struct Prototype {
    pub name: String,
    pub parameters: Vec<String>,
}

/// The functions of the checked-in header.
pub fn prototypes() -> Vec<Prototype> {
    let header = std::fs::read_to_string(cc::root().join("include/shardwheel.h")).expect("header");
    let mut code = String::new();
    let mut rest = header.as_str();
    while let Some((before, comment)) = rest.split_once("/*") {
        code += before;
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    code += rest;
    cc::declared()
        .into_iter()
        .map(|name| {
            let (_, after) = code.split_once(&format!("{name}(")).expect("declared");
            let (parameters, _) = after.split_once(");").expect("a declaration ends");
            Prototype { name, parameters: split(parameters) }
        })
        .collect()
}

/// Parameters one by one; a pointer to a function is one with all of its own.
fn split(parameters: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0;
    for letter in parameters.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if letter == ',' && depth == 0 {
            found.push(String::new());
        } else {
            found.last_mut().expect("one").push(letter);
        }
    }
    let words = |one: &String| one.split_whitespace().collect::<Vec<_>>().join(" ");
    found.iter().map(words).filter(|one| one != "void").collect()
}

impl Prototype {
    /// What must have been tried, by the types of its parameters.
    pub fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| kinds.extend(more.iter().map(|kind| kind.to_string()));
        for parameter in &self.parameters {
            let named = parameter.split_once(")(").map_or(&parameter[..], |(pointer, _)| pointer);
            let name = named.rsplit([' ', '*']).next().expect("a name");
            let pointer = parameter.contains('*');
            match name {
                "ctx" | "arg" => {}
                "service" | "queue" if !parameter.contains("**") => add(&[&format!("null {name}")]),
                "timer" if !pointer => {
                    add(&["zero timer", "all ones timer"]);
                    if self.parameters.len() > 1 {
                        add(&["random timer", "stale timer", "foreign timer"]);
                    }
                }
                "shard" => add(&["shard past the end", "all ones shard"]),
                "how" => add(&["how past the end", "all ones how"]),
                "callback" | "unfired" => add(&[&format!("null {name}")]),
                // Memory that a correct host has.
                "capacity" => add(&["zero capacity"]),
                _ if pointer => add(&[&format!("null {name}")]),
                _ => add(&[&format!("zero {name}"), &format!("all ones {name}")]),
            }
            let sized = ["sw_config *", "sw_timer_spec *", "sw_stats *", "sw_details *"];
            if sized.iter().any(|sized| parameter.contains(sized)) && !self.name.ends_with("_init")
            {
                add(&["zero size", "small size", "garbage size", "larger size"]);
            }
        }
        let service = self.parameters.iter().any(|parameter| parameter.ends_with("*service"));
        let queue = self.parameters.iter().any(|parameter| parameter.ends_with("*queue"));
        if (service || queue) && self.name != "sw_service_start" {
            add(&["stopped", "wrong thread", "inside"]);
        }
        kinds
    }
}
