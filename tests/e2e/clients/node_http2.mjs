// Node in front of evenkeel over HTTP/2: `node node_http2.mjs http2 PORT BACKEND_PORT CA_FILE` makes one check after the other and writes
// a line of JSON for each. Run by `clients` in the e2e tests. The cases are those of `node.mjs` that have a form in HTTP/2.
// Left out: Connection: close (no field is about the connection), the absolute form (there is none), bytes written
// by hand (there are frames), clear HTTP (it is HTTP/1.1), and fetch (that of Node offers HTTP/1.1 alone).

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2 from 'node:http2';
import { pipeline } from 'node:stream/promises';
import { Readable, Transform } from 'node:stream';
import tls from 'node:tls';
import { gunzipSync } from 'node:zlib';

import { answerTo, ask, askOn, hello, open, start, within } from './harness_http2.mjs';
import { check, connect, event, fake, hash, main, pattern } from './harness.mjs';

const TEN_MEGABYTES = 10_000_000;
const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR } = http2.constants;

const post = (headers = {}) => ({ ':method': 'POST', ...headers });

check('get', async () => {
  const { status, headers, text } = await ask('/');
  assert.deepEqual([status, text], [200, 'Hello from fake-1']);
  assert.equal(headers['content-length'], '17');
});

check('head', async () => {
  const { headers, text } = await ask('/bytes/1000', { ':method': 'HEAD' });
  assert.deepEqual([headers['content-length'], text], ['1000', '']);
});

check('post-with-length', async () => {
  const { headers, text } = await ask('/echo', post({ 'content-length': 5 }), 'hello');
  assert.deepEqual([headers['content-length'], text], ['5', 'hello']);
});

check('post-of-unknown-length', async () => {
  await within(async (session) => {
    const stream = start(session, '/echo', post());
    const answer = answerTo(stream);
    for (const piece of ['one', 'two', 'three']) stream.write(piece);
    stream.end();
    const { headers, text } = await answer;
    assert.deepEqual([headers['transfer-encoding'], text], [undefined, 'onetwothree']);
    assert.match((await askOn(session, '/head', post(), 'x')).text, /\r\nTransfer-Encoding: chunked\r\n/);
  });
});

check('put-of-nothing', async () => {
  const { text } = await ask('/head', { ':method': 'PUT', 'content-length': 0 });
  assert.match(text, /^PUT \/head HTTP\/1\.1\r\n[^]*content-length: 0\r\n/i);
});

check('delete-with-a-body', async () => {
  const { text } = await ask('/echo', { ':method': 'DELETE', 'content-length': 3 }, 'why');
  assert.equal(text, 'why');
});

check('options-of-the-server', async () => {
  assert.equal((await ask('*', { ':method': 'OPTIONS' })).status, 200);
});

check('methods', async () => {
  await within(async (session) => {
    for (const method of ['PATCH', 'PROPFIND', 'MKCOL', 'REPORT', 'QUERY', 'BREW']) {
      const { text } = await askOn(session, '/head', { ':method': method });
      assert.ok(text.startsWith(`${method} /head HTTP/1.1\r\n`), text);
    }
  });
});

check('expect-continue', async () => {
  await within(async (session) => {
    const stream = start(session, '/echo', post({ expect: '100-continue', 'content-length': 4 }));
    const answer = answerTo(stream);
    await event(stream, 'continue');
    stream.end('body');
    assert.equal((await answer).text, 'body');
  });
});

check('expect-refused', async () => {
  await fake.behave('early=1&status=413');
  await within(async (session) => {
    const stream = start(session, '/', post({ expect: '100-continue', 'content-length': 1000 }));
    const { before, status, text } = await answerTo(stream);
    assert.deepEqual([before, status, text], [[], 413, 'Hello from fake-1']);
    await fake.behave('reset=1');
    await hello(session);
  });
});

check('an-answer-before-the-upload-is-over', async () => {
  for (let round = 0; round < 5; round += 1) {
    await fake.behave('early=1&status=413&close=1&times=1');
    const { status, text } = await ask('/', post(), pattern(5_000_000));
    assert.deepEqual([status, text], [413, 'Hello from fake-1']);
  }
});

check('early-hints', async () => {
  const { before, text } = await ask('/early-hints');
  assert.deepEqual(before.map((info) => [info[':status'], info.link]), [[103, '</style.css>; rel=preload']]);
  assert.equal(text, 'Hello from fake-1');
});

