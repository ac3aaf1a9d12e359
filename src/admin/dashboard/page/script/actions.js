// What can be done, each thing behind a question that says in numbers what will come of it.

let scope = 'open'; // what who looks may do
const SCOPES = ['open', 'read', 'operate', 'configure'];
const may = (needed) => SCOPES.indexOf(scope) >= SCOPES.indexOf(needed);
const LACKS = (needed) => `this needs a token with the scope ${needed}`;

const send = (method, path, body, type) => fetch(path, {
  method,
  headers: body === undefined ? {} : { 'Content-Type': type || 'application/json' },
  body: body === undefined ? undefined : type ? body : JSON.stringify(body),
});
const segment = (text) => encodeURIComponent(text);
const problemOf = async (answer) => {
  try {
    const said = await answer.json();
    return [said.detail, ...(said.problems || []).map((one) => one.text)].filter(Boolean).join('\n');
  } catch {
    return `it was refused with ${answer.status}`;
  }
};

const outcomeOf = async (answer) => {
  try {
    const said = await answer.json();
    return (said.plan ?? said).verdict === 'unchanged' ? 'nothing has changed' : 'done';
  } catch {
    return 'done';
  }
};

// Asks whether something is to be done. `about`: its sentences, made anew each second while it is asked.
let asking = null;
const question = ({ title, about, command, verb, fields, run, of, isVain }) => {
  const box = byId('question');
  const text = make('p', { class: 'about' });
  const said = make('p', { role: 'alert', class: 'said' });
  const copy = make('div');
  const go = make('button', { type: 'submit', class: 'go' }, verb);
  let isRunning = false;
  const form = make('form', { method: 'dialog' },
    make('h2', { id: 'asked' }, title), text, ...(fields || []), said,
    make('p', { class: 'small' }, 'The same in a terminal:'), copy,
    make('div', { class: 'buttons' }, make('button', { type: 'button', autofocus: !fields, onclick: () => box.close() }, 'Cancel'), go));
  const update = () => {
    const isGone = of !== undefined && !rows.has(of);
    turn(go, 'disabled', isGone || isRunning || isVain?.());
    if (isGone) return say(text, `${titleOf(of)} is not there any more.`);
    say(text, about());
    const line = command();
    if (copy.line !== line) { copy.line = line; copy.replaceChildren(copied(line)); }
  };
  form.addEventListener('input', update);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (isRunning) return;
    isRunning = true;
    go.disabled = true;
    try {
      const answer = await run();
      const problem = answer.ok ? '' : await problemOf(answer);
      say(said, problem);
      // By then it may have been put away, and another one asked.
      if (answer.ok && asking === update) box.close();
      if (answer.ok || asking !== update) toast(`${title}: ${problem || (await outcomeOf(answer))}`);
    } catch {
      say(said, 'Nobody answers.');
    } finally {
      isRunning = false;
      if (asking === update) update();
    }
  });
  box.replaceChildren(form);
  asking = update;
  update();
  box.showModal();
};
const toast = (text) => {
  say(byId('toast'), text);
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => say(byId('toast'), ''), 6000);
};

// A field with its label.
const field = (label, input) => make('label', { class: 'field' }, make('span', {}, label), input);
// For how long something is to hold.
const lasting = () => make('select', { name: 'for' },
  ...[['', 'until somebody changes it'], ['300', '5 minutes'], ['3600', '1 hour'], ['86400', '1 day']].map(([value, label]) => make('option', { value }, label)));
const forOf = (select) => (select.value ? { for: Number(select.value) } : {});
const forWord = (select) => (select.value ? ` --for ${select.value}s` : '');
const forText = (select) => (select.value ? `, for ${span(Number(select.value) * 1000)}` : '');

const grant = (one) => {
  const needed = one.dataset.needs;
  turn(one, 'disabled', !may(needed));
  if (may(needed)) one.removeAttribute('title');
  else mark(one, 'title', LACKS(needed));
  return one;
};
const button = (label, needed, run) => grant(make('button', { type: 'button', 'data-needs': needed, onclick: run }, label));
// What may be done may change while a page is open.
const grantAll = (now) => {
  if (now === scope) return;
  scope = now;
  document.querySelectorAll('[data-needs]').forEach(grant);
};

