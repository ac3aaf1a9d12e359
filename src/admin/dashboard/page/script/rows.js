// What is known: rows with names, which come once a second, and what came of each of them of late.

const LONG = 300; // seconds of history of everything but backends
const SHORT = 60; // of backends: as many as a table shows
const LATELY = 10; // seconds that shares of errors are about

const rows = new Map();
const tracks = new Map();
let kinds = new Map(); // names of rows by what stands before the first slash, sorted
let at = 0; // the time of evenkeel's clock, in milliseconds since 1970
let up = 0; // the same by one that nobody sets
let heard = 0; // when something was heard last, by the clock of this page

const after = (name, front) => name.slice(front.length);
const kindOf = (name) => name.split('/', 1)[0];
const names = (kind) => kinds.get(kind) || [];
// A backend's row has the name of its target before the first slash: no target has one in its name.
const targetOf = (name) => after(name, 'backend/').split('/', 1)[0];
const backendOf = (name) => after(name, 'backend/').slice(targetOf(name).length + 1);
const backendsOf = (() => {
  let of = null;
  let lists = new Map();
  return (target) => {
    const all = names('backend');
    if (of !== all) {
      of = all;
      lists = new Map();
      for (const name of all) {
        const own = targetOf(name);
        if (!lists.has(own)) lists.set(own, []);
        lists.get(own).push(name);
      }
    }
    return lists.get(target) || [];
  };
})();
// A target that is up and lacks some of its backends.
const stateOf = (row) => (row.state === 'up' && row.left < row.of ? 'hurt' : row.state);
// What leads to several is as well as these are.
const allOf = (states) => {
  if (states.length > 0 && states.every((state) => state === 'down')) return 'down';
  return states.some((state) => state === 'down' || state === 'backups' || state === 'hurt') ? 'hurt' : 'up';
};
const stateBehind = (row) => allOf(row.targets.map((target) => rows.get(`target/${target}`)).filter(Boolean).map(stateOf));

const sort = () => {
  kinds = new Map();
  for (const name of rows.keys()) {
    const kind = kindOf(name);
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(name);
  }
  for (const list of kinds.values()) list.sort();
};

const room = (name) => (name.startsWith('backend/') ? SHORT : LONG);
const push = (list, value, most) => { list.push(value); if (list.length > most) list.shift(); };
// The same of a node, whose numbers come when it has said them: over its own time, and as before until it says others.
const followNode = (row, track, seconds) => {
  const own = (row.up_ms - track.up) / 1000;
  if (own > 0) {
    track.rate = Math.max(0, row.requests - track.requests) / own;
    track.bad = Math.max(0, row.errors - track.errors) / own;
  }
  if (own !== 0) [track.requests, track.errors, track.up] = [row.requests, row.errors, row.up_ms];
  if (seconds > 0 && track.rate !== undefined) {
    push(track.rates, track.rate, SHORT);
    push(track.bads, track.bad, SHORT);
    push(track.lates, row.times.p99_ms || 0, SHORT);
  }
};
// What came of a row between this frame and the one before, per second.
const follow = (seconds) => {
  for (const [name, row] of rows) {
    if (row.requests === undefined || typeof row.requests === 'object' || row.state === 'unknown' && kindOf(name) === 'node') {
      // What a node has said before a pause says nothing of the seconds behind it.
      if (kindOf(name) === 'node') tracks.delete(name);
      continue;
    }
    let track = tracks.get(name);
    if (!track) tracks.set(name, (track = { requests: row.requests, errors: row.errors || 0, up: row.up_ms, rates: [], bads: [], lates: [] }));
    if (row.up_ms !== undefined) {
      followNode(row, track, seconds);
      continue;
    }
    const came = Math.max(0, row.requests - track.requests);
    const bad = Math.max(0, (row.errors || 0) - track.errors);
    track.requests = row.requests;
    track.errors = row.errors || 0;
    if (seconds > 0) {
      push(track.rates, came / seconds, room(name));
      push(track.bads, bad / seconds, room(name));
    }
  }
  for (const name of tracks.keys()) if (!rows.has(name)) tracks.delete(name);
};
const sum = (list, last) => list.slice(-last).reduce((all, one) => all + one, 0);
// Over three seconds: of few requests one second says little.
const rate = (name) => {
  const rates = tracks.get(name)?.rates || [];
  return sum(rates, 3) / Math.max(1, Math.min(3, rates.length));
};
const badRate = (name) => {
  const bads = tracks.get(name)?.bads || [];
  return sum(bads, 3) / Math.max(1, Math.min(3, bads.length));
};
// The share of errors, and whether there are any, over the latest seconds.
const lately = (name) => {
  const track = tracks.get(name);
  if (!track) return { share: '–', isBad: false };
  const bad = sum(track.bads, LATELY);
  return { share: percent(bad, sum(track.rates, LATELY)), isBad: bad > 0 };
};

// What came before the page was there.
const remember = async (wanted) => {
  const of = wanted ? `?of=${encodeURIComponent(wanted.join(' '))}` : '';
  const answer = await fetch(`api/v1/history${of}`);
  if (!answer.ok) throw new Error(String(answer.status));
  for (const [name, row] of Object.entries((await answer.json()).rows)) {
    const track = tracks.get(name);
    if (!track || track.isKnown) continue;
    track.isKnown = true;
    const most = room(name);
    const before = (points, since) => points.slice(0, Math.max(0, points.length - since.length)).concat(since).slice(-most);
    track.bads = before(row.errors, track.bads);
    track.rates = before(row.requests, track.rates);
  }
};
const asked = new Set();
// Backends are many: what came of them is asked for once they are seen.
const rememberSeen = (seen) => {
  // No longer than a request's head may be.
  let left = 4000;
  const fresh = seen.filter((name) => {
    if (asked.has(name) || tracks.get(name)?.isKnown) return false;
    left -= encodeURIComponent(name).length + 3;
    return left > 0;
  }).slice(0, 100);
  if (fresh.length === 0) return;
  fresh.forEach((name) => asked.add(name));
  remember(fresh).catch(() => fresh.forEach((name) => asked.delete(name)));
};

const take = (event, isWhole) => {
  const said = JSON.parse(event.data);
  const born = rows.get('process')?.born;
  const seconds = up > 0 ? (said.up_ms - up) / 1000 : 0;
  const before = rows.size;
  if (isWhole) rows.clear();
  let isSame = !isWhole && !(said.gone && said.gone.length > 0);
  for (const [name, row] of Object.entries(said.rows)) rows.set(name, row);
  for (const name of said.gone || []) rows.delete(name);
  isSame = isSame && rows.size === before;
  if (!isSame) sort();
  // Another process counts from zero.
  const isAnother = born !== undefined && rows.get('process')?.born !== born;
  // Nor is it known what came in a pause: the history has that.
  if (isAnother || isWhole) { tracks.clear(); asked.clear(); }
  at = said.at_ms;
  up = said.up_ms;
  heard = performance.now();
  follow(isAnother || isWhole || seconds < 0 ? 0 : seconds);
  if (isWhole) remember(null).catch(() => {});
  if (!document.hidden) requestAnimationFrame(show);
};
