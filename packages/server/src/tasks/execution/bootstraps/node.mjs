/**
 * Runs the handler of a Node task: takes frames from the service on descriptor 3 and writes its own to
 * descriptor 4 (the kinds are in ../frames.ts). Writing is synchronous, so that what was printed before
 * a crash is not lost and is always ahead of the answer it belongs to.
 */
import { statSync, writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const kinds = {
  start: 1,
  invoke: 2,
  ready: 16,
  answer: 17,
  error: 18,
  startError: 19,
  output: 20,
  fatal: 21,
};
const largestAnswer = 6 * 1024 * 1024;
const outputPiece = 64 * 1024;
const environment = process.env;

function send(kind, body) {
  const head = Buffer.allocUnsafe(5);
  head.writeUInt32BE(body.byteLength, 0);
  head.writeUInt8(kind, 4);
  const frame = Buffer.concat([head, body]);
  for (let at = 0; at < frame.byteLength; ) at += writeSync(4, frame, at);
}

function sendJson(kind, value) {
  send(kind, Buffer.from(JSON.stringify(value)));
}

function printTo(descriptor) {
  const stream = new Writable({
    decodeStrings: true,
    write(chunk, _encoding, done) {
      for (let at = 0; at < chunk.byteLength; at += outputPiece) {
        send(kinds.output, Buffer.concat([Buffer.of(descriptor), chunk.subarray(at, at + outputPiece)]));
      }
      done();
    },
  });
  stream.fd = descriptor;
  stream.isTTY = false;
  return stream;
}

function replaceOutput(name, descriptor) {
  let stream;
  const get = () => {
    stream ??= printTo(descriptor);
    return stream;
  };
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get });
}

function describe(error, type) {
  if (error instanceof Error || (typeof error === 'object' && error !== null && 'message' in error)) {
    const trace = typeof error.stack === 'string' ? error.stack.split('\n').slice(0, 50) : undefined;
    return {
      errorType: type ?? String(error.name ?? 'Error'),
      errorMessage: clip(type ? `${error.name}: ${error.message}` : error.message),
      trace,
    };
  }
  return {
    errorType: type ?? typeof error,
    errorMessage: clip(typeof error === 'string' ? error : safeJson(error)),
  };
}

function clip(text) {
  return String(text).slice(0, 100_000);
}

function safeJson(value) {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch {
    return String(value);
  }
}

/**
 * Without a sandbox the process may share its user with the service. These would let it end, slow down
 * or debug the service; the permission model of Node does not cover them.
 */
function keepToItself() {
  const own = (pid) => pid === process.pid || pid === 0;
  const refuse = () => {
    throw Object.assign(new Error('A task may only act on its own process.'), { code: 'ERR_ACCESS_DENIED' });
  };
  const { kill } = process;
  const setPriority = os.setPriority;
  const fixed = (value) => ({ value, writable: false, configurable: false });
  Object.defineProperty(
    process,
    'kill',
    fixed((pid, signal) => (pid === process.pid ? kill.call(process, pid, signal) : refuse())),
  );
  Object.defineProperty(process, '_kill', fixed(refuse));
  Object.defineProperty(process, '_debugProcess', fixed(refuse));
  Object.defineProperty(
    os,
    'setPriority',
    fixed((pid, priority) =>
      priority === undefined ? setPriority(pid) : own(pid) ? setPriority(pid, priority) : refuse(),
    ),
  );
  syncBuiltinESMExports();
}

