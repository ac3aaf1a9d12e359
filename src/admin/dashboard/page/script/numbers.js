// Numbers and texts as people read them.

// Two digits, as exact as it is known.
const two = (value) => {
  if (!(value > 0)) return '0';
  if (value >= 1e6) return `${two(value / 1e6)} M`;
  if (value >= 1e4) return `${two(value / 1e3)} k`;
  return value.toFixed(value >= 9.95 ? 0 : value >= 0.995 ? 1 : 2);
};
const whole = (count) => String(count ?? 0).replace(/\B(?=(\d{3})+$)/g, '\u202f');
const time = (ms) => {
  if (ms === undefined || ms === null) return '–';
  const of = (value) => (value >= 10 ? String(Number(value.toPrecision(2))) : value.toPrecision(2));
  if (ms >= 1000) return `${of(ms / 1000)} s`;
  return ms >= 1 ? `${of(ms)} ms` : `${of(ms * 1000)} µs`;
};
const span = (ms) => {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
};
const bytes = (count) => {
  for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (count >= size) return `${two(count / size)} ${unit}`;
  }
  return `${count} B`;
};
const percent = (part, all) => {
  if (!(all > 0) || !(part > 0)) return '–';
  const share = (100 * part) / all;
  return share < 0.1 ? '< 0.1 %' : `${share >= 10 ? share.toFixed(0) : share.toFixed(1)} %`;
};
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const many = (count, one, more) => `${count} ${count === 1 ? one : more}`;

// What steers a terminal or turns text around is shown as its number: names come from configs, and reasons from peers.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const shown = (text) => {
  const all = String(text);
  return all.replace(HIDDEN, (one) => `⟨U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
};
// One word of a shell; what can't be seen is written as bash, zsh and ksh read it.
const word = (text) => {
  if (/^[\w./:@%+,-]+$/.test(text)) return text;
  if (shown(text) === text) return `'${text.replace(/'/g, "'\\''")}'`;
  const plain = text.replace(/[\\']/g, '\\$&').replace(HIDDEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `$'${plain}'`;
};
