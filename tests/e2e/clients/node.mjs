// Node in front of evenkeel: `node node.mjs http|https PORT BACKEND_PORT CA_FILE` makes one check after the other
// and writes a line of JSON for each. Run by `clients` in the e2e tests. NODE_EXTRA_CA_CERTS is for fetch.

import assert from 'node:assert/strict';
import http from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Readable, Transform } from 'node:stream';
import tls from 'node:tls';

import { agent, answerTo, ask, check, connect, event, fake, hash, isHttps, main, origin, pattern, start, target } from './harness.mjs';

const TEN_MEGABYTES = 10_000_000;

check('get', async () => {
  const { status, headers, text, response } = await ask('/');
  assert.deepEqual([status, response.httpVersion, text], [200, '1.1', 'Hello from fake-1']);
  assert.equal(headers['content-length'], '17');
});

check('head', async () => {
  const { headers, text } = await ask('/bytes/1000', { method: 'HEAD' });
  assert.deepEqual([headers['content-length'], text], ['1000', '']);
});

check('post-with-length', async () => {
  const { headers, text } = await ask('/echo', { method: 'POST', headers: { 'Content-Length': 5 } }, 'hello');
  assert.deepEqual([headers['content-length'], text], ['5', 'hello']);
});

check('post-in-chunks', async () => {
  const request = start('/echo', { method: 'POST' });
  const answer = answerTo(request);
  for (const piece of ['one', 'two', 'three']) request.write(piece);
  request.end();
  const { headers, text } = await answer;
  assert.deepEqual([headers['transfer-encoding'], text], ['chunked', 'onetwothree']);
});

check('put-of-nothing', async () => {
  const { text } = await ask('/head', { method: 'PUT', headers: { 'Content-Length': 0 } });
  assert.match(text, /^PUT \/head HTTP\/1\.1\r\n[^]*Content-Length: 0\r\n/);
});

check('delete-with-a-body', async () => {
  const { text } = await ask('/echo', { method: 'DELETE', headers: { 'Content-Length': 3 } }, 'why');
  assert.equal(text, 'why');
});

check('options-of-the-server', async () => {
  assert.equal((await ask('*', { method: 'OPTIONS' })).status, 200);
});

check('methods', async () => {
  for (const method of ['PATCH', 'PROPFIND', 'MKCOL', 'REPORT', 'QUERY']) {
    if (!http.METHODS.includes(method)) continue;
    const { text } = await ask('/head', { method });
    assert.ok(text.startsWith(`${method} /head HTTP/1.1\r\n`), text);
  }
});

check('expect-continue', async () => {
  const request = start('/echo', { method: 'POST', headers: { Expect: '100-continue', 'Content-Length': 4 } });
  const answer = answerTo(request);
  request.flushHeaders();
  await event(request, 'continue');
  request.end('body');
  assert.equal((await answer).text, 'body');
});

check('expect-refused', async () => {
  await fake.behave('early=1&status=413');
  const request = start('/', { method: 'POST', headers: { Expect: '100-continue', 'Content-Length': 1000 } });
  const answer = answerTo(request);
  request.on('continue', () => request.destroy(new Error('nobody asked for the body')));
  request.flushHeaders();
  assert.equal((await answer).status, 413);
  request.destroy();
});

check('early-hints', async () => {
  const { before, text } = await ask('/early-hints');
  assert.deepEqual(before.map((info) => [info.statusCode, info.headers.link]), [[103, '</style.css>; rel=preload']]);
  assert.equal(text, 'Hello from fake-1');
});

check('trailers-of-the-request', async () => {
  const request = start('/echo', { method: 'POST', headers: { Trailer: 'X-Sum', 'Transfer-Encoding': 'chunked' } });
  const answer = answerTo(request);
  request.write('hello');
  request.addTrailers({ 'X-Sum': '42' });
  request.end();
  const { text, trailers } = await answer;
  assert.deepEqual([text, trailers['x-sum']], ['hello', '42']);
});

check('trailers-of-the-answer', async () => {
  const { body, trailers } = await ask('/chunked/1000?trailer=1');
  assert.deepEqual([body.equals(pattern(1000)), trailers['x-trailer']], [true, 'fake-1']);
});

check('answers-without-a-body', async () => {
  const kept = agent({ maxSockets: 1 });
  const sockets = new Set();
  for (const status of [204, 304, 204, 200]) {
    const request = start(`/status/${status}`, { agent: kept });
    request.on('socket', (socket) => sockets.add(socket));
    const answer = answerTo(request);
    request.end();
    assert.equal((await answer).status, status);
  }
  kept.destroy();
  assert.equal(sockets.size, 1);
});

