// Lines over five minutes or an hour, with what they come to.

const WIDE = 300;
const HIGH = 64;

// One picture of several lines on one scale: each `[class, values]`; what was not counted is null.
const chart = (label, unit) => {
  const picture = drawn('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', role: 'img', class: 'chart' });
  const one = make('figure', {}, make('figcaption', {}, make('b', {}, label), ' ', make('small')), picture);
  one.plot = (series, steps) => {
    const values = series.flatMap(([, list]) => list.filter((value) => value !== null));
    const top = Math.max(unit === time ? 0.001 : 1, ...values);
    keyed(picture, series.map(([kind, list]) => [kind, () => drawn('path', { class: kind }), (path) => {
      let isOpen = false;
      const points = list.slice(-steps);
      const start = steps - points.length;
      const way = points.map((value, number) => {
        if (value === null) { isOpen = false; return ''; }
        const command = isOpen ? 'L' : 'M';
        isOpen = true;
        return `${command}${(((start + number) * WIDE) / (steps - 1)).toFixed(1)} ${(HIGH - 2 - ((HIGH - 6) * value) / top).toFixed(1)}`;
      }).join('');
      mark(path, 'd', way);
    }]));
    const now = series.map(([kind, list]) => `${kind} ${unit(list[list.length - 1])}`).join(' · ');
    const text = `${now} · at most ${unit(top)}`;
    say(one.firstChild.lastChild, text);
    mark(picture, 'aria-label', `${label}: ${text}`);
  };
  return one;
};
