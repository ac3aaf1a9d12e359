// What the checks of Node over HTTP/2 share: sessions, and requests as promises.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2 from 'node:http2';

import { ca, origin } from './harness.mjs';

const PATIENCE = 20_000; // milliseconds; nothing on loopback takes longer

/** A connection that HTTP/2 was agreed on for; its caller destroys it. */
export async function open(options = {}) {
  const session = http2.connect(origin, { ca, servername: 'localhost', family: 4, ...options });
  session.setTimeout(PATIENCE, () => session.destroy(new Error('nothing came in time')));
  await once(session, 'connect');
  assert.equal(session.alpnProtocol, 'h2');
  // From here on whoever waits for a stream hears of it.
  session.on('error', () => {});
  return session;
}

/** Starts a request; the caller ends it. */
export function start(session, path, headers = {}, options = {}) {
  const stream = session.request({ ':path': path, ...headers }, { endStream: false, ...options });
  stream.setTimeout(PATIENCE, () => stream.destroy(new Error('nothing came in time')));
  return stream;
}

/** The answer to a request that was started, with its body, the heads before it and the trailers behind it. */
export function answerTo(stream) {
  const before = [];
  const pieces = [];
  let [headers, trailers] = [undefined, {}];
  stream.on('headers', (fields) => before.push(fields));
  stream.on('continue', () => before.push({ ':status': 100 }));
  stream.on('trailers', (fields) => { trailers = fields; });
  stream.on('response', (fields) => { headers = fields; });
  stream.on('data', (piece) => pieces.push(piece));
  return new Promise((resolve, reject) => {
    stream.on('error', reject);
    stream.on('end', () => {
      if (headers === undefined || stream.rstCode !== 0) return; // What it was comes behind it.
      const body = Buffer.concat(pieces);
      resolve({ status: headers[':status'], headers, trailers, body, text: body.toString('latin1'), before });
    });
    stream.on('close', () => reject(new Error(`closed with ${stream.rstCode}`)));
  });
}

/** One request with a body or without, on this connection. */
export function askOn(session, path, headers = {}, body = undefined) {
  const stream = start(session, path, headers, { endStream: body === undefined });
  const answer = answerTo(stream);
  if (!stream.writableEnded) stream.end(body);
  return answer;
}

/** What `action` brings with a connection of its own. */
export async function within(action, options = {}) {
  const session = await open(options);
  try {
    return await action(session);
  } finally {
    session.destroy();
  }
}

/** One request on a connection of its own. */
export const ask = (path, headers = {}, body = undefined) => within((session) => askOn(session, path, headers, body));

/** An ordinary request is answered. */
export async function hello(session, path = '/') {
  const { status, text } = await askOn(session, path);
  assert.deepEqual([status, text], [200, 'Hello from fake-1']);
}