check('one-connection-for-many-requests', async () => {
  const kept = agent({ maxSockets: 1 });
  for (let round = 0; round < 5; round += 1) {
    const request = start('/echo', { agent: kept, method: 'POST' });
    const answer = answerTo(request);
    request.end(pattern(round * 1000));
    assert.equal((await answer).body.length, round * 1000);
    assert.equal(request.reusedSocket, round > 0);
  }
  kept.destroy();
});

check('many-requests-at-once', async () => {
  const kept = agent({ maxSockets: 10 });
  const lengths = Array.from({ length: 100 }, (_, number) => number * 997);
  const answers = await Promise.all(lengths.map((length) => ask(`/bytes/${length}`, { agent: kept })));
  kept.destroy();
  assert.deepEqual(answers.map((answer) => answer.body.length), lengths);
  assert.ok(answers.every((answer) => answer.body.equals(pattern(answer.body.length))));
});

check('connection-close', async () => {
  const { headers } = await ask('/', { headers: { Connection: 'close' } });
  assert.equal(headers.connection, 'close');
});

check('absolute-form', async () => {
  const { text } = await ask('http://origin.test/head', { headers: { Host: 'origin.test' } });
  assert.match(text, /^GET \/head HTTP\/1\.1\r\n[^]*Host: origin\.test\r\n/i);
});

check('forwarded-headers', async () => {
  const { text } = await ask('/head', { headers: { 'X-Forwarded-For': '1.2.3.4', 'X-Forwarded-Proto': 'gopher' } });
  assert.doesNotMatch(text, /1\.2\.3\.4|gopher/);
  assert.match(text, new RegExp(`X-Forwarded-Proto: ${isHttps ? 'https' : 'http'}\r\n`, 'i'));
});

check('a-large-head', async () => {
  assert.equal((await ask('/', { headers: { 'X-Large': 'x'.repeat(30_000) } })).status, 200);
  assert.equal((await ask('/', { headers: { 'X-Large': 'x'.repeat(33_000) } })).status, 431);
});

check('a-long-target', async () => {
  const path = `/head?${'q'.repeat(20_000)}`;
  assert.ok((await ask(path)).text.startsWith(`GET ${path} HTTP/1.1\r\n`));
});

check('ten-megabytes-up', async () => {
  const request = start('/count', { method: 'POST' });
  const answer = answerTo(request);
  const whole = pattern(TEN_MEGABYTES);
  const pieces = Array.from({ length: 100 }, (_, at) => whole.subarray(at * 100_000, (at + 1) * 100_000));
  await pipeline(Readable.from(pieces), request);
  assert.equal((await answer).text, String(TEN_MEGABYTES));
});

check('ten-megabytes-down', async () => {
  for (const framing of ['bytes', 'chunked', 'close']) {
    const { body } = await ask(`/${framing}/${TEN_MEGABYTES}`);
    assert.equal(hash(body), hash(pattern(TEN_MEGABYTES)), framing);
  }
});

check('ten-megabytes-both-ways-at-once', async () => {
  const { body } = await ask('/echo', { method: 'POST' }, pattern(TEN_MEGABYTES));
  assert.equal(hash(body), hash(pattern(TEN_MEGABYTES)));
});

check('an-answer-sent-on-while-it-comes', async () => {
  // The body of one answer is the body of the next request, with nothing in between but the stream.
  const from = start('/bytes/1000000');
  from.end();
  const to = start('/echo', { method: 'POST' });
  const answer = answerTo(to);
  let length = 0;
  const count = new Transform({ transform: (piece, _, done) => { length += piece.length; done(null, piece); } });
  await pipeline(await event(from, 'response'), count, to);
  assert.ok((await answer).body.equals(pattern(1_000_000)));
  assert.equal(length, 1_000_000);
});

check('an-upload-that-stops', async () => {
  const before = await fake.stats();
  const request = start('/', { method: 'POST', headers: { 'Content-Length': 500_000 } });
  request.on('error', () => {});
  request.write(pattern(100_000));
  await fake.until('half of it is there', (now) => now.bytes_in - before.bytes_in > 100_000);
  request.destroy();
  await fake.until('the abort is seen', (now) => now.aborted === before.aborted + 1);
});

check('a-download-that-stops', async () => {
  const before = await fake.stats();
  const request = start('/chunked/1000000000000');
  request.on('error', () => {});
  request.end();
  const response = await event(request, 'response');
  response.on('error', () => {});
  await event(response, 'data');
  response.destroy();
  await fake.until('the abort is seen', (now) => now.aborted === before.aborted + 1);
});