// Those of a target that get requests of new clients when this one does not; with a weight of 0 none does.
const siblings = (name) => backendsOf(targetOf(name)).filter((one) => one !== name).map((one) => rows.get(one)).filter((one) => one && one.weight > 0);
const isLeft = (row) => row.state === 'up';
// How many are left without this one, and what is under way at it.
const without = (name, then) => {
  const row = rows.get(name);
  const target = targetOf(name);
  const others = siblings(name);
  const left = others.filter(isLeft);
  const of = others.length + (row?.weight > 0 ? 1 : 0);
  const first = Math.min(...left.map((one) => one.priority));
  const before = Math.min(...[row, ...left].filter((one) => one && isLeft(one) && one.weight > 0).map((one) => one.priority));
  const rest = left.length === 0 ? ` Nobody is left: ${then} for ${target} will fail.`
    : first > before ? ` Only ${first === 255 ? 'backups' : `those of priority ${first}`} are left.` : '';
  return { target, of, left: left.length, active: row?.active ?? 0, rest };
};
// What was said of it by hand.
const handOf = (name, field) => rows.get('overlay')?.entries.find((entry) => entry.object === titleOf(name) && entry.field === field);
const setBackend = (name, body) => send('PATCH', `api/v1/targets/${segment(targetOf(name))}/backends/${segment(backendOf(name))}`, body);
const drainIt = (name) => {
  const lasts = lasting();
  question({
    of: name,
    title: `Drain ${titleOf(name)}`,
    verb: 'Drain',
    fields: [field('It holds', lasts)],
    about: () => {
      const { of, left, active, target, rest } = without(name, 'new requests');
      return `${left} of ${of} backends of ${target} are left for new clients, ${many(active, 'request', 'requests')} under way will finish${forText(lasts)}.${rest}`;
    },
    command: () => `evenkeel drain ${word(titleOf(name))}${forWord(lasts)}`,
    run: () => setBackend(name, { state: 'drain', ...forOf(lasts) }),
  });
};
const downIt = (name) => {
  const lasts = lasting();
  question({
    of: name,
    title: `Take ${titleOf(name)} down`,
    verb: 'Take down',
    fields: [field('It holds', lasts)],
    about: () => {
      const { of, left, active, target, rest } = without(name, 'requests');
      return `${left} of ${of} backends of ${target} are left for all clients, also for those that stick to this one; ${many(active, 'request', 'requests')} under way will finish, tunnels and connections of TCP end within the drain time${forText(lasts)}.${rest}`;
    },
    command: () => `evenkeel down ${word(titleOf(name))}${forWord(lasts)}`,
    run: () => setBackend(name, { state: 'down', ...forOf(lasts) }),
  });
};
const readyIt = (name) => question({
  of: name,
  title: `Make ${titleOf(name)} ready`,
  verb: 'Make ready',
  about: () => {
    const row = rows.get(name);
    const entry = handOf(name, 'state');
    const rest = row.source === 'operator' ? 'probes and the like decide again whether it gets requests' : `it is ${row.state} by its ${row.source} (${row.reason}), and that stays`;
    if (entry) return `What was said by hand (${entry.value}, by ${entry.author} ${span(at - entry.at_ms)} ago) is taken back: ${rest}.`;
    if (row.source === 'operator') return `Nothing was said of its state by hand: it is ${row.reason}, and that stays.`;
    return `Nothing was said of its state by hand: ${rest}.`;
  },
  command: () => `evenkeel ready ${word(titleOf(name))}`,
  run: () => setBackend(name, { state: null }),
});
const weighIt = (name) => {
  const input = make('input', { type: 'number', min: '0', max: '256', required: true, value: String(rows.get(name)?.weight ?? 1) });
  const lasts = lasting();
  question({
    of: name,
    title: `Weight of ${titleOf(name)}`,
    verb: 'Set weight',
    fields: [field('Weight, 0 to 256', input), field('It holds', lasts)],
    about: () => {
      const row = rows.get(name);
      const left = siblings(name).filter(isLeft);
      const wanted = Number(input.value);
      const first = Math.min(...left.map((one) => one.priority));
      const others = left.filter((one) => one.priority === row.priority).reduce((all, one) => all + one.weight, 0);
      const isServed = isLeft(row) && wanted > 0 && row.priority <= first;
      const share = isServed ? (100 * wanted) / (wanted + others) : 0;
      const why = !isLeft(row) ? ` It gets none while it is ${row.state}.` : wanted === 0 ? ' With 0 it gets none but of those that stick to it.'
        : row.priority > first ? ` It gets none as long as those of priority ${first} are up.` : '';
      return `From weight ${row.weight} to ${wanted}: about ${share.toFixed(0)} % of new requests instead of ${row.share} %${forText(lasts)}.${why}`;
    },
    command: () => `evenkeel weight ${word(titleOf(name))} ${input.value}${forWord(lasts)}`,
    run: () => setBackend(name, { weight: Number(input.value), ...forOf(lasts) }),
  });
};
const actionsOf = (name) => {
  if (kindOf(name) !== 'backend') return make('div', { class: 'actions', hidden: true });
  return make('div', { class: 'actions', role: 'group', 'aria-label': 'What can be done' },
    button('Drain', 'operate', () => drainIt(name)), button('Take down', 'operate', () => downIt(name)),
    button('Ready', 'operate', () => readyIt(name)), button('Weight', 'operate', () => weighIt(name)));
};