check('trailers-of-the-request', async () => {
  await within(async (session) => {
    const stream = start(session, '/echo', post({ trailer: 'X-Sum' }), { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '42' }));
    const answer = answerTo(stream);
    stream.end('hello');
    const { text, trailers } = await answer;
    assert.deepEqual([text, trailers['x-sum']], ['hello', '42']);
  });
});

check('trailers-of-the-answer', async () => {
  const { body, trailers } = await ask('/chunked/1000?trailer=1', { te: 'trailers' });
  assert.deepEqual([body.equals(pattern(1000)), trailers['x-trailer']], [true, 'fake-1']);
});

check('answers-without-a-body', async () => {
  await within(async (session) => {
    for (const status of [204, 304, 204, 200]) {
      const answer = await askOn(session, `/status/${status}`);
      assert.deepEqual([answer.status, answer.text], [status, status === 200 ? 'Hello from fake-1' : '']);
    }
  });
});

check('every-status', async () => {
  await within(async (session) => {
    for (const status of [201, 206, 302, 404, 418, 429, 500, 503, 599, 999]) {
      assert.equal((await askOn(session, `/status/${status}`)).status, status);
    }
  });
});

check('one-connection-for-many-requests', async () => {
  await within(async (session) => {
    for (let round = 0; round < 5; round += 1) {
      assert.equal((await askOn(session, '/echo', post(), pattern(round * 1000))).body.length, round * 1000);
    }
  });
});

check('many-requests-at-once', async () => {
  await within(async (session) => {
    const lengths = Array.from({ length: 100 }, (_, number) => number * 997);
    const answers = await Promise.all(lengths.map((length) => askOn(session, `/bytes/${length}`)));
    assert.deepEqual(answers.map((answer) => answer.body.length), lengths);
    assert.ok(answers.every((answer) => answer.body.equals(pattern(answer.body.length))));
  });
});

check('more-at-once-than-there-may-be-streams', async () => {
  await within(async (session) => {
    const answers = await Promise.all(Array.from({ length: 300 }, () => askOn(session, '/echo', post(), 'x')));
    assert.ok(answers.every(({ status, text }) => status === 200 && text === 'x'));
    assert.equal(session.remoteSettings.maxConcurrentStreams, 128);
  });
});

check('the-authority-names-the-host', async () => {
  const { text } = await ask('/head', { ':authority': 'origin.test' });
  assert.match(text, /^GET \/head HTTP\/1\.1\r\n[^]*host: origin\.test\r\n/i);
});

check('forwarded-headers', async () => {
  const { text } = await ask('/head', { 'x-forwarded-for': '1.2.3.4', 'x-forwarded-proto': 'gopher' });
  assert.doesNotMatch(text, /1\.2\.3\.4|gopher/);
  assert.match(text, /X-Forwarded-Proto: https\r\n/);
  assert.match(text, /Via: 2\.0 evenkeel\r\n/);
});

check('headers-with-many-values', async () => {
  const { text } = await ask('/head', { 'x-many': ['one', 'two, three'], cookie: ['a=1', 'b=2'] });
  assert.match(text, /\r\nx-many: one\r\nx-many: two, three\r\n/);
  assert.match(text, /\r\ncookie: a=1; b=2\r\n/);
});

check('cookies-of-an-answer', async () => {
  assert.deepEqual((await ask('/cookies')).headers['set-cookie'], ['a=1', 'b=2']);
});

check('redirects', async () => {
  const { status, headers } = await ask('/moved');
  assert.deepEqual([status, headers.location], [302, '/bytes/5']);
});

check('packed-answers', async () => {
  const { headers, body } = await ask('/packed/bytes/100000', { 'accept-encoding': 'gzip' });
  assert.deepEqual([headers['content-encoding'], headers['content-length']], ['gzip', undefined]);
  assert.ok(gunzipSync(body).equals(pattern(100_000)));
});

check('a-large-head', async () => {
  await within(async (session) => {
    assert.equal((await askOn(session, '/', { 'x-large': 'x'.repeat(30_000) })).status, 200);
    assert.equal((await askOn(session, '/', { 'x-large': 'x'.repeat(33_000) })).status, 431);
    await hello(session);
  });
});

check('a-long-target', async () => {
  const path = `/head?${'q'.repeat(20_000)}`;
  assert.ok((await ask(path)).text.startsWith(`GET ${path} HTTP/1.1\r\n`));
});

