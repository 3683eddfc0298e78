// The last traced step, drawn as clients/gantt draws it (docs/gantt.md says how
// to read it): a timeline's spans, placed on one axis, merged into bars, as SVG.
const BAR_KINDS = { f: 'forward', a: 'forward, again', i: 'backward, input', w: 'backward, weight', t: 'transfer',
  x: 'exchange within units', c: 'collective', m: 'between tiers of memory',
  s: 'optimizer step', d: 'data', o: 'other' };
const KIND_OF = { FORWARD: 'f', RECOMPUTE: 'a', BACKWARD_INPUT: 'i', BACKWARD_WEIGHT: 'w', SEND: 't', RECV: 't', EXCHANGE: 'x',
  REDUCE_GRADS: 'c', REDUCE_SCALARS: 'c',
  SCATTER_GRADS: 'c', GATHER_PARAMETERS: 'c', PUSH: 'c', PULL: 'c', CLAIM: 'c', DELIVER: 'c', ADMIT: 'c', FETCH: 'm', EVICT: 'm', KEEP: 'm', MIRROR: 'm', GRAD_NORM: 's', STEP: 's', LOAD_BATCH: 'd' };
const isPass = kind => 'faiw'.includes(kind);
const most = (list, f) => list.reduce((a, x) => Math.max(a, f(x)), -Infinity);
const least = (list, f) => list.reduce((a, x) => Math.min(a, f(x)), Infinity);

// Spans of all ranks on one axis, in nanoseconds. Those that need several ranks
// wait for the last of them to come, until `met`.
function placeSpans(timeline) {
  const origin = least(timeline.ranks, r => r.start_unix_ns), spans = [], meetings = new Map();
  for (const r of timeline.ranks) {
    const times = new Map();
    for (const s of r.spans) {
      const start = r.start_unix_ns - origin + s.start_ns, end = Math.max(start, r.start_unix_ns - origin + s.end_ns);
      const p = { ...s, rank: r.rank, type: KIND_OF[s.kind] || 'o', computes: timeline.lanes[s.lane]?.kind === 'COMPUTE', start, met: start, end };
      p.last = p;
      spans.push(p);
      if (!'txc'.includes(p.type)) continue;
      const who = s.kind === 'SEND' ? r.rank + '>' + s.peer : s.kind === 'RECV' ? s.peer + '>' + r.rank : s.kind;
      const name = [who, s.lane, s.unit, s.unit_count, s.micro_batch, s.ahead, s.group, s.exchange].join();
      const nth = times.get(name) || 0, key = name + '#' + nth;
      times.set(name, nth + 1);
      meetings.set(key, (meetings.get(key) || []).concat(p));
    }
  }
  for (const members of meetings.values()) {
    const last = members.reduce((a, b) => b.start > a.start ? b : a);
    for (const p of members) { p.last = last; p.met = Math.min(p.end, Math.max(p.start, last.start)); }
  }
  return spans;
}

// Marks the chain of spans that determines the end; returns where it goes from
// rank to rank. clients/gantt/critical_path.h says what is taken for waiting.
function markCriticalPath(spans) {
  const byRank = new Map(), hops = [];
  for (const p of spans) byRank.set(p.rank, (byRank.get(p.rank) || []));
  for (const p of spans) byRank.get(p.rank).push(p);
  for (const list of byRank.values()) list.sort((a, b) => b.end - a.end);
  const mayWait = (later, earlier) => later.lane === earlier.lane || later.kind === 'RECV' || later.kind === 'LOAD_BATCH' ||
    later.micro_batch == null || earlier.micro_batch == null ||
    later.micro_batch === earlier.micro_batch && later.ahead === earlier.ahead;
  const waitedFor = later => {
    let found = null;
    for (const p of byRank.get(later.rank)) {
      if (found && p.end < found.end) break;
      if (p.end > later.start || p.critical || !mayWait(later, p)) continue;
      if (!found || p.computes) found = p;
      if (p.computes) break;
    }
    return found;
  };
  let at = spans.reduce((a, b) => b.end > a.end ? b : a, spans[0]);
  while (at) {
    at.critical = at.last.critical = true;
    if (at.last.rank !== at.rank) hops.push([at.last, at]);
    at = waitedFor(at.last);
  }
  return hops;
}

