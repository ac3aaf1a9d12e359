// Requests that are over and failed, were tried again or were slow: each with where its time went.

const KEPT = 5; // requests in the list
const requestsNow = async () => {
  const answer = await fetch(`api/v1/requests?last=${12 * KEPT}`);
  if (!answer.ok) return;
  // Refusals may be many: they are shown where there is room.
  const all = (await answer.json()).requests;
  const kept = [...all.filter((one) => one.kept_for !== 'refused'), ...all.filter((one) => one.kept_for === 'refused')].slice(0, KEPT);
  const requests = kept.sort((a, b) => b.time_ms - a.time_ms);
  const longest = Math.max(1, ...requests.map((one) => one.duration_ms));
  say(byId('norequests'), requests.length === 0 ? 'none has failed, was tried again or was slow' : '');
  keyed(byId('requests'), requests.map((one) => [one.id, () => {
    const bar = drawn('svg', { viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true', class: 'bar' });
    bar.append(drawn('rect', { height: '4', width: '0' }));
    return make('li', { 'data-status': String(one.status ?? '').slice(0, 1) },
      make('a', { href: place(`request/${one.id}`) },
        make('time', {}, clock(one.time_ms)), ' ', make('b', {}, `${one.status ?? one.kind}`), ' ',
        make('span', {}, `${one.method ?? ''} ${one.path ?? one.host ?? one.listener}`), ' ',
        make('small', {}, [time(one.duration_ms), one.cause, one.attempts > 1 ? `${one.attempts} attempts` : ''].filter(Boolean).join(' · '))), bar);
  }, (li) => mark(li.lastChild.firstChild, 'width', ((100 * one.duration_ms) / longest).toFixed(1))]));
};

// One of them in full: the sentence of `evenkeel why`, and each step where it was in time.
const openRequest = async (id) => {
  const name = `request/${id}`;
  const box = byId('detail');
  if (open === null) backTo = document.activeElement;
  open = name;
  const answer = await fetch(`api/v1/requests/${segment(id)}`);
  if (open !== name) return;
  const head = (title) => make('div', { class: 'head' }, make('h2', { tabindex: '-1', id: 'detailname' }, make('span', {}, 'Request '), make('b', {}, title)),
    make('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: closeDetail }, '✕'));
  box.charts = null;
  box.hidden = false;
  document.body.classList.add('detailed');
  if (!answer.ok) {
    box.replaceChildren(head(id), make('p', {}, await problemOf(answer)));
    return;
  }
  const story = await answer.json();
  const longest = Math.max(story.duration_ms, 0.001);
  const steps = story.steps.map((one) => {
    const bar = drawn('svg', { viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true', class: 'bar' });
    const width = Math.max(0.6, (100 * (one.took_ms ?? 0)) / longest);
    bar.append(drawn('rect', { x: Math.min(99.4, Math.max(0, (100 * one.at_ms) / longest)).toFixed(2), width: width.toFixed(2), height: '6' }));
    const when = one.at_ms < 0 ? `${time(-one.at_ms)} before` : `at ${time(one.at_ms)}`;
    return make('li', {}, make('b', {}, one.step.replace(/_/g, ' ')), ' ', make('span', {}, one.text), ' ', make('small', {}, one.took_ms === null ? when : `${when}, took ${time(one.took_ms)}`), bar);
  });
  const facts = [['when', new Date(story.time_ms).toLocaleString()], ['client', story.client], ['asked', `${story.method ?? story.kind} ${story.host ?? ''}${story.path ?? ''}`],
    ['way', [story.listener, story.route, story.target, story.backend].filter(Boolean).join(' → ')], ['status', story.status], ['took', time(story.duration_ms)], ['kept', story.kept_for.replace(/_/g, ' ')], ...story.headers.map((one) => [one.name, one.value])];
  box.replaceChildren(head(id),
    make('p', { class: 'verdict' }, story.verdict),
    make('dl', {}, ...facts.filter(([, text]) => text !== null && text !== undefined).map(([label, text]) => make('div', {}, make('dt', {}, label), make('dd', {}, String(text))))),
    make('h3', {}, 'Where its time went'), make('ol', { class: 'steps' }, ...steps),
    make('h3', {}, 'The same in a terminal'), copied(`evenkeel why ${word(id)}`));
  byId('detailname').focus({ preventScroll: true });
};
