// What stands beside the map: each a line with its figure, and what is behind it when it is opened.

const panel = (key, label, fillIt, tools) => [key, () => {
  const one = make('details', { id: `panel/${key}`, class: 'panel' },
    make('summary', {}, make('b', {}, label), ' ', make('span', { class: 'figure' })), make('div', { class: 'inside' }));
  one.inside = make('ul');
  one.lastChild.append(one.inside, make('div', { class: 'actions' }, ...(tools ? tools() : [])));
  return one;
}, (one) => {
  const { figure, isBad, items } = fillIt(one.open);
  say(one.firstChild.lastChild, figure);
  turn(one, 'data-bad', isBad);
  if (one.open) keyed(one.inside, items());
}];
const item = (key, text, more) => [key, () => make('li', {}, make('span'), ...(more ? more() : [])), (one) => say(one.firstChild, text)];
const perSecond = (key, count) => {
  const known = perSecond.known || (perSecond.known = new Map());
  const before = known.get(key);
  if (!before || before.up !== up) known.set(key, { up, count, rate: before && up > before.up ? Math.max(0, (1000 * (count - before.count)) / (up - before.up)) : 0 });
  return known.get(key).rate;
};

// Of a long list a part is sent.
const beyond = (list, command) => (list.count > list.entries.length ? [item('beyond', `and ${list.count - list.entries.length} more: ${command}`)] : []);

