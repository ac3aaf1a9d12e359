'use strict';
// What is shown comes as rows with names, once a second. All text is set as text: nothing here makes markup.
(() => {
  const SECONDS = 300; // of history
  const SPARK = 60; // seconds of a sparkline
  const STALE_MS = 3000;
  const MANY = 12; // backends of a target from which on the map shows marks only
  const SHAPES = { up: '●', draining: '◐', backups: '◐', hurt: '◐', down: '✕', unknown: '○' };
  // A target that is up and lacks some of its backends.
  const stateOf = (row) => (row.state === 'up' && row.left < row.of ? 'hurt' : row.state);

  const rows = new Map();
  const tracks = new Map();
  let at = 0;
  let heard = 0;
  let refused = ''; // why nothing is told

  const byId = (id) => document.getElementById(id);
  const SVG = 'http' + '://www.w3.org/2000/svg';

  const make = (tag, fields, ...inside) => {
    const one = document.createElement(tag);
    for (const [name, value] of Object.entries(fields || {})) one.setAttribute(name, value);
    one.append(...inside);
    return one;
  };
  const drawn = (tag) => document.createElementNS(SVG, tag);
  // Sets a text if it is another one.
  const say = (one, text) => { if (one.textContent !== text) one.textContent = text; };
  const mark = (one, name, value) => { if (one.getAttribute(name) !== value) one.setAttribute(name, value); };

  // Two digits, as exact as it is known.
  const two = (value) => {
    if (!(value > 0)) return '0';
    if (value >= 1e6) return `${two(value / 1e6)} M`;
    if (value >= 1e4) return `${two(value / 1e3)} k`;
    const digits = value >= 100 ? 0 : value >= 10 ? 0 : value >= 1 ? 1 : 2;
    return value.toFixed(digits);
  };
  const time = (ms) => {
    if (ms === undefined || ms === null) return '–';
    const of = (value) => (value >= 10 ? String(Number(value.toPrecision(2))) : value.toPrecision(2));
    if (ms >= 1000) return `${of(ms / 1000)} s`;
    return ms >= 1 ? `${of(ms)} ms` : `${of(ms * 1000)} µs`;
  };
  const span = (ms) => {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
    return `${Math.floor(seconds / 86400)} d`;
  };
  const percent = (part, all) => {
    if (!(all > 0) || !(part > 0)) return '–';
    const share = (100 * part) / all;
    return share < 0.1 ? '< 0.1 %' : `${share >= 10 ? share.toFixed(0) : share.toFixed(1)} %`;
  };

  const after = (name, front) => name.slice(front.length);
  const names = (kind) => [...rows.keys()].filter((name) => name.startsWith(kind)).sort();
  // A backend's row has the name of its target before the first slash: no target has one in its name.
  const targetOf = (name) => after(name, 'backend/').split('/', 1)[0];
  const backendOf = (name) => after(name, 'backend/').slice(targetOf(name).length + 1);

  // What came of a row between this frame and the one before, per second.
  const follow = (seconds) => {
    for (const [name, row] of rows) {
      if (row.requests === undefined) continue;
      let track = tracks.get(name);
      if (!track) tracks.set(name, (track = { requests: row.requests, errors: row.errors, rates: [], rate: 0, bad: 0 }));
      const came = Math.max(0, row.requests - track.requests);
      const bad = Math.max(0, row.errors - track.errors);
      track.requests = row.requests;
      track.errors = row.errors;
      if (seconds > 0) {
        track.rate = came / seconds;
        track.bad = bad / seconds;
        track.rates.push(track.rate);
        if (track.rates.length > SECONDS) track.rates.shift();
      }
    }
    for (const name of tracks.keys()) if (!rows.has(name)) tracks.delete(name);
  };
  const rate = (name) => tracks.get(name)?.rate ?? 0;

  const take = (event, isWhole) => {
    const said = JSON.parse(event.data);
    const seconds = at > 0 ? (said.at_ms - at) / 1000 : 0;
    const pid = rows.get('process')?.pid;
    if (isWhole) rows.clear();
    for (const [name, row] of Object.entries(said.rows)) rows.set(name, row);
    for (const name of said.gone || []) rows.delete(name);
    // Another process counts from zero.
    if (pid !== undefined && rows.get('process')?.pid !== pid) tracks.clear();
    at = said.at_ms;
    heard = performance.now();
    follow(seconds);
    if (!document.hidden) requestAnimationFrame(show);
  };

  // Keyed children of one place: made once, changed where they differ, in this order.
  const keyed = (place, kinds) => {
    const known = place.kept || (place.kept = new Map());
    let before = null;
    for (const [key, create, change] of kinds) {
      let one = known.get(key);
      if (!one) known.set(key, (one = create()));
      change(one);
      const next = before ? before.nextSibling : place.firstChild;
      if (next !== one) place.insertBefore(one, next);
      before = one;
    }
    const wanted = new Set(kinds.map(([key]) => key));
    for (const [key, one] of known) if (!wanted.has(key)) { one.remove(); known.delete(key); }
  };

  const WELL = { well: '●', note: '◐', hurt: '◐', down: '✕', wait: '○' };
  const verdict = () => {
    const troubles = rows.get('troubles') || [];
    const worst = troubles[0];
    const weight = worst ? worst.weight : 'well';
    const targets = names('target/');
    const [left, of] = targets.reduce(([left, of], name) => [left + rows.get(name).left, of + rows.get(name).of], [0, 0]);
    mark(byId('verdict'), 'data-weight', weight);
    const [shape, text] = byId('says').children;
    say(shape, WELL[weight]);
    say(text, worst ? worst.text : 'All is well');
    const more = byId('more');
    if (worst) {
      if (more.row !== worst.row) {
        more.row = worst.row;
        more.replaceChildren(make('span', { 'aria-hidden': 'true' }), make('a', { href: `#${encodeURIComponent(worst.row)}` }, 'look at it'));
      }
      say(more.firstChild, worst.since_ms ? `for ${span(at - worst.since_ms)} · ` : '');
    } else {
      more.row = null;
      const all = targets.reduce((sum, name) => sum + rate(name), 0);
      say(more, `${left} of ${of} backends get requests · ${two(all)} requests/s`);
    }
    const rest = troubles.length - 6;
    say(byId('rest'), rest > 0 ? `and ${rest} more` : '');
    keyed(byId('others'), troubles.slice(1, 6).map((one) => [
      `${one.row} ${one.text}`,
      () => make('li', { 'data-weight': one.weight }, make('span', { class: 'mark', 'aria-hidden': 'true' }, WELL[one.weight]),
        make('a', { href: `#${encodeURIComponent(one.row)}` }, one.text)),
      () => {},
    ]));
    document.title = `${worst ? `${WELL[weight]} ${worst.text}` : '● well'} – evenkeel`;
  };

  const node = (name, label) => () => {
    const one = make('a', { class: 'node', href: `#${encodeURIComponent(name)}` },
      make('span', { class: 'mark', 'aria-hidden': 'true' }), make('b', {}, label), make('i'));
    return one;
  };
  const change = (name, state) => (one) => {
    const row = rows.get(name);
    mark(one, 'data-state', state);
    const [shape, , figure] = one.children;
    say(shape, SHAPES[state] || '○');
    say(figure, `${two(rate(name))}/s`);
    mark(one, 'title', `${one.children[1].textContent} is ${state}${row.reason ? `: ${row.reason}` : ''}`);
  };
  const item = (create) => () => { const li = make('li'); li.append(create()); return li; };
  const within = (update) => (li) => update(li.firstChild);

  const map = () => {
    const listeners = names('listener/');
    const targets = names('target/');
    const backends = new Map(targets.map((name) => [after(name, 'target/'), []]));
    for (const name of names('backend/')) backends.get(targetOf(name))?.push(name);
    keyed(byId('listeners'), listeners.map((name) =>
      [name, item(node(name, after(name, 'listener/'))), within(change(name, 'up'))]));
    keyed(byId('targets'), targets.map((name) =>
      [name, item(node(name, after(name, 'target/'))), within(change(name, stateOf(rows.get(name))))]));
    const places = [];
    for (const [target, all] of backends) {
      if (all.length <= MANY) {
        for (const name of all) places.push([name, item(node(name, backendOf(name))), within(change(name, rows.get(name).state))]);
        continue;
      }
      places.push([`group/${target}`, () => make('li', { class: 'group' }), (li) =>
        keyed(li, all.map((name) => [name, node(name, backendOf(name)), change(name, rows.get(name).state)]))]);
    }
    keyed(byId('backends'), places);
    lines(listeners, targets, backends);
  };

  // Lines as thick as what goes along them.
  const lines = (listeners, targets, backends) => {
    const picture = byId('map').querySelector('svg');
    if (getComputedStyle(picture).display === 'none') return;
    const base = byId('map').getBoundingClientRect();
    const spot = (list, name) => byId(list).kept.get(name)?.getBoundingClientRect();
    const ways = [];
    const way = (key, from, to, flow, state) => {
      if (!from || !to) return;
      const [x1, y1] = [from.right - base.left, (from.top + from.bottom) / 2 - base.top];
      const [x2, y2] = [to.left - base.left, (to.top + to.bottom) / 2 - base.top];
      const middle = (x1 + x2) / 2;
      ways.push([key, () => drawn('path'), (path) => {
        mark(path, 'd', `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
        mark(path, 'stroke-width', flow > 0 ? Math.min(14, 1.5 + 2.2 * Math.log10(1 + flow)).toFixed(1) : '1');
        mark(path, 'data-rate', flow > 0 ? '1' : '0');
        mark(path, 'data-state', state);
      }]);
    };
    for (const name of listeners) {
      const own = rows.get(name).targets;
      for (const target of own) {
        const row = rows.get(`target/${target}`);
        if (row) way(`${name} ${target}`, spot('listeners', name), spot('targets', `target/${target}`), Math.min(rate(name), rate(`target/${target}`)), row.state);
      }
    }
    for (const [target, all] of backends) {
      const from = spot('targets', `target/${target}`);
      if (all.length > MANY) {
        way(`group/${target}`, from, spot('backends', `group/${target}`), rate(`target/${target}`), rows.get(`target/${target}`).state);
        continue;
      }
      for (const name of all) way(name, from, spot('backends', name), rate(name), rows.get(name).state);
    }
    keyed(picture, ways);
  };

  const HEADS = ['backend', 'requests/s', 'last minute', 'errors', 'p50', 'p99', 'in flight', 'weight', 'why'];
  const table = (target) => {
    const body = make('tbody');
    const head = make('tr', {}, ...HEADS.map((text) => make('th', { scope: 'col' }, text)));
    const one = make('section', {},
      make('h2', { id: target, tabindex: '-1' }, make('span', { class: 'mark', 'aria-hidden': 'true' }), after(target, 'target/'), ' ', make('small')),
      make('div', { class: 'wide', tabindex: '0', role: 'group', 'aria-label': `Backends of ${after(target, 'target/')}` }, make('table', {}, make('thead', {}, head), body)));
    one.body = body;
    return one;
  };
  const line = (name) => () => {
    const cells = HEADS.map(() => make('td'));
    cells[0].append(make('span', { class: 'mark', 'aria-hidden': 'true' }), make('span', {}, backendOf(name)), ' ', make('small'));
    const spark = drawn('svg');
    spark.setAttribute('viewBox', `0 0 ${SPARK} 20`);
    spark.setAttribute('preserveAspectRatio', 'none');
    spark.setAttribute('aria-hidden', 'true');
    spark.append(drawn('path'));
    cells[2].append(spark);
    return make('tr', { id: name, tabindex: '-1' }, ...cells);
  };
  const spark = (rates) => {
    const shown = rates.slice(-SPARK);
    const top = Math.max(1, ...shown);
    const start = SPARK - shown.length;
    return shown.map((value, place) => `${place ? 'L' : 'M'}${start + place} ${(18.5 - (17 * value) / top).toFixed(1)}`).join('');
  };
  const fill = (name) => (tr) => {
    const row = rows.get(name);
    const track = tracks.get(name);
    const cells = tr.children;
    mark(cells[0], 'data-state', row.state);
    say(cells[0].firstChild, SHAPES[row.state] || '○');
    say(cells[0].lastChild, row.state === 'up' ? '' : row.state);
    say(cells[1], two(track.rate));
    mark(cells[2].firstChild.firstChild, 'd', spark(track.rates));
    say(cells[3], percent(track.bad, track.rate));
    mark(cells[3], 'class', track.bad > 0 ? 'error' : '');
    say(cells[4], time(row.times?.p50_ms));
    say(cells[5], time(row.times?.p99_ms));
    say(cells[6], String(row.active));
    say(cells[7], String(row.weight));
    say(cells[8], row.state === 'up' ? '' : `${row.reason} (${row.source}), for ${span(at - row.since_ms)}`);
  };
  const tables = () => {
    keyed(byId('tables'), names('target/').map((target) => [target, () => table(target), (section) => {
      const row = rows.get(target);
      const head = section.querySelector('h2');
      const state = stateOf(row);
      mark(head, 'data-state', state);
      say(head.firstChild, SHAPES[state] || '○');
      const queue = row.waiting > 0 ? ` · ${row.waiting} wait in the queue` : '';
      const track = tracks.get(target);
      const bad = track.bad > 0 ? ` · ${percent(track.bad, track.rate)} errors` : '';
      say(head.lastChild, `${row.reason} · ${two(track.rate)} requests/s${bad} · p99 ${time(row.times?.p99_ms)} · ${row.active} in flight${queue}`);
      keyed(section.body, names(`backend/${after(target, 'target/')}/`).map((name) => [name, line(name), fill(name)]));
    }]));
  };

  const show = () => {
    const process = rows.get('process');
    if (!process) return;
    say(byId('who'), `${process.name} · ${process.version} · config ${process.config_number} · up ${span(at - process.started_ms)} · ${process.connections.open} connections`);
    verdict();
    map();
    tables();
  };

  const live = () => {
    const age = performance.now() - heard;
    const isStale = heard === 0 || age > STALE_MS;
    mark(byId('live'), 'data-state', isStale ? 'stale' : 'live');
    say(byId('live'), !byId('login').hidden ? 'logged out' : refused ? refused : heard === 0 ? 'connecting' : isStale ? `no news for ${span(age)}` : 'live');
    document.body.classList.toggle('stale', isStale && heard > 0);
    if (isStale && heard > 0) {
      // What was well may be well no more.
      mark(byId('verdict'), 'data-weight', 'wait');
      const [shape, text] = byId('says').children;
      say(shape, WELL.wait);
      say(text, 'Nothing is heard from evenkeel any more');
      document.title = '○ no news – evenkeel';
    }
  };

  let source = null;
  const listen = () => {
    source = new EventSource('api/v1/stream');
    source.addEventListener('whole', (event) => take(event, true));
    source.addEventListener('changes', (event) => take(event, false));
    // A refusal ends it for good; what only breaks is begun again by the browser.
    source.addEventListener('error', () => { if (source.readyState === EventSource.CLOSED) setTimeout(enter, 1000); });
  };

  const ask = (method, path, body) => fetch(path, {
    method,
    headers: body ? { 'Content-Type': 'application/json' } : {},
    body: body ? JSON.stringify(body) : undefined,
  });
  const doors = (isIn, hasSession) => {
    byId('login').hidden = isIn;
    byId('shown').hidden = !isIn;
    byId('leave').hidden = !hasSession;
    // Nothing of what was shown stays.
    if (!isIn && rows.size > 0) return location.reload();
    if (!isIn) byId('token').focus();
  };
  // Whether whoever looks may see anything at all.
  const enter = async () => {
    try {
      const answer = await ask('GET', 'api/v1/session');
      const session = await answer.json();
      if (!answer.ok) throw new Error(session.detail);
      refused = '';
      const isIn = session.scope !== 'open';
      doors(isIn, session.ends_ms !== null);
      if (isIn) listen();
    } catch (error) {
      refused = error instanceof TypeError ? '' : error.message;
      setTimeout(enter, 1000);
    }
  };
  byId('login').addEventListener('submit', async (event) => {
    event.preventDefault();
    const field = byId('token');
    say(byId('refused'), '');
    try {
      const answer = await ask('POST', 'api/v1/session', { token: field.value });
      if (answer.ok) {
        field.value = '';
        await enter();
      } else {
        say(byId('refused'), `It was not taken: ${(await answer.json()).detail}`);
        field.select();
      }
    } catch {
      say(byId('refused'), 'Nobody answers.');
    }
  });
  byId('leave').addEventListener('click', async () => {
    source?.close();
    try {
      await ask('DELETE', 'api/v1/session');
    } finally {
      await enter();
    }
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) show(); });
  addEventListener('resize', () => requestAnimationFrame(show));
  setInterval(live, 500);
  enter();
})();
