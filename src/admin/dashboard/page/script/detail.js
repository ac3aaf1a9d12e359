// One object in full: what is known of it, its last five minutes or hour, and what can be done about it.

let open = null; // the row that is shown
let step = 1; // seconds between two points of its charts
let backTo = null; // what had the focus before

const fact = (list, label, text) => { if (text !== undefined && text !== null && text !== '') list.push([label, text]); };
const factsOf = (name, row) => {
  const list = [];
  const kind = kindOf(name);
  if (row.state) fact(list, 'state', `${row.state}, for ${span(at - row.since_ms)}`);
  fact(list, 'why', row.source ? `${row.reason} (${row.source})` : row.reason);
  fact(list, 'address', row.address);
  if (kind === 'listener') {
    fact(list, 'speaks', row.protocol);
    fact(list, 'addresses', row.addresses.join(', '));
    fact(list, 'connections', `${whole(row.connections)}${row.limit ? ` of ${whole(row.limit)}` : ''}`);
    fact(list, 'routes', row.routes.join(', '));
    for (const one of row.certificates) fact(list, 'certificate', `${one.names.join(', ')} ${ending(one)}`);
  }
  if (kind === 'route') fact(list, 'leads to', row.targets.length ? row.targets.join(', ') : `nowhere: it ${row.does}s by itself`);
  if (kind === 'target') {
    fact(list, 'balances by', row.balance);
    fact(list, 'speaks', row.protocol);
    fact(list, 'in flight', `${whole(row.active)}${row.max_in_flight ? `, at most ${row.max_in_flight} at a backend` : ''}`);
    fact(list, 'in its queue', whole(row.waiting));
    fact(list, 'wants', row.scale ? (row.scale === 'out' ? 'more backends' : 'fewer backends') : '');
  }
  if (kind === 'backend') {
    fact(list, 'in flight', whole(row.active));
    fact(list, 'weight', `${row.weight}${row.state === 'up' ? `: ${row.share} % of new requests` : ''}`);
    fact(list, 'zone', row.zone);
    if (row.priority > 0) fact(list, 'priority', row.priority === 255 ? 'a backup' : String(row.priority));
  }
  fact(list, 'requests', `${whole(row.requests)}, ${whole(row.errors)} of them errors, since evenkeel began`);
  if (row.times) {
    fact(list, 'first byte', row.times.p50_ms === undefined ? '' : `p50 ${time(row.times.p50_ms)}, p99 ${time(row.times.p99_ms)}`);
    fact(list, 'evenkeel’s own', row.times.own_ms === undefined ? '' : `${time(row.times.own_ms)} of a request, mean`);
  }
  return list;
};

const KINDS = { listener: 'Listener', route: 'Route', target: 'Target', backend: 'Backend' };
const titleOf = (name) => after(name, `${kindOf(name)}/`);
// Whether a row is one that has a page of its own.
const isObject = (name) => Boolean(KINDS[kindOf(name)]) && name.includes('/');

const build = (name) => {
  const kind = kindOf(name);
  const box = byId('detail');
  const spans = make('div', { class: 'spans', role: 'group', 'aria-label': 'Time span' },
    ...[[1, '5 min'], [10, '1 h']].map(([seconds, label]) => make('button', { type: 'button', 'aria-pressed': String(step === seconds), onclick: (event) => {
      step = seconds;
      for (const one of spans.children) mark(one, 'aria-pressed', String(one === event.target));
      plot().catch(() => {});
    } }, label)));
  box.charts = [chart('Requests and errors per second', two), chart('First byte: p50 and p99', time), chart(kind === 'listener' ? 'Connections' : 'In flight', two)];
  if (kind === 'listener' || kind === 'route') box.charts.splice(1, 1);
  if (kind === 'route') box.charts.splice(1, 1);
  const commands = commandsOf(name);
  box.replaceChildren(
    make('div', { class: 'head' },
      make('h2', { tabindex: '-1', id: 'detailname' }, shape(), make('span', {}, `${KINDS[kind]} `), make('b', {}, titleOf(name))),
      make('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: closeDetail }, '✕')),
    make('dl'),
    actionsOf(name),
    spans, ...box.charts,
    make('h3', {}, 'The same in a terminal'), ...commands.map(copied));
  fillDetail();
};
const commandsOf = (name) => {
  const own = word(titleOf(name));
  if (kindOf(name) === 'backend') return [`evenkeel status ${own}`, `evenkeel why --last --target ${word(targetOf(name))}`];
  if (kindOf(name) === 'target') return [`evenkeel status ${own}`];
  return ['evenkeel status'];
};
const fillDetail = () => {
  const row = rows.get(open);
  const box = byId('detail');
  if (!box.charts) return;
  turn(box.querySelector('.actions'), 'hidden', !row || kindOf(open) !== 'backend');
  if (!row) {
    const head = box.querySelector('h2');
    mark(head, 'data-state', 'unknown');
    say(head.firstChild, SHAPES.unknown);
    return keyed(box.querySelector('dl'), [['gone', () => make('div', {}, make('dt', {}, 'state'), make('dd', {}, 'it is not there'))]]);
  }
  const state = kindOf(open) === 'target' ? stateOf(row) : row.state || stateBehind(row);
  const head = box.querySelector('h2');
  mark(head, 'data-state', state);
  say(head.firstChild, SHAPES[state] || '○');
  keyed(box.querySelector('dl'), factsOf(open, row).map(([label, text], number) => [
    `${label} ${number}`, () => make('div', {}, make('dt', {}, label), make('dd')), (one) => say(one.lastChild, text)]));
};
const plot = async () => {
  const box = byId('detail');
  const [name, seconds, charts] = [open, step, box.charts];
  if (!name || !charts) return;
  const answer = await fetch(`api/v1/history?of=${encodeURIComponent(name)}&step=${seconds}`);
  const row = answer.ok ? (await answer.json()).rows[name] : null;
  if (!row || open !== name || step !== seconds || box.charts !== charts) return;
  const steps = seconds === 1 ? 300 : 360;
  charts[0].plot([['requests', row.requests.map((count) => count / seconds)], ['errors', row.errors.map((count) => count / seconds)]], steps);
  const rest = charts.slice(1);
  if (rest.length === 2) rest[0].plot([['p50', row.p50_ms], ['p99', row.p99_ms]], steps);
  if (rest.length > 0) rest[rest.length - 1].plot([['now', row.active]], steps);
};

const openDetail = (name) => {
  const box = byId('detail');
  if (open === name) return;
  if (open === null) backTo = document.activeElement;
  open = name;
  box.hidden = false;
  document.body.classList.add('detailed');
  build(name);
  plot().catch(() => {});
  byId('detailname').focus({ preventScroll: true });
};
const hideDetail = () => {
  if (open === null) return;
  open = null;
  byId('detail').hidden = true;
  document.body.classList.remove('detailed');
  if (backTo?.isConnected) backTo.focus({ preventScroll: true });
};
// The same by whoever looks at it: the address is that of what is left.
const closeDetail = () => {
  if (open === null) return;
  hideDetail();
  history.pushState(null, '', address(''));
};
