//! C and C++ for tests: compiles programs against the checked-in header and the real shared
//! library, and runs them.
//!
//! The library is built by a cargo of its own in a target directory of its own (`cabi` beside the
//! test's), because the cargo that runs the test holds the lock of the usual one. A test that
//! finds no compiler says so through `skip`.

#![allow(dead_code)] // Each test binary takes what it needs.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Every warning that a program of ours must be free of.
const WARNINGS: [&str; 7] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef", "-Werror"];

/// A language of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    C99,
    C11,
    Cpp11,
    Cpp17,
}

impl Language {
    pub const ALL: [Language; 4] = [Language::C99, Language::C11, Language::Cpp11, Language::Cpp17];

    fn flags(self) -> [&'static str; 3] {
        match self {
            Language::C99 => ["-xc", "-std=c99", "-Wstrict-prototypes"],
            Language::C11 => ["-xc", "-std=c11", "-Wstrict-prototypes"],
            Language::Cpp11 => ["-xc++", "-std=c++11", "-Wnon-virtual-dtor"],
            Language::Cpp17 => ["-xc++", "-std=c++17", "-Wnon-virtual-dtor"],
        }
    }

    /// The compiler: `CC` or `CXX`, or the system's.
    fn compiler(self) -> String {
        let (variable, usual) = match self {
            Language::C99 | Language::C11 => ("CC", "cc"),
            Language::Cpp11 | Language::Cpp17 => ("CXX", "c++"),
        };
        std::env::var(variable).unwrap_or_else(|_| usual.to_string())
    }

    /// Whether there is a compiler; if not, the test is skipped and that is said.
    pub fn available(self) -> bool {
        let compiler = self.compiler();
        available(&compiler, "--version") || skip(&format!("no compiler: {compiler}"))
    }
}

/// Whether a tool can be run at all.
pub fn available(tool: &str, flag: &str) -> bool {
    let quiet = Command::new(tool).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Says that a test is skipped, past the harness, which would hide it. Where the tools must be
/// there (`SHARDWHEEL_REQUIRE_TOOLS=1`), a skip is a failure. Answers false.
pub fn skip(reason: &str) -> bool {
    let required = std::env::var("SHARDWHEEL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "required, but not here: {reason}");
    let test = std::thread::current().name().unwrap_or("?").to_string();
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {reason}");
    false
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A place for a test's files.
pub fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The directory of the real shared library, which is built at the first call: release, as it
/// ships.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = scratch().parent().expect("a target directory").join("cabi");
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
        let mut build = Command::new(cargo);
        build.current_dir(root()).env("CARGO_TARGET_DIR", &target);
        build.args(["rustc", "--quiet", "--lib", "--release", "--features", "capi"]);
        build.args(["--crate-type", "cdylib,staticlib"]);
        // As include/install.sh has it, so that it is not built twice.
        build.args(["--", "-Clink-arg=-Wl,-soname,libshardwheel.so.0"]);
        succeed(&mut build);
        let directory = target.join("release");
        // Programs look for the soname.
        let link = directory.join("libshardwheel.so.0");
        let _ = std::os::unix::fs::symlink("libshardwheel.so", &link);
        assert!(link.exists(), "no {}", link.display());
        directory
    })
}

/// Compiles one source without linking it; panics with the compiler's words.
pub fn check(language: Language, source: &Path) {
    let mut compile = compiler(language, source);
    compile.arg("-fsyntax-only");
    succeed(&mut compile);
}

/// Whether a header can be included; if not, the test is skipped and that is said.
pub fn has_header(language: Language, header: &str, package: &str) -> bool {
    let source = scratch().join(format!("has_{package}_{language:?}"));
    std::fs::write(&source, format!("#include <{header}>\n")).expect("written");
    let mut compile = Command::new(language.compiler());
    compile.args(language.flags()).args(["-D_GNU_SOURCE", "-fsyntax-only"]).arg(&source);
    let found = compile.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    found || skip(&format!("no <{header}>: {package}"))
}

/// Compiles and links one source, without the library unless `linked`; answers the program.
/// `name` must be the test's own.
pub fn program(language: Language, source: &Path, name: &str, linked: bool) -> PathBuf {
    program_of(language, &[source], name, linked, &[])
}

/// As `program`, of several sources and with other libraries.
pub fn program_of(
    language: Language,
    sources: &[&Path],
    name: &str,
    linked: bool,
    libraries: &[&str],
) -> PathBuf {
    let program = scratch().join(name);
    let (first, others) = sources.split_first().expect("a source");
    let mut compile = compiler(language, first);
    for source in others {
        compile.args(language.flags()).arg(source).arg("-xnone");
    }
    compile.args(["-g", "-O1", "-pthread", "-o"]).arg(&program).args(libraries);
    if linked {
        let library = library();
        compile.arg("-L").arg(library).arg("-lshardwheel");
        compile.arg(format!("-Wl,-rpath,{}", library.display()));
    }
    succeed(&mut compile);
    program
}

fn compiler(language: Language, source: &Path) -> Command {
    let mut compile = Command::new(language.compiler());
    compile.args(language.flags()).args(WARNINGS);
    compile.arg("-I").arg(root().join("include")).arg(source).arg("-xnone");
    compile
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

/// Runs a program; one that takes longer than `limit` is killed and fails the test.
pub fn run(program: &Path, arguments: &[&str], limit: Duration) -> Ended {
    let begun = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let stdout = reader(child.stdout.take().expect("piped"));
    let stderr = reader(child.stderr.take().expect("piped"));
    let status = wait(&mut child, begun + limit);
    let took = begun.elapsed();
    let ended = |status| Ended {
        status,
        stdout: stdout.join().expect("read"),
        stderr: stderr.join().expect("read"),
        took,
    };
    match status {
        Some(status) => ended(status),
        None => {
            child.kill().expect("killed");
            let ended = ended(child.wait().expect("waited for"));
            panic!("{} {arguments:?}: not over after {took:?}\n{ended:?}", program.display());
        }
    }
}

/// Runs a program that must end with success.
pub fn run_well(program: &Path, arguments: &[&str], limit: Duration) -> Ended {
    let ended = run(program, arguments, limit);
    let name = program.display();
    assert!(
        ended.status.success(),
        "{name} {arguments:?}: {}\n{}{}",
        ended.status,
        ended.stdout,
        ended.stderr
    );
    ended
}

fn wait(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("waited for") {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs a tool that must succeed; answers what it printed.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout
}

/// The functions that the checked-in header declares, sorted.
pub fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(root().join("include/shardwheel.h")).expect("the header");
    let mut code = String::new();
    let mut rest = header.as_str();
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    code.push_str(rest);
    let code: Vec<&str> = code.lines().filter(|line| !line.starts_with('#')).collect();
    let mut names = Vec::new();
    let mut depth = 0_usize;
    for statement in code.join(" ").split(';') {
        // Fields of structs are no declarations, though a field may be a pointer to a function.
        let outside = depth == 0;
        let type_only = statement.trim_start().starts_with("typedef");
        let statement = statement.replace("extern \"C\" {", "");
        depth += statement.matches('{').count();
        depth -= statement.matches('}').count().min(depth);
        if let Some((before, _)) = statement.split_once('(')
            && outside
            && !type_only
        {
            let name = before.rsplit([' ', '*']).next().expect("a name");
            names.push(name.to_string());
        }
    }
    names.sort();
    names
}