check('a-request-given-up', async () => {
  await fake.behave('fault=hang&times=1');
  const before = await fake.stats();
  const request = start('/');
  request.on('error', () => {});
  request.end();
  await fake.until('the backend has it', (now) => now.requests === before.requests + 1);
  request.destroy();
  await fake.until('the abort is seen', (now) => now.aborted === before.aborted + 1);
});

check('websocket', async () => {
  const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version': '13' };
  const request = start('/chat', { headers });
  request.end();
  const socket = await new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('upgrade', (response, socket) => {
      assert.equal(response.headers['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
      resolve(socket);
    });
  });
  for (let round = 0; round < 3; round += 1) {
    socket.write(Buffer.from('818537fa213d7f9f4d5158', 'hex'));
    assert.equal((await event(socket, 'data')).toString('latin1'), '\x81\x05Hello');
  }
  socket.end(Buffer.from('888200000000' + '03e8', 'hex'));
  socket.resume();
  await event(socket, 'close');
});

check('cut-answers', async () => {
  for (const [path, fault] of [['/bytes/1000', 'close-mid-body'], ['/bytes/1000', 'reset-mid-body'], ['/chunked/1000', 'close-mid-body'], ['/', 'length-too-long']]) {
    await fake.behave(`fault=${fault}&times=1`);
    await assert.rejects(ask(path), undefined, `${path} ${fault}`);
  }
});

check('bad-backends', async () => {
  for (const fault of ['close-unanswered', 'reset-mid-head', 'nul-in-header', 'length-and-chunked', 'unsolicited-upgrade']) {
    await fake.behave(`fault=${fault}`);
    assert.equal((await ask('/', { method: 'POST' }, 'x')).status, 502, fault);
  }
});

check('bytes-written-by-hand', async () => {
  const socket = connect();
  for (const byte of Buffer.from('GET / HTTP/1.0\r\n\r\n')) socket.write(Buffer.of(byte));
  let text = '';
  for await (const piece of socket) text += piece.toString('latin1');
  assert.match(text, /^HTTP\/1\.[01] 200 OK\r\n[^]*\r\n\r\nHello from fake-1$/);
});

check('fetch', async () => {
  const got = await fetch(`${origin}/early-hints`);
  assert.deepEqual([got.status, await got.text()], [200, 'Hello from fake-1']);
  const posted = await fetch(`${origin}/echo`, { method: 'POST', body: pattern(300_000) });
  assert.ok(Buffer.from(await posted.arrayBuffer()).equals(pattern(300_000)));
  const body = Readable.toWeb(Readable.from([Buffer.from('one'), Buffer.from('two')]));
  assert.equal(await (await fetch(`${origin}/echo`, { method: 'PUT', body, duplex: 'half' })).text(), 'onetwo');
  const controller = new AbortController();
  const before = await fake.stats();
  const endless = await fetch(`${origin}/bytes/1000000000000`, { signal: controller.signal });
  await endless.body.getReader().read();
  controller.abort();
  await fake.until('the abort is seen', (now) => now.aborted === before.aborted + 1);
});

check('tls-versions', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    const { response } = await ask('/', { minVersion: version, maxVersion: version });
    assert.equal(response.socket.getProtocol(), version);
  }
}, 'https');

check('sessions-are-resumed', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    let session;
    for (let round = 0; round < 20; round += 1) {
      const socket = connect({ session, minVersion: version, maxVersion: version });
      socket.on('session', (fresh) => { session = fresh; });
      await event(socket, 'secureConnect');
      assert.equal(socket.isSessionReused(), round > 0, `${version} ${round}`);
      socket.write('GET / HTTP/1.0\r\n\r\n');
      let text = '';
      for await (const piece of socket) text += piece.toString('latin1');
      assert.ok(text.endsWith('Hello from fake-1'), text);
    }
  }
}, 'https');

check('an-unknown-issuer', async () => {
  await assert.rejects(ask('/', { ca: tls.rootCertificates }), /unable to|self-signed/);
}, 'https');

check('a-wrong-name', async () => {
  await assert.rejects(ask('/', { servername: 'elsewhere.test' }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
}, 'https');

check('alpn', async () => {
  const socket = connect({ ALPNProtocols: ['h2', 'http/1.1'] });
  await event(socket, 'secureConnect');
  assert.equal(socket.alpnProtocol, 'http/1.1');
  socket.destroy();
}, 'https');

check('clear-http-on-the-tls-port', async () => {
  const request = http.request({ ...target, path: '/', agent: false });
  const answer = answerTo(request);
  request.end();
  assert.equal((await answer).status, 400);
}, 'https');

await main();
