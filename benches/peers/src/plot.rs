//! Draws the curves: cost of an operation against live timers, throughput against threads.

use crate::compare::Row;
use crate::machine::Machine;
use crate::report::spreads;
use crate::workload::Workload;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

/// Of shardwheel first, then of the others in the order of their rows.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 90, 170), RGBColor(0, 150, 110), RGBColor(200, 80, 20), RGBColor(120, 120, 120)];

/// A contender's name, and the median at each point.
type Curve = (String, Vec<(f64, f64)>);

/// The curves of one workload. `at`: where on the x axis a row lies.
fn curves(rows: &[Row], workload: Workload, metric: usize, at: impl Fn(&Row) -> f64) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows.iter().filter(|row| row.case.workload == workload) {
        let Some(found) = spreads(row) else { continue };
        let point = (at(row), found[metric].median);
        match curves.iter_mut().find(|(name, _)| *name == row.name) {
            Some((_, points)) => points.push(point),
            None => curves.push((row.name.clone(), vec![point])),
        }
    }
    curves
}

/// One panel: a title, what the axes show, and the curves.
fn panel<X, Y>(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    [title, x_title, y_title]: [&str; 3],
    x: X,
    y: Y,
    curves: &[Curve],
) -> Result<(), Box<dyn Error>>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(50)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(x_title)
        .y_desc(y_title)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .light_line_style(WHITE)
        .draw()?;
    for ((name, points), colour) in curves.iter().zip(COLOURS) {
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3);
        chart.draw_series(line)?.label(name).legend(move |(x, y)| {
            PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2))
        });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}

/// 1000000 as 1 M.
fn short(number: f64) -> String {
    match number {
        number if number >= 1e6 => format!("{} M", number / 1e6),
        number if number >= 1e3 => format!("{} k", number / 1e3),
        number => number.to_string(),
    }
}

/// A power of ten above all of them.
fn above(curves: &[Curve]) -> f64 {
    let most =
        curves.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(1.0, f64::max);
    10f64.powf(most.log10().floor() + 1.0)
}

/// Writes costs.svg and threads.svg.
pub fn draw(directory: &Path, rows: &[Row], machine: &Machine) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(directory)?;
    let line = machine.line();
    let file = directory.join("costs.svg");
    let area = SVGBackend::new(&file, (1200, 430)).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(&line, ("sans-serif", 13))?;
    let parts = area.split_evenly((1, 3));
    for (part, workload) in parts.iter().zip([Workload::W1b, Workload::W2, Workload::W3]) {
        // CPU time: other work on the machine stretches it least.
        let curves = curves(rows, workload, 1, |row| row.case.timers as f64);
        let title = format!("{}: {}", workload.name(), workload.about());
        let axes = [title.as_str(), "live timers", "CPU ns each"];
        let y = (1.0..above(&curves)).log_scale();
        panel(part, axes, (1e3..1e7).log_scale(), y, &curves)?;
    }
    area.present()?;
    let file = directory.join("threads.svg");
    let area = SVGBackend::new(&file, (800, 430)).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(&line, ("sans-serif", 13))?;
    let curves = curves(rows, Workload::W4, 0, |row| row.case.threads as f64);
    let axes = ["W4: start and cancel, 1 M live", "threads", "million pairs a second"];
    let most =
        curves.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(1.0, f64::max);
    panel(&area, axes, 1.0..8.0, 0.0..most * 1.3, &curves)?;
    area.present()?;
    Ok(())
}