check('ten-megabytes-up', async () => {
  await within(async (session) => {
    const stream = start(session, '/count', post());
    const answer = answerTo(stream);
    const whole = pattern(TEN_MEGABYTES);
    const pieces = Array.from({ length: 100 }, (_, at) => whole.subarray(at * 100_000, (at + 1) * 100_000));
    await pipeline(Readable.from(pieces), stream, { end: true });
    assert.equal((await answer).text, String(TEN_MEGABYTES));
    const known = post({ 'content-length': TEN_MEGABYTES });
    assert.equal((await askOn(session, '/count', known, whole)).text, String(TEN_MEGABYTES));
  });
});

check('ten-megabytes-down', async () => {
  await within(async (session) => {
    for (const framing of ['bytes', 'chunked', 'close']) {
      const { body } = await askOn(session, `/${framing}/${TEN_MEGABYTES}`);
      assert.equal(hash(body), hash(pattern(TEN_MEGABYTES)), framing);
    }
  });
});

check('ten-megabytes-both-ways-at-once', async () => {
  const { body } = await ask('/echo', post(), pattern(TEN_MEGABYTES));
  assert.equal(hash(body), hash(pattern(TEN_MEGABYTES)));
});

check('an-answer-sent-on-while-it-comes', async () => {
  // The body of one answer is the body of the next request, with nothing in between but the stream; both on one connection.
  await within(async (session) => {
    const from = start(session, '/bytes/1000000', {}, { endStream: true });
    const to = start(session, '/echo', post());
    const answer = answerTo(to);
    let length = 0;
    const count = new Transform({ transform: (piece, _, done) => { length += piece.length; done(null, piece); } });
    from.pipe(count).pipe(to);
    assert.ok((await answer).body.equals(pattern(1_000_000)));
    assert.equal(length, 1_000_000);
  });
});

check('a-reader-that-pauses-keeps-nobody-waiting', async () => {
  await within(async (session) => {
    const stream = start(session, `/bytes/${TEN_MEGABYTES}`, {}, { endStream: true });
    await event(stream, 'response');
    for (let round = 0; round < 5; round += 1) await hello(session);
    const pieces = [];
    for await (const piece of stream) pieces.push(piece);
    assert.equal(hash(Buffer.concat(pieces)), hash(pattern(TEN_MEGABYTES)));
  });
});

check('an-upload-that-stops', async () => {
  await within(async (session) => {
    const before = await fake.stats();
    const stream = start(session, '/', post({ 'content-length': 500_000 }));
    stream.on('error', () => {});
    stream.write(pattern(100_000));
    await fake.until('half of it is there', (now) => now.bytes_in - before.bytes_in > 100_000);
    stream.close(NGHTTP2_CANCEL);
    await fake.until('the abort is seen', (now) => now.aborted === before.aborted + 1);
    await hello(session);
  });
});

check('a-download-that-stops', async () => {
  await within(async (session) => {
    const before = await fake.stats();
    const stream = start(session, '/chunked/1000000000000', {}, { endStream: true });
    stream.on('error', () => {});
    await event(stream, 'data');
    stream.close(NGHTTP2_CANCEL);
    await fake.until('the abort is seen', (now) => now.aborted === before.aborted + 1);
    await hello(session);
  });
});

check('a-request-given-up', async () => {
  await within(async (session) => {
    await fake.behave('fault=hang&times=1');
    const before = await fake.stats();
    const stream = start(session, '/', {}, { endStream: true });
    stream.on('error', () => {});
    await fake.until('the backend has it', (now) => now.requests === before.requests + 1);
    stream.close(NGHTTP2_CANCEL);
    await fake.until('the abort is seen', (now) => now.aborted === before.aborted + 1);
    await hello(session);
  });
});

check('a-connection-that-ends-in-the-middle', async () => {
  const before = await fake.stats();
  const session = await open();
  const streams = Array.from({ length: 5 }, () => start(session, '/bytes/1000000000000', {}, { endStream: true }));
  for (const stream of streams) stream.on('error', () => {});
  await Promise.all(streams.map((stream) => event(stream, 'data')));
  session.destroy();
  await fake.until('the aborts are seen', (now) => now.aborted === before.aborted + 5);
});

check('a-session-that-is-closed-gets-its-answers', async () => {
  const session = await open();
  const answer = askOn(session, '/delay/100');
  session.close(); // GOAWAY, and the end when the last stream has ended.
  assert.equal((await answer).text, 'Hello from fake-1');
  await once(session, 'close');
});

