// Measures charts where the browser has laid them out: the report that the
// tests read. A chart is an <svg>; its rows are g.compute and g.thin; a row has
// a <g> for each bar and a text.label for each number.
function measureCharts(charts) {
  const box = e => { const r = e.getBoundingClientRect(); return { x: r.left, y: r.top, right: r.right, bottom: r.bottom }; };
  const within = (a, b, slack) => a.x >= b.x - slack && a.right <= b.right + slack && a.y >= b.y - slack && a.bottom <= b.bottom + slack;
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.x, b.x) > .5 && Math.min(a.bottom, b.bottom) - Math.max(a.y, b.y) > .5;
  // Of a bar, what is filled: the waiting part and the running one.
  const barBox = g => [...g.querySelectorAll('path')].filter(p => !/edge|path/.test(p.getAttribute('class'))).map(box)
    .reduce((a, b) => ({ x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), right: Math.max(a.right, b.right), bottom: Math.max(a.bottom, b.bottom) }));
  return charts.map(svg => {
    const report = { rows: 0, compute_rows: 0, bars: 0, passes: 0, labels: 0, pass_labels: 0, untitled: 0, outside: [], overlapping: [],
      bars_overlapping: [], clipped: [], critical: svg.querySelectorAll('.path').length, samples: [], width: box(svg).right - box(svg).x };
    const seen = new Set();
    for (const row of svg.querySelectorAll('g.compute, g.thin')) {
      const compute = row.classList.contains('compute');
      report.rows++; report.compute_rows += compute;
      const groups = [...row.children].filter(e => e.tagName === 'g'), bars = groups.map(barBox);
      const labels = [...row.querySelectorAll('text.label')].map(t => ({ text: t.textContent, box: box(t) }));
      report.bars += bars.length; report.labels += labels.length;
      report.untitled += groups.filter(g => !g.querySelector('title')).length;
      if (compute) {
        report.passes += groups.filter(g => /[fiw]1?/.test(g.querySelector('path').getAttribute('class'))).length;
        report.pass_labels += labels.length;
        // A glyph's box is higher than the glyph.
        bars.forEach((b, i) => { if (i && bars[i - 1].right - b.x > 1) report.bars_overlapping.push([i, bars[i - 1], b]); });
      }
      for (const label of labels) {
        if (!bars.some(b => within(label.box, { ...b, y: -1e9, bottom: 1e9 }, .3))) report.outside.push(label);
      }
      labels.forEach((l, i) => { if (i && overlap(labels[i - 1].box, l.box)) report.overlapping.push([labels[i - 1], l]); });
      // One point of each kind: near the upper left corner, clear of numbers,
      // lines, hatches and outlines.
      groups.forEach((g, i) => {
        const path = g.querySelector('path:not(.wait)'), kind = path.getAttribute('class'), b = box(path);
        if (seen.has(kind) || b.right - b.x < 8 || g.querySelector('.path, .later, .ahead')) return;
        seen.add(kind);
        report.samples.push({ kind, x: Math.round(b.x + 3), y: Math.round(b.y + 2.5), fill: getComputedStyle(path).fill });
      });
    }
    const texts = [...svg.querySelectorAll('text:not(.label)')].map(t => ({ text: t.textContent, box: box(t) })).filter(t => t.text);
    texts.forEach((a, i) => texts.slice(i + 1).forEach(b => { if (overlap(a.box, { ...b.box, y: b.box.y + 2, bottom: b.box.bottom - 2 })) report.overlapping.push([a, b]); }));
    for (const t of texts) if (!within(t.box, box(svg), .5)) report.clipped.push(t);
    return report;
  });
}
function leaveReport(report) {
  const pre = document.getElementById('report') || document.body.appendChild(Object.assign(document.createElement('pre'), { id: 'report', hidden: true }));
  pre.textContent = JSON.stringify(report);
}
