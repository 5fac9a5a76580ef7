//! The page in a real browser: Chromium, if it is installed, else the tests say that they were skipped.
use crate::fixture;
use dosimeter_study::report;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes the page and, beside it, a copy with a script that measures it. The page itself forbids scripts.
fn pages(dir: &Path) -> (PathBuf, PathBuf) {
    let text = report::html::page(&fixture::report(), Some(&fixture::timings())).unwrap();
    let page = dir.join("report.html");
    std::fs::write(&page, &text).unwrap();
    let (head, policy_and_rest) =
        text.split_once("<meta http-equiv=\"Content-Security-Policy\"").unwrap();
    let (_, rest) = policy_and_rest.split_once('>').unwrap();
    let measured = format!("{head}{rest}{MEASURE}");
    let copy = dir.join("measured.html");
    std::fs::write(&copy, measured).unwrap();
    // A frame of a phone's width: a headless window may refuse to be that narrow.
    std::fs::write(
        dir.join("phone.html"),
        "<!doctype html><body><script>onmessage=e=>{document.body.dataset.measured=e.data}</script>\
             <iframe src=\"measured.html\" style=\"width:390px;height:844px;border:0\"></iframe>",
    )
    .unwrap();
    (page, copy)
}

/// Overflow of the page, of each figure and of each table's box; text too small to read; marks outside their figure.
const MEASURE: &str = r#"<script>
addEventListener("load", () => {
  const page = document.documentElement, wide = [];
  for (const e of document.querySelectorAll("main *")) {
    if (e.closest(".box, pre, svg")) continue;
    const r = e.getBoundingClientRect();
    if (r.width > 0 && r.right > page.clientWidth + 1) wide.push(e.tagName + "." + e.className);
  }
  const small = [...document.querySelectorAll("svg text")].filter(t => t.getBoundingClientRect().height < 8).length;
  const outside = [...document.querySelectorAll("figure.panel svg .mark, figure.panel svg .curve")].filter(m => {
    const a = m.getBoundingClientRect(), b = m.closest("svg").getBoundingClientRect();
    return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
  }).length;
  const text = JSON.stringify({ width: page.clientWidth, scroll: page.scrollWidth, wide: wide.slice(0, 5), small, outside,
    figures: document.querySelectorAll("figure svg[role=img] > desc").length, tables: document.querySelectorAll("table").length });
  document.body.dataset.measured = text;
  if (parent !== window) parent.postMessage(text, "*");
});
</script>"#;

#[derive(serde::Deserialize, Debug)]
struct Measured {
    width: u32,
    scroll: u32,
    wide: Vec<String>,
    small: u32,
    outside: u32,
    figures: u32,
    tables: u32,
}

/// The browser, or `None` with a line on stderr.
fn chromium() -> Option<&'static str> {
    let works = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works);
    if found.is_none() {
        eprintln!(
            "SKIPPED: no chromium here, the page was not seen by a browser (Debian: apt-get install chromium)"
        );
    }
    found
}

/// Runs the browser on a file; returns stdout and the console lines of stderr.
fn browse(browser: &str, dir: &Path, flags: &[&str], page: &Path) -> (String, Vec<String>) {
    let profile = tempfile::tempdir_in(dir).unwrap();
    let run = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--timeout=30000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(flags)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let console = String::from_utf8_lossy(&run.stderr)
        .lines()
        .filter(|l| l.contains(":CONSOLE"))
        .map(str::to_owned)
        .collect();
    (String::from_utf8_lossy(&run.stdout).into_owned(), console)
}

fn measured(dom: &str) -> Measured {
    let (_, rest) = dom
        .split_once("data-measured=\"")
        .unwrap_or_else(|| panic!("the page was not measured: {dom:.300}"));
    let (text, _) = rest.split_once('"').unwrap();
    serde_json::from_str(&text.replace("&quot;", "\"")).unwrap()
}

#[test]
fn the_page_fits_a_desktop_and_a_phone_and_says_nothing_on_the_console() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (page, copy) = pages(dir.path());

    let (dom, console) =
        browse(browser, dir.path(), &["--window-size=1280,900", "--dump-dom"], &page);
    assert_eq!(console, Vec::<String>::new(), "console of the untouched page");
    assert!(dom.contains("Claimed, proved, measured"));

    let (dom, console) =
        browse(browser, dir.path(), &["--window-size=1280,900", "--dump-dom"], &copy);
    assert_eq!(console, Vec::<String>::new());
    let desktop = measured(&dom);
    let phone = dir.path().join("phone.html");
    let flags = ["--window-size=800,900", "--allow-file-access-from-files", "--dump-dom"];
    let phone = measured(&browse(browser, dir.path(), &flags, &phone).0);
    assert!(desktop.width > 1200 && (360..=390).contains(&phone.width), "{desktop:?} {phone:?}");
    for m in [&desktop, &phone] {
        assert!(m.scroll <= m.width && m.wide.is_empty(), "the page overflows sideways: {m:?}");
        assert!(m.small == 0 && m.outside == 0, "text or marks nobody can see: {m:?}");
        assert!(m.figures > 20 && m.tables > 8, "figures or tables are missing: {m:?}");
    }
}

#[test]
fn the_measuring_script_sees_a_page_that_overflows() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (_, copy) = pages(dir.path());
    let broken = std::fs::read_to_string(&copy)
        .unwrap()
        .replace(".box{overflow-x:auto", ".box{overflow-x:visible");
    std::fs::write(&copy, broken).unwrap();
    let phone = dir.path().join("phone.html");
    let flags = ["--window-size=800,900", "--allow-file-access-from-files", "--dump-dom"];
    let phone = measured(&browse(browser, dir.path(), &flags, &phone).0);
    assert!(phone.scroll > phone.width, "{phone:?}");
}

#[test]
fn the_page_prints() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (page, _) = pages(dir.path());
    let pdf = dir.path().join("report.pdf");
    let flag = format!("--print-to-pdf={}", pdf.display());
    browse(browser, dir.path(), &["--no-pdf-header-footer", &flag], &page);
    let bytes = std::fs::read(pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() > 50_000, "{} bytes", bytes.len());
}
