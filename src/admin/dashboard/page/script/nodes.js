// The nodes of a cluster: what each has to do. What another one has to do it says once it is looked at, from then on.

const NODE_COLUMNS = ['node', 'requests/s', 'requests, last minute', 'errors', 'p50', 'p99', 'p99, last minute', 'in flight', 'owns', 'why'];
const nodeLine = (name) => () => {
  const cells = NODE_COLUMNS.map((label, number) => (number ? make('td') : make('th', { scope: 'row' })));
  cells[0].append(shape(), make('b', {}, after(name, 'node/')), ' ', make('small'));
  cells[2].append(spark(SHORT));
  cells[6].append(spark(SHORT));
  return make('tr', { id: name }, ...cells);
};
const nodeFill = (name) => (tr) => {
  const row = rows.get(name);
  const { children: cells } = tr;
  const isHeard = row.requests !== undefined;
  const { share, isBad } = lately(name);
  mark(cells[0], 'data-state', row.state);
  say(cells[0].firstChild, SHAPES[row.state] || '○');
  say(cells[0].lastChild, [row.own ? 'this one' : '', row.zone || '', row.version].filter(Boolean).join(' · '));
  say(cells[1], isHeard ? two(rate(name)) : '–');
  draw(cells[2].firstChild, tracks.get(name)?.rates || [], SHORT, tracks.get(name)?.bads);
  say(cells[3], share);
  mark(cells[3], 'class', isBad ? 'error' : '');
  say(cells[4], time(row.times?.p50_ms));
  say(cells[5], time(row.times?.p99_ms));
  draw(cells[6].firstChild, tracks.get(name)?.lates || [], SHORT);
  say(cells[7], isHeard ? whole(row.active) : '–');
  say(cells[8], row.owned === null ? '–' : whole(row.owned));
  say(cells[9], row.state === 'up' ? (isHeard ? '' : 'nothing was heard of its load yet') : `${row.state}: ${row.reason}`);
};
const nodes = () => {
  const all = names('node');
  const cluster = rows.get('cluster');
  const section = byId('nodes');
  turn(section, 'hidden', !cluster);
  if (!cluster) return;
  const [head, wide] = section.children;
  say(head.firstChild, `Cluster ${cluster.name} `);
  const standing = cluster.standing === 'member' ? '' : `this node is ${cluster.standing}${cluster.reason ? `: ${cluster.reason}` : ''}`;
  const refuses = cluster.store_refuses ? `its store takes no changes: ${cluster.store_refuses}` : '';
  say(head.lastChild, [many(all.length, 'node', 'nodes'), standing, refuses].filter(Boolean).join(' · '));
  if (!wide.firstChild) {
    wide.append(make('table', {}, make('thead', {}, make('tr', {}, ...NODE_COLUMNS.map((label) => make('th', { scope: 'col' }, label)))), make('tbody')));
  }
  keyed(wide.firstChild.lastChild, all.map((name) => [name, nodeLine(name), nodeFill(name)]));
};