// One bar for a pass over a stage: its units' spans, which are neighbours.
function mergeUnits(lane, stages, gap) {
  const stageOf = unit => stages.filter(s => s.unit <= unit).length;
  const group = p => 'aw'.includes(p.type) ? 'i' : p.type;
  const goesOn = (a, b) => b.start - a.end <= gap && group(a) === group(b) && (a.type === 's' || isPass(a.type) &&
    a.micro_batch === b.micro_batch && a.ahead === b.ahead && Math.abs(a.unit - b.unit) <= 1 && stageOf(a.unit) === stageOf(b.unit));
  const bars = [];
  for (const p of lane.sort((a, b) => a.start - b.start)) {
    const bar = bars.at(-1);
    if (bar && goesOn(bar.at(-1), p)) bar.push(p); else bars.push([p]);
  }
  // Backward is one bar where it does all its parts of each unit in turn.
  if (bars.some(bar => bar.some((p, i) => i && bar[i - 1].type === 'w' && p.type !== 'w'))) return bars;
  return bars.flatMap(bar => {
    const at = bar.findIndex(p => p.type === 'w');
    return at > 0 ? [bar.slice(0, at), bar.slice(at)] : [bar];
  });
}

function barTitle(bar) {
  const p = bar[0], units = bar.filter(x => x.unit != null).flatMap(x => [x.unit, x.unit + Math.max(1, x.unit_count) - 1]);
  const first = Math.min(...units), last = Math.max(...units);
  return [...new Set(bar.map(x => words(x.kind)))].join(', ') +
    (units.length ? first < last ? ` units ${first}–${last}` : ` unit ${first}` : '') +
    (p.micro_batch != null ? ` micro-batch ${p.micro_batch}` : '') +
    (p.peer != null ? ` ${p.kind === 'SEND' ? 'to' : 'from'} rank ${p.peer}` : '') +
    (p.ahead > 0 ? `, for the step ${p.ahead} later` : '') + ': ' + secs((bar.at(-1).end - p.start) / 1e9) +
    (p.met > p.start ? `, ${secs((p.met - p.start) / 1e9)} of it waiting` : '');
}

function barSvg(bar, { X, height, size, chunk }) {
  const p = bar[0], x = X(p.start), end = Math.max(X(bar.at(-1).end), x + .6), run = Math.min(Math.max(X(p.met), x), end - .6);
  const name = p.type + (isPass(p.type) && chunk % 2 ? '1' : ''), n = v => +v.toFixed(1);
  const box = (kind, from, to, top = 0) => `<path class="${kind}" d="M${n(from)} ${n(top)}H${n(to)}V${height}H${n(from)}z"/>`;
  let s = `<g><title>${barTitle(bar)}</title>`;
  if (run - x >= .6) s += box(name + ' wait', x, run);
  s += box(name, run - x >= .6 ? run : x, end);
  const time = type => sum(bar.filter(q => !type || q.type === type), q => q.end - q.start);
  let above = time(p.type);
  for (const type of new Set(bar.map(q => q.type).filter(t => t !== p.type))) {
    s += box(type + (chunk % 2 ? '1' : ''), x, end, height * above / time());
    above += time(type);
  }
  if (p.ahead > 0) s += box('later', x, end);
  if (end - x > 3) s += `<path class="edge" d="M${n(x)} 0V${height}M${n(end)} 0V${height}"/>`;
  if (bar.some(q => q.critical) && end - x >= 1.5) s += `<path class="path" d="M${n(run + .5)} .7H${n(end - .5)}V${height - .7}H${n(run + .5)}z"/>`;
  s += '</g>';
  const label = p.micro_batch == null ? '' : String(p.micro_batch);
  if (label && end - x >= .64 * label.length * size + 1.5) {
    s += `<text class="label ${'fa'.includes(p.type) && chunk % 2 === 0 ? 'light' : 'dark'}" x="${n((x + end) / 2)}" y="${n((height + .72 * size) / 2)}">${label}</text>`;
  }
  return s;
}

// Numbers the stages that a rank holds, by the units that it runs.
function chunksOf(spans, stages) {
  const units = [...new Set(spans.filter(p => isPass(p.type)).map(p => p.unit))].sort((a, b) => a - b), chunks = new Map();
  let chunk = 0;
  units.forEach((unit, i) => {
    const before = units[i - 1];
    if (i && (stages.length ? stages.some(s => before < s.unit && s.unit <= unit) : unit !== before + 1)) chunk++;
    chunks.set(unit, chunk);
  });
  return chunks;
}

