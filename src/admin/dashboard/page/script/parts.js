// Parts of the page. All text is set as text: nothing here makes markup.

const byId = (id) => document.getElementById(id);
const SVG = 'http' + '://www.w3.org/2000/svg';
const SHAPES = { up: '●', well: '●', draining: '◐', backups: '◐', hurt: '◐', note: '◐', down: '✕', unknown: '○', wait: '○' };

const make = (tag, fields, ...inside) => {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(fields || {})) {
    if (name.startsWith('on')) one.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined && value !== null) one.setAttribute(name, value === true ? '' : shown(value));
  }
  one.append(...inside.map((part) => (part instanceof Node ? part : shown(part))));
  return one;
};
const drawn = (tag, fields) => {
  const one = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(fields || {})) one.setAttribute(name, value);
  return one;
};
// Sets a text if it is another one.
const say = (one, text) => { const plain = shown(text); if (one.textContent !== plain) one.textContent = plain; };
const mark = (one, name, value) => { const plain = shown(value); if (one.getAttribute(name) !== plain) one.setAttribute(name, plain); };
const turn = (one, name, isOn) => { if (one.hasAttribute(name) !== Boolean(isOn)) one.toggleAttribute(name, Boolean(isOn)); };
const shape = () => make('span', { class: 'mark', 'aria-hidden': 'true' });
const place = (name) => `#${encodeURIComponent(name)}`;
const link = (name, ...inside) => make('a', { href: place(name) }, ...inside);

// Keyed children of one place: made once, changed where they differ, in this order.
const keyed = (parent, parts) => {
  const known = parent.kept || (parent.kept = new Map());
  const focused = document.activeElement;
  let before = null;
  for (const [key, create, change] of parts) {
    let one = known.get(key);
    if (!one) known.set(key, (one = create()));
    if (change) change(one);
    const next = before ? before.nextSibling : parent.firstChild;
    if (next !== one) parent.insertBefore(one, next);
    before = one;
  }
  if (known.size > parts.length) {
    const wanted = new Set(parts.map(([key]) => key));
    for (const [key, one] of known) if (!wanted.has(key)) { one.remove(); known.delete(key); }
  }
  // What was moved has lost the focus.
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
};

// A line without axes, as words have no axes either (Tufte).
const spark = (width) => {
  const picture = drawn('svg', { viewBox: `0 0 ${width} 20`, preserveAspectRatio: 'none', 'aria-hidden': 'true', class: 'spark' });
  picture.append(drawn('path', { class: 'area' }), drawn('path', { class: 'line' }), drawn('path', { class: 'bad' }));
  return picture;
};
const trace = (values, width, top) => {
  const seen = values.slice(-width);
  const start = width - seen.length;
  return seen.map((value, number) => `${number ? 'L' : 'M'}${start + number} ${(19 - (17 * value) / top).toFixed(1)}`).join('');
};
const draw = (picture, values, width, bads) => {
  const top = Math.max(1, ...values.slice(-width));
  const [area, line, bad] = picture.children;
  const path = trace(values, width, top);
  mark(line, 'd', path);
  const first = width - Math.min(width, values.length);
  mark(area, 'd', path && `${path}L${width - 1} 20L${first} 20Z`);
  mark(bad, 'd', bads && bads.slice(-width).some((value) => value > 0) ? trace(bads, width, top) : '');
};

// A button that copies what stands beside it.
const copied = (text) => {
  const field = make('input', { readonly: true, 'aria-label': 'The same as a command', class: 'command', size: Math.min(60, text.length + 2) });
  field.value = text;
  // It is there to be read: Enter in it answers no question.
  field.addEventListener('keydown', (event) => { if (event.key === 'Enter') event.preventDefault(); });
  const button = make('button', { type: 'button' }, 'Copy');
  button.addEventListener('click', async () => {
    field.select();
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
      else document.execCommand('copy');
      say(button, 'Copied');
    } catch {
      say(button, 'Press Ctrl-C');
    }
  });
  return make('div', { class: 'copied' }, field, button);
};
