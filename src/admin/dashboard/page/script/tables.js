// The backends of each target, with their numbers. Of many only those are there that can be seen.

const ROW = 31; // pixels of a line of a table
const TABLES = 40; // targets that have a table
const VIEW = 22; // lines that are seen at once of a table that scrolls
const wish = { sort: '', down: false, find: '' };

const COLUMNS = [
  ['backend', 'backend', (name) => backendOf(name)],
  ['rate', 'requests/s', (name) => -rate(name)],
  ['spark', 'last minute', null],
  ['errors', 'errors', (name) => -sum(tracks.get(name)?.bads || [], LATELY)],
  ['p50', 'p50', (name) => -(rows.get(name).times.p50_ms || 0)],
  ['p99', 'p99', (name) => -(rows.get(name).times.p99_ms || 0)],
  ['active', 'in flight', (name) => -rows.get(name).active],
  ['weight', 'weight', (name) => -rows.get(name).weight],
  ['why', 'why', (name) => BAD[rows.get(name).state]],
];

const isFound = (name) => `${name} ${rows.get(name).address} ${rows.get(name).state} ${rows.get(name).reason}`.toLowerCase().includes(wish.find.toLowerCase());
// In the order that is wished, those that are found. What is worst stands first where there are many.
const ordered = (all) => {
  const found = wish.find ? all.filter(isFound) : all;
  const column = COLUMNS.find(([key]) => key === wish.sort) || (all.length > VIEW && !wish.sort ? COLUMNS[8] : null);
  if (!column || !column[2]) return found;
  const value = new Map(found.map((name) => [name, column[2](name)]));
  const list = [...found].sort((a, b) => (value.get(a) < value.get(b) ? -1 : value.get(a) > value.get(b) ? 1 : 0));
  return wish.down ? list.reverse() : list;
};

const heads = () => COLUMNS.map(([key, label, value]) => make('th', { scope: 'col', 'data-key': key },
  value ? make('button', { type: 'button', onclick: () => sortBy(key) }, label) : label));