// A timeline ready to be drawn: its ranks with their lanes' bars, its critical
// path, its step (a rank's longest) and its bubble.
function layOut(timeline, stages) {
  const spans = placeSpans(timeline), hops = spans.length ? markCriticalPath(spans) : [];
  const end = most(spans, p => p.end), byRank = new Map();
  for (const p of spans) byRank.has(p.rank) ? byRank.get(p.rank).push(p) : byRank.set(p.rank, [p]);
  const ranks = [...byRank].sort((a, b) => a[0] - b[0]).map(([rank, own]) => ({
    rank, chunks: chunksOf(own, stages), busy: sum(own.filter(p => p.computes), p => p.end - p.start),
    extent: most(own, p => p.end) - least(own, p => p.start),
    lanes: timeline.lanes.map((lane, i) => ({ index: i, ...lane, bars: mergeUnits(own.filter(p => p.lane === i), stages, end / 1000) })).filter(l => l.bars.length) }));
  const step = most(ranks, r => r.extent);
  const passes = ranks.flatMap(r => r.lanes.flatMap(l => l.bars)).filter(b => isPass(b[0].type)).map(b => b.at(-1).end - b[0].start).sort((a, b) => a - b);
  return { timeline, spans, hops, ranks, end, step, pass: passes[Math.floor(passes.length / 10)] || end, bubble: 1 - sum(ranks, r => r.busy) / (step * ranks.length) };
}

const LEFT = 156, RIGHT = 24, MOST = 2600;  // pixels: names and bubbles, a margin, a picture's width

// One timeline; `scale` is in pixels a nanosecond.
function ganttSvg({ ranks, hops, step, pass }, scale, width) {
  const X = ns => LEFT + ns * scale, plot = width - LEFT - RIGHT, middles = new Map();
  const labels = Math.min(11, Math.max(7, (.93 * pass * scale - 1.5) / 1.28));
  let s = '', y = 2;
  for (const r of ranks) {
    s += `<text class="rank" x="0" y="${y + 12}">rank ${r.rank}</text><text x="0" y="${y + 26}">bubble ${(100 * (1 - r.busy / step)).toFixed(1)} %</text>`;
    for (const { index, name, kind, bars } of r.lanes) {
      const compute = kind === 'COMPUTE', height = compute ? 22 : 9, size = compute ? labels : 7;
      middles.set(r.rank + ' ' + index, y + height / 2);
      s += `<text class="lane" x="${LEFT - 6}" y="${y + height / 2 + 3}">${words(name)}</text><rect class="row" x="${LEFT}" y="${y}" width="${plot}" height="${height}"/>` +
        `<g class="${compute ? 'compute' : 'thin'}" style="font-size:${size.toFixed(1)}px" transform="translate(0 ${y})">` +
        bars.map(bar => barSvg(bar, { X, height, size, chunk: r.chunks.get(bar[0].unit) || 0 })).join('') + '</g>';
      y += height + 1;
    }
    y += r.lanes.length > 1 ? 8 : 16;
  }
  s += hops.map(([a, b]) => `<path class="path" d="M${X(b.met).toFixed(1)} ${middles.get(a.rank + ' ' + a.lane)}L${X(b.end).toFixed(1)} ${middles.get(b.rank + ' ' + b.lane)}"/>`).join('');
  return `<svg class="gantt" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}"><defs><pattern id="later" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0v4" stroke="#fff" stroke-width="2.4" stroke-opacity=".55"/></pattern></defs>${s}</svg>`;
}

function drawTimeline() {
  const box = $('gantt'), t = timeline;
  box.hidden = !t || ![t.measured, t.predicted].some(x => x && x.ranks.some(r => r.spans.length));
  const room = Math.max(720, (box.clientWidth || 1200) - 34), key = timelineKey + ' ' + room;
  if (box.hidden || box.drawn === key) return;
  box.drawn = key;
  const parts = [t.measured, t.predicted].filter(x => x && x.ranks.some(r => r.spans.length)).map(x => layOut(x, t.stages || []));
  const end = most(parts, p => p.end), has = f => parts.some(p => p.spans.some(f));
  // Wide enough for the numbers of short passes; past its room it scrolls.
  const width = Math.round(Math.max(room, Math.min(MOST, 12 * end / least(parts, p => p.pass)) + LEFT + RIGHT)), scale = (width - LEFT - RIGHT) / end;
  const swatch = (name, text) => `<span class="key"><svg class="gantt" width="11" height="11"><path class="${name}" d="M0 0h11v11H0z"/></svg>${text}</span>`;
  box.innerHTML = '<h3>One step</h3><div style="margin-bottom:10px">' + Object.entries(BAR_KINDS).filter(([k]) => has(p => p.type === k)).map(([k, text]) => swatch(k, text)).join('') +
    (has(p => p.met > p.start) ? swatch('t wait', 'waiting for other ranks') : '') + (has(p => p.ahead > 0) ? swatch('f', 'hatched: for a later step') : '') + swatch('row path', 'critical path') + '</div>' +
    '<div class="scroll">' + parts.map(p => `<div class="dim" style="margin:10px 0 4px">${p.timeline.predicted ? 'predicted' : 'measured, step ' + p.timeline.step}: ${secs(p.step / 1e9)}, bubble ${(100 * p.bubble).toFixed(1)} %</div>${ganttSvg(p, scale, width)}`).join('') + '</div>';
}
