// The line that stands above all others.

// Where to look: what is the matter with the process stands beside its config, and what is between it and its cluster above the nodes.
const rowOf = (trouble) => ({ process: 'panel/config', cluster: 'nodes' })[trouble.row] || trouble.row;

const verdict = () => {
  const troubles = rows.get('troubles') || [];
  const worst = troubles[0];
  const weight = worst ? worst.weight : 'well';
  const targets = names('target');
  mark(byId('verdict'), 'data-weight', weight);
  const [form, text] = byId('says').children;
  say(form, SHAPES[weight]);
  say(text, worst ? worst.text : 'All is well');
  const more = byId('more');
  if (worst) {
    if (more.row !== worst.row) {
      more.row = worst.row;
      more.replaceChildren(make('span', { 'aria-hidden': 'true' }), link(rowOf(worst), 'look at it'));
    }
    say(more.firstChild, worst.since_ms ? `for ${span(at - worst.since_ms)} · ` : '');
  } else {
    more.row = null;
    const [left, of] = targets.reduce(([l, o], name) => [l + rows.get(name).left, o + rows.get(name).of], [0, 0]);
    const unknown = targets.filter((name) => rows.get(name).state === 'unknown').length;
    say(more, `${left} of ${of} backends get requests${unknown > 0 ? `, ${many(unknown, 'target has', 'targets have')} no verdict yet` : ''}`);
  }
  const rest = troubles.length - 6;
  say(byId('rest'), rest > 0 ? `and ${rest} more` : '');
  // Each by what it is about: its words may change while somebody is on it.
  const met = new Map();
  keyed(byId('others'), troubles.slice(1, 6).map((one) => {
    met.set(one.row, (met.get(one.row) || 0) + 1);
    return [`${one.row} ${met.get(one.row)}`, () => make('li', {}, shape(), link(rowOf(one))), (line) => {
      mark(line, 'data-weight', one.weight);
      say(line.firstChild, SHAPES[one.weight]);
      say(line.lastChild, one.text);
    }];
  }));
  const title = `${worst ? `${SHAPES[weight]} ${worst.text}` : '● well'} – evenkeel`;
  if (document.title !== title) document.title = title;
};
