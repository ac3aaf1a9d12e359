// The few numbers that say how it goes, each with its last five minutes.

const VITALS = [
  ['requests', 'requests/s', () => two(rate('all')), () => ''],
  ['errors', 'errors', () => (lately('all').isBad ? lately('all').share : 'none'), () => (lately('all').isBad ? `${two(badRate('all'))}/s` : '')],
  ['median', 'first byte, p50', () => time(rows.get('all')?.times.p50_ms), () => `p99 ${time(rows.get('all')?.times.p99_ms)}`],
  ['own', 'evenkeel’s own time', () => time(rows.get('all')?.times.own_ms), () => 'mean'],
  ['active', 'in flight', () => whole(rows.get('all')?.active), () => (rows.get('all')?.waiting > 0 ? `${whole(rows.get('all').waiting)} wait in queues` : 'nobody waits')],
  ['clients', 'connections', () => whole(rows.get('process').connections.open), () => `of ${whole(rows.get('process').connections.limit)}`],
];
const vitals = () => {
  keyed(byId('vitals'), VITALS.map(([key, label, value, more]) => [
    key,
    () => {
      const one = make('div', { class: 'vital' }, make('dt', {}, label), make('dd', {}, make('b'), make('small')));
      if (key === 'requests' || key === 'errors') one.lastChild.append(spark(LONG));
      return one;
    },
    (one) => {
      const [figure, small, picture] = one.lastChild.children;
      say(figure, value());
      say(small, more());
      const track = tracks.get('all');
      if (picture && track) {
        // Of a young process there is less to see, and that is seen as well.
        const width = Math.max(SHORT, Math.min(LONG, track.rates.length));
        mark(picture, 'viewBox', `0 0 ${width} 20`);
        draw(picture, key === 'requests' ? track.rates : track.bads, width);
      }
      if (key === 'errors') turn(one, 'data-bad', lately('all').isBad);
    },
  ]));
};
