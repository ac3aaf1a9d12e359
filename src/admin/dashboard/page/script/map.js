// Where requests go: listeners, routes, targets, backends, and lines as thick as what goes along them.

const FEW = 12; // backends of a target that have names on the map; with more of them there are marks only
const MARKS = 240; // marks of one target
const NODES = 14; // listeners, routes or targets that are shown

const node = (name, label) => () => make('li', {}, make('a', { class: 'node', href: place(name) }, shape(), make('b', {}, label), make('i'), make('span', { class: 'unseen' })));
const tell = (name, label, state, reason) => (item) => {
  const one = item.firstChild;
  const [form, , figure, unseen] = one.children;
  mark(one, 'data-state', state);
  say(form, SHAPES[state] || '○');
  say(figure, `${two(rate(name))}/s`);
  const word = state === 'hurt' ? 'up, and lacks some' : state;
  mark(one, 'title', `${label} is ${word}${reason ? `: ${reason}` : ''}`);
  say(unseen, `, ${word}${reason && state !== 'up' ? `, ${reason}` : ''}`);
};
const BAD = { down: 0, backups: 1, hurt: 1, draining: 2, unknown: 3, up: 4 };
// Those that are shown of many: the worst first, then those that were shown before, then those with the most to do; in their usual order.
const chosen = new Map();
const notable = (place, all, most, state) => {
  if (all.length <= most) return all;
  const before = chosen.get(place) || new Set();
  const order = [...all].sort((a, b) => BAD[state(a)] - BAD[state(b)] || before.has(b) - before.has(a) || rate(b) - rate(a));
  const kept = new Set(order.slice(0, most));
  chosen.set(place, kept);
  return all.filter((name) => kept.has(name));
};
const more = (kind, all, kept) => (all.length > kept.length
  ? [[`more/${kind}`, () => make('li', { class: 'more' }), (one) => say(one, `and ${all.length - kept.length} more`)]] : []);

// Which of the targets behind a listener or a route are not well.
const behind = (row) => row.targets.filter((target) => rows.has(`target/${target}`) && stateOf(rows.get(`target/${target}`)) !== 'up').join(', ');

const map = () => {
  const state = (name) => stateOf(rows.get(name));
  const listeners = notable('listeners', names('listener'), NODES, () => 'up');
  const shownRoutes = notable('routes', names('route'), NODES, () => 'up');
  // In the order of the file, which says which one takes a request.
  const order = new Map();
  for (const name of listeners) rows.get(name).routes.forEach((route, number) => order.set(`route/${after(name, 'listener/')}/${route}`, [name, number]));
  const routes = [...order.keys()].filter((name) => rows.has(name) && shownRoutes.includes(name));
  const all = [...new Set([...routes.flatMap((name) => rows.get(name).targets.map((one) => `target/${one}`)), ...names('target')])].filter((name) => rows.has(name));
  const targets = notable('targets', all, NODES, state);
  keyed(byId('listeners'), [...listeners.map((name) => [name, node(name, after(name, 'listener/')), tell(name, after(name, 'listener/'), stateBehind(rows.get(name)), behind(rows.get(name)))]),
    ...more('listener', names('listener'), listeners)]);
  keyed(byId('routes'), [...routes.map((name) => {
    const label = after(name, `route/${after(order.get(name)[0], 'listener/')}/`);
    const row = rows.get(name);
    return [name, node(name, label), tell(name, label, stateBehind(row), row.targets.length ? behind(row) : `it ${row.does}s by itself`)];
  }), ...more('route', names('route'), routes)]);
  keyed(byId('targets'), [...targets.map((name) => [name, node(name, after(name, 'target/')), tell(name, after(name, 'target/'), state(name), rows.get(name).reason)]),
    ...more('target', all, targets)]);
  const fit = targets.reduce((count, name) => count + backendsOf(after(name, 'target/')).length, 0) <= 2 * FEW ? FEW : 4;
  const places = targets.flatMap((target) => {
    const own = backendsOf(after(target, 'target/'));
    if (own.length <= fit) {
      return own.map((name) => [name, node(name, backendOf(name)), tell(name, backendOf(name), rows.get(name).state, rows.get(name).reason)]);
    }
    return [[`group/${target}`, () => make('li', { class: 'group' }, make('a', { class: 'node', href: place(target) })), (item) => crowd(item.firstChild, target, own)]];
  });
  keyed(byId('backends'), places);
  lines(listeners, routes, targets, order, fit);
};

