// What can be done to the whole: keep somebody out, empty the cache, put another config into force.

const blockIt = () => {
  const input = make('input', { required: true, placeholder: '192.0.2.7 or 192.0.2.0/24', spellcheck: 'false', autocomplete: 'off' });
  const lasts = lasting();
  question({
    title: 'Block a network',
    verb: 'Block',
    fields: [field('Address or network', input), field('It holds', lasts)],
    about: () => `Its requests and connections are refused on all ${many(names('listener').length, 'listener', 'listeners')}, and what it has under way is cut${forText(lasts)}. ${many(rows.get('blocked')?.count ?? 0, 'network is', 'networks are')} blocked now, ${many(rows.get('process').connections.open, 'connection is', 'connections are')} open.`,
    command: () => `evenkeel block ${word(input.value || 'NETWORK')}${forWord(lasts)}`,
    run: () => send('POST', 'api/v1/access/blocked/entries', { network: input.value, ...forOf(lasts) }),
  });
};
const unblockIt = (entry) => question({
  title: `Let ${entry.network} in again`,
  verb: 'Let in',
  about: () => `It was blocked by ${entry.author} ${span(at - entry.at_ms)} ago; its next request is answered like any other's.`,
  command: () => `evenkeel unblock ${word(entry.network)}`,
  run: () => send('DELETE', `api/v1/access/blocked/entries/${segment(entry.network)}`),
});
const purgeIt = () => {
  const kind = make('select', {}, ...[['url', 'one URL'], ['prefix', 'all URLs that begin so'], ['tag', 'all with a tag'], ['all', 'everything']].map(([value, label]) => make('option', { value }, label)));
  const input = make('input', { required: true, placeholder: 'as clients ask for it', spellcheck: 'false', autocomplete: 'off' });
  const soft = make('input', { type: 'checkbox' });
  kind.addEventListener('change', () => { input.disabled = kind.value === 'all'; });
  question({
    title: 'Purge the cache',
    verb: 'Purge',
    fields: [field('What', kind), field('URL, prefix or tag', input), field('Only declare it stale', soft)],
    about: () => {
      const cache = rows.get('cache');
      const of = kind.value === 'all' ? `All ${bytes(cache.bytes)} that are stored` : `Of ${bytes(cache.bytes)} that are stored what fits`;
      return `${of} ${soft.checked ? 'is asked for again before it is sent' : 'is gone, and the next requests for it go to backends'}.`;
    },
    command: () => `evenkeel purge ${kind.value === 'all' ? '--all' : `--${kind.value} ${word(input.value || kind.value.toUpperCase())}`}${soft.checked ? ' --soft' : ''}`,
    run: () => send('POST', 'api/v1/cache/purge', { ...(kind.value === 'all' ? { all: true } : { [kind.value]: input.value }), ...(soft.checked ? { soft: true } : {}) }),
  });
};
const confirmIt = () => question({
  title: 'Confirm the config on trial',
  isVain: () => !rows.get('process').trial,
  verb: 'Confirm',
  about: () => {
    const trial = rows.get('process').trial;
    return trial ? `It goes into the place of the file, and stays; without that it is taken back in ${span(trial.ends_ms - at)}.` : 'No config is on trial any more.';
  },
  command: () => 'evenkeel confirm',
  run: () => send('POST', 'api/v1/config/confirm'),
});
const rollBackIt = () => question({
  title: 'Take the config on trial back',
  isVain: () => !rows.get('process').trial,
  verb: 'Roll back',
  about: () => {
    const trial = rows.get('process').trial;
    return trial ? `The config before that of ${trial.who} is in force again, ${many(rows.get('process').connections.open, 'connection stays', 'connections stay')} open.` : 'No config is on trial any more.';
  },
  command: () => 'evenkeel rollback',
  run: () => send('POST', 'api/v1/config/rollback'),
});
// What a plan would come to, as it is found out.
const foretold = (text) => {
  const told = { text, isRefused: false };
  let latest = 0;
  told.ask = async (...config) => {
    const own = (latest += 1);
    let [said, isRefused] = ['Nobody answers.', true];
    try {
      const answer = await send('POST', 'api/v1/config/plan', ...config);
      const plan = answer.ok ? await answer.json() : null;
      said = plan ? planText(plan) : await problemOf(answer);
      isRefused = !plan || plan.verdict === 'refused';
    } catch { /* as it was said */ }
    if (own !== latest) return;
    [told.text, told.isRefused] = [said, isRefused];
    asking?.();
  };
  told.forget = () => { latest += 1; [told.text, told.isRefused] = [text, false]; };
  return told;
};
const reloadIt = () => {
  const told = foretold('What would change is being found out.');
  told.ask();
  question({
    title: 'Read the config again',
    verb: 'Reload',
    about: () => told.text,
    isVain: () => told.isRefused,
    command: () => 'evenkeel reload',
    run: () => send('POST', 'api/v1/config/reload'),
  });
};
const planText = (plan) => {
  const lines = plan.objects.map((one) => `${one.kind} ${one.name}: ${one.change}${one.keys.map((key) => ` ${key.key} ${key.old ?? 'unset'} → ${key.new ?? 'unset'}`).join(',')}${one.loses_traffic ? `, ${many(one.under_way, 'request', 'requests')} under way finish` : ''}`);
  if (plan.verdict === 'refused') return ['It would be refused, and nothing would change:', ...plan.problems.slice(0, 8).map((one) => one.text)].join('\n');
  const head = lines.length === 0 ? 'Nothing would change.' : `${many(lines.length, 'object changes', 'objects change')}:`;
  return [head, ...lines.slice(0, 12), lines.length > 12 ? `and ${lines.length - 12} more` : '', ...plan.warnings].filter(Boolean).join('\n');
};
const applyIt = () => {
  const text = make('textarea', { required: true, rows: '10', spellcheck: 'false', placeholder: 'listeners:\n  …' });
  const trial = make('select', {}, ...[['120', 'for 2 minutes, then confirm or it goes back'], ['600', 'for 10 minutes'], ['', 'for good']].map(([value, label]) => make('option', { value }, label)));
  const told = foretold('Nothing is put into force before it was found valid.');
  let waits;
  text.addEventListener('input', () => {
    clearTimeout(waits);
    told.forget();
    if (text.value.trim()) waits = setTimeout(() => told.ask(text.value, 'application/yaml'), 600);
  });
  question({
    title: 'Apply a config',
    verb: 'Apply',
    isVain: () => told.isRefused,
    fields: [field('The whole config', text), field('It is in force', trial)],
    about: () => told.text,
    command: () => `evenkeel apply FILE${trial.value ? ` --confirm ${trial.value}s` : ''}`,
    run: () => send('POST', `api/v1/config/apply${trial.value ? `?confirm=${trial.value}` : ''}`, text.value, 'application/yaml'),
  });
};
