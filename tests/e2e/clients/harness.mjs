// What the checks of Node's clients share: where evenkeel and its backend are, requests as promises, and the
// loop that runs the checks. Standard library only.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import tls from 'node:tls';
import { setTimeout as pause } from 'node:timers/promises';

const [scheme, port, fakePort, caFile] = process.argv.slice(2);
const PATIENCE = 20_000; // milliseconds; nothing on loopback takes longer

export const isHttps = scheme !== 'http';
export const ca = isHttps ? readFileSync(caFile) : undefined;
export const target = { host: 'localhost', servername: 'localhost', family: 4, port: Number(port), ca };
export const origin = `http${isHttps ? 's' : ''}://localhost:${port}`;
const client = isHttps ? https : http;

const checks = [];

/** Registers a check; `only` keeps it to one scheme. */
export function check(name, action, only = scheme) {
  if (only === scheme) checks.push([name, action]);
}

/** The bytes that a fake sends. */
export function pattern(length) {
  const cycle = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY';
  return Buffer.alloc(length, cycle);
}

export const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** An agent that keeps connections; its caller destroys it. */
export const agent = (options = {}) => new client.Agent({ keepAlive: true, ca, ...options });

/** Starts a request; the caller ends it. */
export function start(path, options = {}) {
  const request = client.request({ ...target, path, agent: false, ...options });
  request.setTimeout(PATIENCE, () => request.destroy(new Error('nothing came in time')));
  return request;
}

/** The answer to a request that was started, with its body, the heads before it and the trailers behind it. */
export function answerTo(request) {
  const before = [];
  request.on('information', (info) => before.push(info));
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () => {
        const body = Buffer.concat(pieces);
        resolve({ status: response.statusCode, headers: response.headers, trailers: response.trailers, body, text: body.toString('latin1'), before, response });
      });
    });
  });
}

/** One request, with a body or without. */
export function ask(path, options = {}, body = undefined) {
  const request = start(path, options);
  const answer = answerTo(request);
  request.end(body);
  return answer;
}

/** A socket to the listener, in clear or under TLS as the scheme says. */
export function connect(options = {}) {
  const socket = isHttps
    ? tls.connect({ ...target, ...options })
    : net.connect({ ...target, ...options });
  socket.setTimeout(PATIENCE, () => socket.destroy(new Error('nothing came in time')));
  return socket;
}

/** Resolves when the event comes; an error before it rejects. */
export function event(emitter, name) {
  return new Promise((resolve, reject) => {
    emitter.once(name, resolve);
    emitter.once('error', reject);
  });
}

/** The backend, asked directly and in clear. */
export const fake = {
  async ask(method, query = '') {
    const request = http.request({ host: '127.0.0.1', port: Number(fakePort), method, path: `/_fake${query}`, agent: false });
    const answer = answerTo(request);
    request.end();
    const { status, text } = await answer;
    assert.equal(status, 200, text);
    return text;
  },
  behave: (query) => fake.ask('POST', `?${query}`),
  async stats() {
    const pairs = (await fake.ask('GET')).trim().split('\n').map((line) => line.split('='));
    return Object.fromEntries(pairs.map(([key, value]) => [key, Number(value)]));
  },
  async until(what, condition) {
    const deadline = Date.now() + PATIENCE;
    for (;;) {
      const stats = await fake.stats();
      if (condition(stats)) return stats;
      assert.ok(Date.now() < deadline, `not in time: ${what}; ${JSON.stringify(stats)}`);
      await pause(5);
    }
  },
};

async function greeted(path) {
  const { status, text } = await ask(path);
  assert.deepEqual([status, text], [200, 'Hello from fake-1']);
}

/** Runs every check and writes a line of JSON for each; `hello` asks for a path and expects what is always answered. */
export async function main(hello = greeted) {
  const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
  for (const [name, action] of checks) {
    try {
      await fake.behave('reset=1');
      await action();
      // Whatever happened, the next one must not feel it.
      await fake.behave('reset=1');
      await hello('/next');
      say({ check: name, ok: true });
    } catch (error) {
      say({ check: name, ok: false, why: String(error?.stack ?? error) });
    }
  }
  say({ done: true });
}
