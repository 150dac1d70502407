//! The ratios as bars, as SVG.

use std::path::Path;

use plotters::prelude::*;

use crate::{Result, measure::Figures, report::rows};

/// Draws the ratio of each arm to what it is compared with; a thin line shows the spread over the rounds.
pub(crate) fn draw(all: &[Figures], path: &Path) -> Result<()> {
    let rows: Vec<_> = rows(all).into_iter().filter_map(|row| Some((row.about.to_owned(), row.ratio?))).collect();
    let most = rows.iter().map(|(_, [_, _, most])| *most).fold(2.0, f64::max);
    let height = u32::try_from(rows.len())? * 28 + 70;
    let root = SVGBackend::new(path, (960, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let count = i32::try_from(rows.len())?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .caption("CPU of the API server for a request, compared with one that nothing judges", ("sans-serif", 16))
        .set_label_area_size(LabelAreaPosition::Left, 400)
        .set_label_area_size(LabelAreaPosition::Bottom, 24)
        .build_cartesian_2d(0.0..most * 1.05, (0..count).into_segmented())?;
    let label = |value: &SegmentValue<i32>| match value {
        SegmentValue::CenterOf(index) => usize::try_from(count - 1 - index)
            .ok()
            .and_then(|index| rows.get(index))
            .map_or_else(String::new, |(about, _)| about.clone()),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(rows.len())
        .y_label_formatter(&label)
        .label_style(("sans-serif", 13))
        .draw()?;
    for (index, (_, [ratio, least, most])) in rows.iter().enumerate() {
        let at = count - 1 - i32::try_from(index)?;
        let mut bar = Rectangle::new(
            [(0.0, SegmentValue::Exact(at)), (*ratio, SegmentValue::Exact(at + 1))],
            RGBColor(70, 110, 170).filled(),
        );
        bar.set_margin(5, 5, 0, 0);
        chart.draw_series([bar])?;
        let middle = SegmentValue::CenterOf(at);
        chart.draw_series([PathElement::new(vec![(*least, middle.clone()), (*most, middle)], BLACK)])?;
    }
    root.present()?;
    Ok(())
}
