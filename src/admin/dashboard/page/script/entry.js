// Who may look, and the stream of what is shown.

const STALE_MS = 3000;
const QUIET_MS = 5000; // hidden for so long, a page gives its stream back: a browser has six for all its pages
const GLANCE_MS = 15000; // and looks that often, for its title

let refused = ''; // why nothing is told
let source = null;

const isStale = () => heard === 0 || performance.now() - heard > STALE_MS;
const live = () => {
  const age = performance.now() - heard;
  mark(byId('live'), 'data-state', isStale() ? 'stale' : 'live');
  say(byId('live'), !byId('login').hidden ? 'logged out' : refused || (heard === 0 ? 'connecting' : isStale() ? `no news for ${span(age)}` : 'live'));
  document.body.classList.toggle('stale', isStale() && heard > 0);
  if (isStale() && heard > 0 && !document.hidden) {
    // What was well may be well no more.
    mark(byId('verdict'), 'data-weight', 'wait');
    const [form, text] = byId('says').children;
    say(form, SHAPES.wait);
    say(text, 'Nothing is heard from evenkeel any more');
    document.title = '○ no news – evenkeel';
  }
};

// What whoever looks may do now.
const rights = async () => {
  const answer = await send('GET', 'api/v1/session');
  if (!answer.ok) return;
  const session = await answer.json();
  grantAll(session.scope);
  byId('leave').hidden = session.ends_ms === null;
};
const listen = () => {
  source?.close();
  source = new EventSource('api/v1/stream?nodes=on');
  source.addEventListener('whole', (event) => { take(event, true); rights().catch(() => {}); });
  source.addEventListener('changes', (event) => take(event, false));
  // A refusal ends it for good; what only breaks is begun again by the browser.
  source.addEventListener('error', () => { if (source?.readyState === EventSource.CLOSED) setTimeout(enter, 1000); });
};
const glance = async () => {
  if (!document.hidden) return;
  if (source || !byId('login').hidden) return;
  try {
    const answer = await fetch('api/v1/stream');
    if (!answer.ok) throw new Error();
    for (const [name, row] of Object.entries((await answer.json()).rows)) rows.set(name, row);
    sort();
    verdict();
  } catch {
    document.title = '○ no news – evenkeel';
  }
};
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    setTimeout(() => { if (document.hidden) { source?.close(); source = null; } }, QUIET_MS);
    return;
  }
  if (!source && byId('login').hidden) { up = 0; listen(); }
  show();
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
    const answer = await send('GET', 'api/v1/session');
    const session = await answer.json();
    if (!answer.ok) throw new Error(session.detail);
    refused = '';
    grantAll(session.scope);
    const isIn = scope !== 'open';
    doors(isIn, session.ends_ms !== null);
    if (isIn) listen();
  } catch (error) {
    refused = error instanceof TypeError ? '' : error.message;
    setTimeout(enter, 1000);
  }
};
byId('login').addEventListener('submit', async (event) => {
  event.preventDefault();
  const input = byId('token');
  say(byId('refused'), '');
  try {
    const answer = await send('POST', 'api/v1/session', { token: input.value });
    if (answer.ok) {
      input.value = '';
      await enter();
      byId('says').focus();
    } else {
      say(byId('refused'), `It was not taken: ${(await answer.json()).detail}`);
      input.select();
    }
  } catch {
    say(byId('refused'), 'Nobody answers.');
  }
});
byId('leave').addEventListener('click', async () => {
  try {
    const answer = await send('DELETE', 'api/v1/session');
    if (!answer.ok) return toast(`Not logged out: ${await problemOf(answer)}`);
    source?.close();
    await enter();
  } catch {
    toast('Not logged out: nobody answers.');
  }
});