check('websocket', async () => {
  await within(async (session) => {
    await hello(session);
    assert.equal(session.remoteSettings.enableConnectProtocol, true);
    const stream = start(session, '/chat', { ':method': 'CONNECT', ':protocol': 'websocket', 'sec-websocket-version': '13' });
    const [headers] = await once(stream, 'response');
    assert.deepEqual([headers[':status'], headers['sec-websocket-accept']], [200, undefined]);
    for (let round = 0; round < 3; round += 1) {
      stream.write(Buffer.from('818537fa213d7f9f4d5158', 'hex'));
      assert.equal((await event(stream, 'data')).toString('latin1'), '\x81\x05Hello');
    }
    stream.end(Buffer.from('888200000000' + '03e8', 'hex'));
    assert.equal((await event(stream, 'data')).toString('hex'), '880203e8');
    await once(stream, 'close');
    assert.equal(stream.rstCode, 0);
    await hello(session);
  });
});

check('cut-answers', async () => {
  await within(async (session) => {
    for (const [path, fault] of [['/bytes/1000', 'close-mid-body'], ['/bytes/1000', 'reset-mid-body'], ['/chunked/1000', 'close-mid-body'], ['/', 'length-too-long']]) {
      await fake.behave(`fault=${fault}&times=1`);
      const stream = start(session, path, {}, { endStream: true });
      await assert.rejects(answerTo(stream), undefined, `${path} ${fault}`);
      assert.equal(stream.rstCode, NGHTTP2_INTERNAL_ERROR, `${path} ${fault}`);
      await hello(session);
    }
  });
});

check('bad-backends', async () => {
  await within(async (session) => {
    for (const fault of ['close-unanswered', 'reset-mid-head', 'nul-in-header', 'length-and-chunked', 'unsolicited-upgrade']) {
      await fake.behave(`fault=${fault}`);
      const { status, headers } = await askOn(session, '/', post(), 'x');
      assert.deepEqual([status, headers['proxy-status'] !== undefined], [502, true], fault);
    }
  });
});

check('malformed-heads', async () => {
  for (const headers of [{ ':path': 'a' }, { ':method': 'GE T' }, { ':authority': 'a b' }, { ':scheme': 'gopher' }]) {
    await within(async (session) => {
      const stream = start(session, '/', headers, { endStream: true });
      await assert.rejects(answerTo(stream), undefined, JSON.stringify(headers));
      assert.equal(stream.rstCode, NGHTTP2_PROTOCOL_ERROR, JSON.stringify(headers));
      await hello(session);
    });
  }
});

check('pings-and-settings', async () => {
  await within(async (session) => {
    const ping = () => new Promise((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve())));
    for (let round = 0; round < 5; round += 1) await ping();
    await new Promise((resolve) => session.settings({ initialWindowSize: 1_000 }, resolve));
    assert.ok((await askOn(session, '/bytes/100000')).body.equals(pattern(100_000)));
    await new Promise((resolve) => session.settings({ headerTableSize: 0, maxFrameSize: 100_000, initialWindowSize: 1_000_000 }, resolve));
    assert.ok((await askOn(session, '/bytes/1000000')).body.equals(pattern(1_000_000)));
    assert.equal(session.destroyed, false);
  });
});

check('tls-versions', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    await within(async (session) => {
      await hello(session);
      assert.equal(session.socket.getProtocol(), version);
    }, { minVersion: version, maxVersion: version });
  }
});

check('sessions-are-resumed', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    let known;
    for (let round = 0; round < 5; round += 1) {
      const socket = connect({ session: known, minVersion: version, maxVersion: version, ALPNProtocols: ['h2'] });
      socket.on('session', (fresh) => { known = fresh; });
      await event(socket, 'secureConnect');
      assert.equal(socket.isSessionReused(), round > 0, `${version} ${round}`);
      await within(hello, { createConnection: () => socket });
    }
  }
});

check('an-unknown-issuer', async () => {
  await assert.rejects(open({ ca: tls.rootCertificates }), /unable to|self-signed/);
});

check('a-wrong-name', async () => {
  await assert.rejects(open({ servername: 'elsewhere.test' }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
});

check('alpn', async () => {
  for (const [offers, chosen] of [[['h2', 'http/1.1'], 'h2'], [['http/1.1', 'h2'], 'h2'], [['http/1.1'], 'http/1.1']]) {
    const socket = connect({ ALPNProtocols: offers });
    await event(socket, 'secureConnect');
    assert.equal(socket.alpnProtocol, chosen);
    socket.destroy();
  }
});

await main((path) => within((session) => hello(session, path)));