/** Makes a port of this network namespace lead to a socket of the service. */
function forward({ port, socket }) {
  const server = net.createServer({ allowHalfOpen: true }, (near) => {
    const far = net.connect({ path: socket, allowHalfOpen: true });
    near.pipe(far).pipe(near);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
  });
  server.unref();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

/** `folder/file.name.of.export`: the file is what comes before the first dot of the last part. */
async function loadHandler(handler, root) {
  const last = basename(handler);
  const dot = last.indexOf('.');
  if (dot <= 0 || dot === last.length - 1) {
    throw failure('Runtime.MalformedHandlerName', `The handler "${handler}" is not of the form file.export.`);
  }
  const stem = join(root, dirname(handler), last.slice(0, dot));
  const file = ['.js', '.mjs', '.cjs', ''].map((end) => stem + end).find(isFile);
  if (file === undefined) {
    throw failure(
      'Runtime.ImportModuleError',
      `There is no file ${last.slice(0, dot)} (.js, .mjs, .cjs) for the handler "${handler}".`,
    );
  }
  const module = await import(pathToFileURL(file).href);
  const path = last.slice(dot + 1).split('.');
  const walk = (from) => path.reduce((value, name) => value?.[name], from);
  const found = walk(module) ?? walk(module.default);
  if (typeof found !== 'function') {
    throw failure(
      'Runtime.HandlerNotFound',
      `${basename(file)} has no function "${path.join('.')}" for the handler "${handler}".`,
    );
  }
  return found;
}

function isFile(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function failure(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

let handler;
let current;

function settle(invocation, kind, body) {
  if (current !== invocation) return;
  current = undefined;
  channel.ref();
  send(kind, body);
}

function answer(invocation, value) {
  let text;
  try {
    text = JSON.stringify(value === undefined ? null : value) ?? 'null';
  } catch (error) {
    return fail(invocation, failure('Runtime.MarshalError', `The answer is not JSON: ${error.message}`));
  }
  const body = Buffer.from(text);
  if (body.byteLength > largestAnswer) {
    const message = `The answer has ${body.byteLength} bytes, more than the ${largestAnswer} allowed.`;
    return fail(invocation, failure('Function.ResponseSizeTooLarge', message));
  }
  settle(invocation, kinds.answer, body);
}

function fail(invocation, error) {
  const thrown = error ?? failure('Error', 'The handler failed without saying why.');
  settle(invocation, kinds.error, Buffer.from(JSON.stringify(describe(thrown))));
}

function makeContext(invocation, description) {
  const done = (error, value) =>
    error === undefined || error === null ? answer(invocation, value) : fail(invocation, error);
  return {
    awsRequestId: description.requestId,
    functionName: environment.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: environment.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: environment.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    invokedFunctionArn: description.functionArn,
    logGroupName: `/millrace/${environment.AWS_LAMBDA_FUNCTION_NAME}`,
    logStreamName: environment.AWS_LAMBDA_FUNCTION_VERSION,
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, description.deadlineMs - Date.now()),
    done,
    succeed: (value) => answer(invocation, value),
    fail: (error) => fail(invocation, error),
  };
}

function invoke(body) {
  const headLength = body.readUInt16BE(0);
  const description = JSON.parse(body.toString('utf8', 2, 2 + headLength));
  const invocation = { promised: false };
  current = invocation;
  // While the handler runs only its own work keeps the process alive, so that `beforeExit` tells when
  // there is nothing left that could ever answer.
  channel.unref();
  try {
    const event = JSON.parse(body.toString('utf8', 2 + headLength));
    const context = makeContext(invocation, description);
    const returned = handler(event, context, context.done);
    if (returned !== null && typeof returned === 'object' && typeof returned.then === 'function') {
      invocation.promised = true;
      returned.then(
        (value) => answer(invocation, value),
        (error) => fail(invocation, error),
      );
    } else if (handler.length < 2 || (handler.length === 2 && returned !== undefined)) {
      // A handler that takes a callback, or returns nothing and has the context, may answer later.
      answer(invocation, returned);
    }
  } catch (error) {
    fail(invocation, error);
  }
}

process.on('beforeExit', () => {
  const invocation = current;
  if (invocation === undefined) return;
  if (invocation.promised) {
    fail(
      invocation,
      failure(
        'Runtime.NodeJsExit',
        'The promise of the handler can never settle: nothing is left to wait for.',
      ),
    );
  } else {
    answer(invocation, null);
  }
});

function crash(type) {
  return (error) => {
    sendJson(kinds.fatal, describe(error, type));
    process.exit(1);
  };
}

async function start(body) {
  const { variables, forwards, guarded, name } = JSON.parse(body.toString());
  if (guarded) keepToItself();
  Object.assign(process.env, variables);
  try {
    await Promise.all(forwards.map(forward));
    handler = await loadHandler(name, environment.LAMBDA_TASK_ROOT);
  } catch (error) {
    sendJson(kinds.startError, describe(error));
    process.exit(1);
  }
  channel.ref();
  send(kinds.ready, Buffer.alloc(0));
}

replaceOutput('stdout', 1);
replaceOutput('stderr', 2);
process.on('uncaughtException', crash('Runtime.UncaughtException'));
process.on('unhandledRejection', crash('Runtime.UnhandledPromiseRejection'));

const channel = new net.Socket({ fd: 3, readable: true, writable: false });
let held = [];
let heldLength = 0;
let needed = 5;
channel.on('data', (chunk) => {
  held.push(chunk);
  heldLength += chunk.byteLength;
  while (heldLength >= needed) {
    const bytes = held.length === 1 ? held[0] : Buffer.concat(held);
    held = [bytes];
    const length = bytes.readUInt32BE(0);
    if (bytes.byteLength < 5 + length) {
      needed = 5 + length;
      return;
    }
    needed = 5;
    held = bytes.byteLength === 5 + length ? [] : [bytes.subarray(5 + length)];
    heldLength = bytes.byteLength - 5 - length;
    const body = bytes.subarray(5, 5 + length);
    if (bytes.readUInt8(4) === kinds.start) void start(body);
    else invoke(body);
  }
});
// The service is gone, or wants this process gone.
channel.on('close', () => process.exit(0));