// Many backends as marks: those that are not well stand first.
const crowd = (one, target, own) => {
  const bad = own.filter((name) => rows.get(name).state !== 'up');
  const marked = [...bad, ...own.filter((name) => rows.get(name).state === 'up')].slice(0, MARKS);
  while (one.children.length > marked.length) one.lastChild.remove();
  while (one.children.length < marked.length) one.append(make('span', { class: 'dot', 'aria-hidden': 'true' }));
  marked.forEach((name, number) => {
    const dot = one.children[number];
    const state = rows.get(name).state;
    mark(dot, 'data-state', state);
    say(dot, SHAPES[state] || '○');
  });
  const text = `${own.length} backends of ${after(target, 'target/')}, ${bad.length} of them not up`;
  mark(one, 'aria-label', text);
  mark(one, 'title', text);
};

let drawnFor = '';
const lines = (listeners, routes, targets, order, fit) => {
  const picture = byId('map').querySelector('svg');
  if (getComputedStyle(picture).display === 'none') return;
  // Where things stand changes seldom, and asking for it costs a layout.
  const shape = `${innerWidth} ${byId('map').clientHeight} ${fit} ${[...listeners, ...routes, ...targets, ...byId('backends').kept.keys()].join(' ')}`;
  if (shape !== drawnFor) {
    drawnFor = shape;
    const base = byId('map').getBoundingClientRect();
    picture.spots = new Map();
    for (const list of ['listeners', 'routes', 'targets', 'backends']) {
      for (const [name, one] of byId(list).kept || []) {
        const box = one.getBoundingClientRect();
        picture.spots.set(name, [box.left - base.left, box.right - base.left, (box.top + box.bottom) / 2 - base.top]);
      }
    }
  }
  const ways = [];
  const way = (key, from, to, flow, state) => {
    const [start, end] = [picture.spots.get(from), picture.spots.get(to)];
    if (!start || !end) return;
    const [x1, y1, x2, y2] = [start[1], start[2], end[0], end[2]];
    const middle = (x1 + x2) / 2;
    ways.push([key, () => drawn('path'), (path) => {
      mark(path, 'd', `M${x1.toFixed(0)} ${y1.toFixed(0)}C${middle.toFixed(0)} ${y1.toFixed(0)} ${middle.toFixed(0)} ${y2.toFixed(0)} ${x2.toFixed(0)} ${y2.toFixed(0)}`);
      mark(path, 'stroke-width', flow > 0 ? Math.min(14, 1.5 + 2.4 * Math.log10(1 + flow)).toFixed(1) : '1');
      mark(path, 'data-rate', flow > 0 ? '1' : '0');
      mark(path, 'data-state', state);
    }]);
  };
  for (const name of routes) {
    const [listener] = order.get(name);
    way(`${listener} ${name}`, listener, name, rate(name), 'up');
    rows.get(name).targets.forEach((target, number) => {
      const row = rows.get(`target/${target}`);
      if (row) way(`${name} ${target}`, name, `target/${target}`, (rate(name) * rows.get(name).parts[number]) / 100, row.state);
    });
  }
  for (const target of targets) {
    const own = backendsOf(after(target, 'target/'));
    if (own.length > fit) way(`group/${target}`, target, `group/${target}`, rate(target), rows.get(target).state);
    else for (const name of own) way(name, target, name, rate(name), rows.get(name).state);
  }
  keyed(picture, ways);
};
