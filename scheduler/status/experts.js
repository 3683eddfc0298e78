// How often experts are chosen: on the left all experts of all layers in some
// steps, on the right the busiest expert of each layer over all steps. A click
// on the right chooses the steps that the left shows; at first the newest.
const HEAT_LEFT = 54, HEAT_TOP = 4, HEAT_BOTTOM = 18;
let heatAt = 0;  // the first step of the chosen point; 0: the newest

// A quarter of the mean and less is cold, four times the mean and more is hot.
function heatColor(load) {
  const x = Math.max(-1, Math.min(1, Math.log2(Math.max(load, 1e-9)) / 2));
  return `color-mix(in srgb, var(--${x < 0 ? 'blue' : 'red'}) ${Math.round(20 * Math.abs(x)) * 5}%, var(--soft))`;
}

// rows: [{ name, cells: [load] }], one below the other. `tell` makes the words
// for a cell, `marked` is a column with a frame.
function heatMap(box, { rows, foot, tell, marked = -1, pick }) {
  const W = Math.max(160, box.clientWidth || 400), columns = most(rows, r => r.cells.length);
  const height = Math.max(4, Math.min(22, Math.floor(260 / rows.length))), wide = (W - HEAT_LEFT - 4) / columns;
  const H = HEAT_TOP + rows.length * height + HEAT_BOTTOM, gap = Math.min(wide, height) > 5 ? 1 : 0;
  let s = `<svg viewBox="0 0 ${W} ${H}" height="${H}" class="heat">`;
  const named = Math.ceil(12 / height);
  rows.forEach((row, y) => {
    const top = HEAT_TOP + y * height;
    if (y % named === 0) s += `<text x="${HEAT_LEFT - 6}" y="${top + height / 2 + 4}" text-anchor="end">${esc(row.name)}</text>`;
    // Neighbours of one colour are one box: a layer may have hundreds of experts.
    for (let x = 0; x < row.cells.length;) {
      const color = heatColor(row.cells[x]);
      let end = x + 1;
      while (!gap && end < row.cells.length && heatColor(row.cells[end]) === color) end++;
      s += `<path fill="${color}" d="M${(HEAT_LEFT + x * wide).toFixed(2)} ${top}h${((end - x) * wide - gap).toFixed(2)}v${height - gap}h${(-(end - x) * wide + gap).toFixed(2)}z"/>`;
      x = end;
    }
  });
  if (marked >= 0) s += `<rect x="${HEAT_LEFT + marked * wide - 1}" y="${HEAT_TOP - 1}" width="${Math.max(3, wide + 1)}" height="${rows.length * height + 1}" fill="none" stroke="var(--text)"/>`;
  box.innerHTML = s + `<text x="${HEAT_LEFT}" y="${H - 4}">${esc(foot[0])}</text><text x="${W - 4}" y="${H - 4}" text-anchor="end">${esc(foot[1])}</text></svg><div class="tip"></div>`;
  const cell = e => {
    const at = box.getBoundingClientRect(), x = Math.floor((e.clientX - at.left - HEAT_LEFT) / wide), y = Math.floor((e.clientY - at.top - HEAT_TOP) / height);
    return rows[y] && x >= 0 && x < rows[y].cells.length ? [x, y] : null;
  };
  box.onmousemove = e => {
    const tip = box.querySelector('.tip'), at = cell(e);
    tip.style.display = at ? 'block' : 'none';
    if (!at) return;
    const px = HEAT_LEFT + at[0] * wide, left = px < W / 2;
    tip.textContent = tell(...at); tip.style.top = HEAT_TOP + (at[1] + 1) * height + 4 + 'px';
    tip.style.left = left ? px + 10 + 'px' : ''; tip.style.right = left ? '' : W - px + 'px';
  };
  box.onmouseleave = () => { box.querySelector('.tip').style.display = 'none'; };
  box.onclick = pick ? e => { const at = cell(e); if (at) pick(at[0]); } : null;
}

function drawExperts() {
  const box = $('experts');
  box.hidden = !experts.length;
  if (box.hidden) return;
  const found = experts.findIndex(p => p.first <= heatAt && heatAt <= p.last), at = found < 0 ? experts.length - 1 : found;
  const point = experts[at], steps = point.first === point.last ? 'step ' + point.first : `steps ${point.first} to ${point.last}`;
  const name = layer => 'unit ' + layer.unit, busiest = layer => most(layer.load, x => x);
  const key = [experts.length, experts.at(-1).last, at, box.clientWidth].join(' ');
  if (box.drawn === key) return;
  box.drawn = key;
  $('expertsNow').textContent = `busiest expert ${num(most(point.layers, busiest), 3)} times the mean`;
  $('expertsSteps').textContent = `every expert, ${steps}${found < 0 ? ', the newest' : ''}`;
  heatMap($('expertsNowMap'), { rows: point.layers.map(l => ({ name: name(l), cells: l.load })), foot: ['expert 0', `expert ${most(point.layers, l => l.load.length) - 1}`],
    tell: (x, y) => `${name(point.layers[y])}, expert ${x}: ${num(point.layers[y].load[x], 3)} times the mean` });
  const over = point.layers.map(l => ({ name: name(l), cells: experts.map(p => { const same = p.layers.find(m => m.unit === l.unit); return same ? busiest(same) : 1; }) }));
  heatMap($('expertsMap'), { rows: over, foot: ['step ' + experts[0].first, 'step ' + experts.at(-1).last], marked: at,
    tell: (x, y) => `${over[y].name}, step ${experts[x].first}${experts[x].last > experts[x].first ? ' to ' + experts[x].last : ''}: busiest expert ${num(over[y].cells[x], 3)} times the mean`,
    pick: x => { heatAt = x === experts.length - 1 ? 0 : experts[x].first; drawExperts(); } });
}
