import type { Runtime } from '../version.ts';
import type { Archive, Refusal } from './archive.ts';

/**
 * Finds the file that a handler is in, so that a wrong name is refused when code is deployed and not when
 * it is first run. Whether the file exports the handler only its runtime can tell.
 */
export function findHandler(
  archive: Pick<Archive, 'files'>,
  handler: string,
  runtime: Runtime,
): { readonly file: string } | Refusal {
  switch (runtime) {
    case 'PROVIDED':
      return findBootstrap(archive);
    case 'PYTHON3':
      return findPython(archive, handler);
    case 'JAVA21':
      return findJava(archive, handler);
    case 'NODEJS20_X':
    case 'NODEJS22_X':
    case 'NODEJS24_X':
    case 'NODEJS26_X':
      return findNode(archive, handler);
  }
}

/** `folder/file.export`: the first dot after the last slash ends the name of the file. */
function findNode(archive: Pick<Archive, 'files'>, handler: string): { file: string } | Refusal {
  const match = /^((?:[^/]+\/)*[^/.]+)\.[^/]+$/.exec(withoutDot(handler));
  if (match?.[1] === undefined) {
    return { refusal: `The handler ${shown(handler)} must be file.export, as in index.handler.` };
  }
  const module = match[1];
  return firstOf(archive, handler, [`${module}.js`, `${module}.mjs`, `${module}.cjs`, module]);
}

/** `package.module.function` or `folder/module.function`. */
function findPython(archive: Pick<Archive, 'files'>, handler: string): { file: string } | Refusal {
  const match = /^([^.]+(?:\.[^.]+)*)\.([^./]+)$/.exec(withoutDot(handler));
  if (match?.[1] === undefined) {
    return { refusal: `The handler ${shown(handler)} must be module.function, as in app.handler.` };
  }
  const module = match[1].replaceAll('.', '/');
  return firstOf(archive, handler, [`${module}.py`, `${module}/__init__.py`]);
}

/** `package.Class` or `package.Class::method`, as a class file or in any jar. */
function findJava(archive: Pick<Archive, 'files'>, handler: string): { file: string } | Refusal {
  const match = /^([\p{L}\p{Nl}_$][\p{L}\p{N}_$.]*)(?:::[\p{L}\p{Nl}_$][\p{L}\p{N}_$]*)?$/u.exec(handler);
  if (match?.[1] === undefined) {
    return { refusal: `The handler ${shown(handler)} must be package.Class::method.` };
  }
  const inFolders = `${match[1].replaceAll('.', '/')}.class`;
  const found = firstOf(archive, handler, [inFolders]);
  if ('file' in found) return found;
  // What is inside a jar is left to the runtime, which reads it anyway.
  const jar = archive.files.find((file) => /^(?:lib\/)?[^/]+\.jar$/.test(file.path));
  if (jar !== undefined) return { file: jar.path };
  const source = archive.files.find((file) => file.path.endsWith('.java'));
  if (source === undefined) return found;
  const advice = 'Sources are not compiled here: run javac, and pack the class files or a jar.';
  return { refusal: `${found.refusal} ${advice}` };
}

function findBootstrap(archive: Pick<Archive, 'files'>): { file: string } | Refusal {
  const bootstrap = archive.files.find((file) => file.path === 'bootstrap');
  if (bootstrap === undefined) {
    return { refusal: 'The zip file has no file bootstrap at its top, which the runtime PROVIDED starts.' };
  }
  if (!bootstrap.isExecutable) {
    return { refusal: 'The file bootstrap in the zip file is not executable: pack it with mode 0755.' };
  }
  return { file: bootstrap.path };
}

function firstOf(
  archive: Pick<Archive, 'files'>,
  handler: string,
  candidates: readonly string[],
): { file: string } | Refusal {
  const paths = new Set(archive.files.map((file) => file.path));
  const file = candidates.find((candidate) => paths.has(candidate));
  if (file !== undefined) return { file };
  const wanted = candidates.length === 1 ? candidates[0] : `any of ${candidates.join(', ')}`;
  return { refusal: `The handler ${shown(handler)} is not in the zip file: it has no file ${wanted}.` };
}

function withoutDot(handler: string): string {
  return handler.startsWith('./') ? handler.slice(2) : handler;
}

function shown(handler: string): string {
  return JSON.stringify(handler.slice(0, 200));
}
