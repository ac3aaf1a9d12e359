// What is shown, each time something was heard, and where the address of the page leads.

let hasShown = false;
const show = () => {
  const process = rows.get('process');
  if (!process) return;
  say(byId('who'), `${process.name} · ${process.version} · config ${process.config_number} · up ${span(up)}`);
  if (!isStale()) verdict();
  vitals();
  map();
  nodes();
  tables();
  panels();
  fillDetail();
  if (byId('question').open) asking?.();
  if (!hasShown) { hasShown = true; performance.mark('shown'); }
};

// The place behind `#`: the name of an object, and what the tables are sorted and searched by.
const address = (here) => {
  const wished = new URLSearchParams();
  if (wish.sort) wished.set('sort', wish.down ? `-${wish.sort}` : wish.sort);
  if (wish.find) wished.set('find', wish.find);
  const text = wished.toString();
  return here || text ? `#${here}${text ? `?${text}` : ''}` : location.pathname;
};
const keepWish = () => history.replaceState(null, '', address(location.hash.replace(/^#/, '').split('?')[0]));
const go = () => {
  const [encoded, wished] = location.hash.replace(/^#/, '').split('?');
  const asked = new URLSearchParams(wished || '');
  const sorted = asked.get('sort') || '';
  if (wished !== undefined) {
    [wish.sort, wish.down, wish.find] = [sorted.replace(/^-/, ''), sorted.startsWith('-'), asked.get('find') || ''];
    if (byId('find').value !== wish.find) byId('find').value = wish.find;
  }
  let name = '';
  try { name = decodeURIComponent(encoded); } catch { /* somebody has typed it */ }
  if (name.startsWith('request/')) openRequest(after(name, 'request/')).catch(() => {});
  else if (name.startsWith('panel/')) { hideDetail(); const one = byId(name); if (one) { one.open = true; one.firstChild.focus(); } }
  else if (isObject(name)) openDetail(name);
  else hideDetail();
  if (rows.size > 0) show();
};
addEventListener('hashchange', go);
// A node of the map opens its page and leaves the map where it is.
byId('map').addEventListener('click', (event) => {
  const node = event.target.closest('a.node');
  if (!node || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, '', node.getAttribute('href'));
  node.focus({ preventScroll: true });
  go();
});
byId('find').addEventListener('input', (event) => { wish.find = event.target.value; keepWish(); tables(); });
addEventListener('keydown', (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
  if (event.key === 'Escape' && !isTyping && !byId('question').open) closeDetail();
  if (event.key === '/' && !isTyping && !byId('question').open) { event.preventDefault(); byId('find').focus(); }
});
// It is told a little later: by then another one may be asked.
byId('question').addEventListener('close', () => { if (!byId('question').open) asking = null; });
addEventListener('resize', () => requestAnimationFrame(show));
setInterval(live, 500);
setInterval(() => { if (!document.hidden && byId('login').hidden && rows.size > 0) requestsNow().catch(() => {}); }, 2000);
setInterval(() => { if (!document.hidden && open && step === 1) plot().catch(() => {}); }, 1000);
setInterval(() => { if (!document.hidden && open && step === 10) plot().catch(() => {}); }, 10000);
setInterval(glance, GLANCE_MS);
// What the address names may be opened once there is something.
const first = setInterval(() => { if (rows.size > 0) { clearInterval(first); go(); requestsNow().catch(() => {}); } }, 50);
enter();