const configPanel = () => {
  const { config_number: number, config, trial } = rows.get('process');
  const overlay = rows.get('overlay');
  const parts = [`number ${number}`];
  if (trial) parts.push(`on trial, ${span(trial.ends_ms - at)} left`);
  if (overlay.count > 0) parts.push(`${many(overlay.count, 'change', 'changes')} by hand`);
  const reload = [...names('event')].reverse().map((name) => rows.get(name)).find((event) => /^(reloaded|reload_refused|applied|confirmed|rolled_back)$/.test(event.kind));
  return {
    figure: parts.join(' · '),
    isBad: Boolean(trial) || reload?.kind === 'reload_refused',
    items: () => [
      item('file', config ? `${config}` : 'no file: flags, standard input, or applied'),
      ...(reload ? [item(`reload ${reload.id}`, `${clock(reload.time_ms)} ${reload.text}`)] : []),
      ...overlay.entries.map((one) => item(`${one.object} ${one.field}`, `${one.object}: ${one.field} is ${one.value ?? 'set'}, the file says ${one.file_says ?? 'nothing'} (${one.author}, ${span(at - one.at_ms)} ago${one.expires_ms ? `, ${span(one.expires_ms - at)} left` : ''})${one.aside ? `; without effect: ${one.aside}` : ''}`)),
      ...beyond(overlay, 'evenkeel diff'),
    ],
  };
};
const ending = (one) => (one.expires_ms > at ? `ends in ${span(one.expires_ms - at)}` : `has ended ${span(at - one.expires_ms)} ago`);
const certificatesPanel = () => {
  const all = names('listener').flatMap((name) => rows.get(name).certificates.map((one) => ({ ...one, listener: after(name, 'listener/') }))).sort((a, b) => a.expires_ms - b.expires_ms);
  const left = all.length ? all[0].expires_ms - at : 0;
  return {
    figure: all.length === 0 ? 'none' : left > 0 ? `${all.length}, the first ends in ${span(left)}` : `${all.length}, one has ended`,
    isBad: all.length > 0 && left < 14 * 86400e3,
    items: () => all.map((one) => item(`${one.listener} ${one.file}`, `${one.names.join(', ')} of ${one.listener}: ${ending(one)}`)),
  };
};
const cachePanel = () => {
  const { bytes: stored, memory, requests, reasons } = rows.get('cache');
  const all = Object.values(requests).reduce((count, one) => count + one, 0);
  const served = ['hit', 'stale', 'revalidated', 'collapsed'].reduce((count, kind) => count + (requests[kind] || 0), 0);
  return {
    figure: all > 0 ? `${percent(served, all)} served · ${bytes(stored)} of ${bytes(memory)}` : 'unused',
    items: () => [
      ...Object.entries(requests).map(([kind, count]) => item(kind, `${kind}: ${whole(count)}`)),
      ...Object.entries(reasons).map(([why, count]) => item(`why ${why}`, `not stored, ${why}: ${whole(count)}`)),
    ],
  };
};
const limitsPanel = () => {
  const blocked = rows.get('blocked');
  const limits = names('limit');
  const refused = limits.reduce((all, name) => all + perSecond(name, rows.get(name).refused), 0);
  const parts = [];
  if (limits.length > 0) parts.push(`${two(refused)}/s refused`);
  parts.push(blocked.count > 0 ? `${blocked.count} blocked` : 'nobody blocked');
  return {
    figure: parts.join(' · '),
    isBad: refused > 0,
    items: () => [
      ...limits.map((name) => {
        const row = rows.get(name);
        return item(name, `${after(name, 'limit/')}: ${whole(row.admitted)} let through, ${whole(row.refused)} refused${row.dry_run ? ` (only counts: ${whole(row.would_refuse)} would be)` : ''}`);
      }),
      ...names('list').map((name) => item(name, `${after(name, 'list/')}: ${whole(rows.get(name).refused)} not let in`)),
      ...blocked.entries.map((entry) => item(`block ${entry.network}`, `${entry.network} by ${entry.author}, ${span(at - entry.at_ms)} ago${entry.expires_ms ? `, ${span(entry.expires_ms - at)} left` : ''} `, () => [button('Let in', 'operate', () => unblockIt(entry))])),
      ...beyond(blocked, 'evenkeel diff'),
    ],
  };
};
const workersPanel = () => {
  const all = names('worker');
  const rates = all.map((name) => rate(name));
  const late = all.map((name) => {
    const [looks, us] = [perSecond(`${name} looks`, rows.get(name).looks), perSecond(`${name} late`, rows.get(name).late_us)];
    return looks > 0 ? us / looks / 1000 : 0;
  });
  return {
    figure: `${all.length} · late by ${time(Math.max(0, ...late))}`,
    isBad: Math.max(0, ...late) > 20,
    items: () => all.map((name, number) => item(name, `${after(name, 'worker/')}: ${two(rates[number])} requests/s, ${many(rows.get(name).connections, 'connection', 'connections')}, late by ${time(late[number])}`)),
  };
};
const upstreamPanel = () => {
  const { upstream, causes } = rows.get('process');
  const all = Object.entries(causes).sort((a, b) => b[1] - a[1]);
  return {
    figure: `${percent(upstream.reused, upstream.reused + upstream.opened)} reused · ${many(upstream.retries, 'retry', 'retries')}`,
    items: () => (all.length === 0 ? [item('none', 'all has ended well')] : all.slice(0, 20).map(([cause, count]) => item(cause, `${cause}: ${whole(count)}`))),
  };
};
const webhooksPanel = () => {
  const all = names('webhook').map((name) => rows.get(name));
  const failing = all.filter((one) => one.waiting > 0 && one.last_error);
  return {
    figure: all.length === 0 ? 'none' : failing.length > 0 ? `${failing.length} of ${all.length} fail` : `${all.length}`,
    isBad: failing.length > 0,
    items: () => all.map((one) => item(one.url, `${one.url}: ${whole(one.delivered)} delivered, ${whole(one.waiting)} wait, ${whole(one.dropped)} dropped${one.last_error ? `; ${one.last_error}` : ''}`)),
  };
};
const PANELS = [
  panel('config', 'Config', configPanel, () => [button('Reload', 'configure', reloadIt), button('Apply', 'configure', applyIt), button('Confirm', 'configure', confirmIt), button('Roll back', 'configure', rollBackIt)]),
  panel('certificates', 'Certificates', certificatesPanel),
  panel('cache', 'Cache', cachePanel, () => [button('Purge', 'operate', purgeIt)]),
  panel('limits', 'Limits and blocks', limitsPanel, () => [button('Block', 'operate', blockIt)]),
  panel('upstream', 'Reuse and bad ends', upstreamPanel),
  panel('workers', 'Workers', workersPanel),
  panel('webhooks', 'Webhooks', webhooksPanel),
];
const panels = () => {
  keyed(byId('panels'), PANELS.filter(([key]) => key !== 'webhooks' || names('webhook').length > 0));
  const events = names('event').slice(-40).reverse();
  keyed(byId('events'), events.map((name) => {
    const event = rows.get(name);
    return [name, () => make('li', { 'data-level': event.level, title: event.kind }, make('time', {}, clock(event.time_ms)), ' ', make('span', {}, event.text))];
  }));
};
