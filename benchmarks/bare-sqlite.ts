import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** What SQLite can do at best: one loop that inserts the same rows, a thousand in a transaction. Run as a process. */
const seconds = Number(process.argv[2]);
const body = String(process.argv[3]);
const directory = mkdtempSync(join(tmpdir(), 'millrace-bare-'));
const database = new DatabaseSync(join(directory, 'bare.db'));
database.exec('pragma journal_mode = wal; pragma synchronous = full');
database.exec('create table messages (id integer primary key, key text not null, body text not null)');
const insert = database.prepare('insert into messages (key, body) values (?, ?)');
const started = performance.now();
let rows = 0;
while (performance.now() - started < seconds * 1000) {
  database.exec('begin');
  for (let index = 0; index < 1000; index += 1) insert.run(`k${index}`, body);
  database.exec('commit');
  rows += 1000;
}
process.stdout.write(`${rows / ((performance.now() - started) / 1000)}\n`);
database.close();
rmSync(directory, { recursive: true });