const sortBy = (key) => {
  [wish.sort, wish.down] = wish.sort !== key ? [key, false] : wish.down ? ['', false] : [key, true];
  keepWish();
  tables();
};
// Tables that are far from what is seen have no lines: with many targets there would be thousands.
const nearby = new IntersectionObserver((seen) => {
  for (const { target: section, isIntersecting } of seen) {
    section.isNear = isIntersecting;
    if (isIntersecting && rows.has(section.target)) fillTable(section.target, section);
  }
}, { rootMargin: '900px' });
const table = (target) => {
  const body = make('tbody');
  const name = after(target, 'target/');
  const one = make('section', { class: 'target' },
    make('h2', { id: target, tabindex: '-1' }, shape(), link(target, name), ' ', make('small')),
    make('div', { class: 'wide', tabindex: '0', role: 'group', 'aria-label': `Backends of ${name}` },
      make('table', {}, make('thead', {}, make('tr', {}, ...heads())), body)));
  one.body = body;
  nearby.observe(one);
  one.target = target;
  one.lastChild.addEventListener('scroll', () => requestAnimationFrame(() => fillTable(target, one)));
  return one;
};
const line = (name) => () => {
  const cells = COLUMNS.map(() => make('td'));
  cells[0].append(shape(), link(name, backendOf(name)), ' ', make('small'));
  cells[2].append(spark(SHORT));
  return make('tr', { id: name, tabindex: '-1' }, ...cells);
};
const fill = (name) => (tr) => {
  const row = rows.get(name);
  const track = tracks.get(name);
  const cells = tr.children;
  mark(cells[0], 'data-state', row.state);
  say(cells[0].firstChild, SHAPES[row.state] || '○');
  say(cells[0].lastChild, row.state === 'up' ? (row.priority === 255 ? 'backup' : '') : row.state);
  say(cells[1], two(rate(name)));
  if (track) draw(cells[2].firstChild, track.rates, SHORT, track.bads);
  const { share, isBad } = lately(name);
  say(cells[3], share);
  mark(cells[3], 'class', isBad ? 'error' : '');
  say(cells[4], time(row.times.p50_ms));
  say(cells[5], time(row.times.p99_ms));
  say(cells[6], String(row.active));
  say(cells[7], String(row.weight));
  say(cells[8], row.state === 'up' ? '' : `${row.reason} (${row.source}), for ${span(at - row.since_ms)}`);
};
const gap = (key, lines) => [key, () => make('tr', { 'aria-hidden': 'true', class: 'gap' }, make('td', { colspan: COLUMNS.length })), (tr) => {
  tr.firstChild.setAttribute('height', String(lines * ROW));
}];
// While somebody is on a table its lines stay where they are.
const settled = (section, all) => {
  const wished = `${wish.sort} ${wish.down} ${wish.find}`;
  const wide = section.lastChild;
  if (section.wished !== wished || !(wide.matches(':hover') || wide.contains(document.activeElement))) {
    section.wished = wished;
    section.order = all;
    return all;
  }
  const left = new Set(all);
  const kept = section.order.filter((name) => left.delete(name));
  section.order = [...kept, ...left];
  return section.order;
};
const fillTable = (target, section) => {
  const all = settled(section, ordered(backendsOf(after(target, 'target/'))));
  const isLong = all.length > VIEW + 8;
  const wide = section.lastChild;
  turn(wide, 'data-long', isLong);
  if (!section.isNear && !section.contains(document.activeElement)) {
    return keyed(section.body, [gap('all', Math.min(all.length, isLong ? VIEW : all.length))]);
  }
  let [from, to] = [0, all.length];
  if (isLong) {
    from = Math.max(0, Math.floor(wide.scrollTop / ROW) - 6);
    to = Math.min(all.length, from + VIEW + 14);
  }
  const seen = all.slice(from, to);
  rememberSeen(seen);
  const parts = seen.map((name) => [name, line(name), fill(name)]);
  if (from > 0) parts.unshift(gap('before', from));
  if (to < all.length) parts.push(gap('behind', all.length - to));
  if (all.length === 0) parts.push(['none', () => make('tr', {}, make('td', { colspan: COLUMNS.length }, 'none is found'))]);
  keyed(section.body, parts);
  if (isLong) mark(section.body.parentNode, 'aria-rowcount', String(all.length + 1));
};
const tables = () => {
  const all = names('target');
  const targets = wish.find ? all.filter((name) => backendsOf(after(name, 'target/')).some(isFound)) : all;
  const shownTargets = notable('tables', targets, TABLES, (name) => stateOf(rows.get(name)));
  keyed(byId('tables'), shownTargets.map((target) => [target, () => table(target), (section) => {
    const row = rows.get(target);
    const head = section.querySelector('h2');
    const state = stateOf(row);
    mark(head, 'data-state', state);
    say(head.firstChild, SHAPES[state] || '○');
    const { share, isBad } = lately(target);
    const facts = [row.reason, `${two(rate(target))} requests/s`, isBad ? `${share} errors` : '', `p99 ${time(row.times.p99_ms)}`,
      row.times.own_ms === undefined ? '' : `own ${time(row.times.own_ms)}`, `${row.active} in flight`, row.waiting > 0 ? `${row.waiting} wait in the queue` : ''];
    say(head.lastChild, facts.filter(Boolean).join(' · '));
    for (const th of section.querySelectorAll('th')) mark(th, 'aria-sort', th.dataset.key === wish.sort ? (wish.down === ['backend', 'why'].includes(wish.sort) ? 'descending' : 'ascending') : 'none');
    fillTable(target, section);
  }]));
  const none = wish.find && targets.length === 0 ? 'none is found' : '';
  say(byId('moretargets'), none || (targets.length > shownTargets.length ? `and ${targets.length - shownTargets.length} more targets, none of them worse: find their backends by name` : ''));
};
