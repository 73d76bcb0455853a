import type { DatabaseSync } from 'node:sqlite';

/**
 * The tables of `events.db`.
 *
 * - `chunks`: the records, one row for each partition and commit, in the order they came and found by an
 *   index: rows ordered by partition would dirty a page and more for each chunk of a commit. The blob comes last, so that whoever
 *   asks for the columns before it does not read it. `accepted_through` never falls within a partition,
 *   also when the clock did, so that it can be searched like an index.
 * - `partitions`: how far a partition was trimmed, made at its first trim. The last offset of a partition
 *   is that of its last chunk, or this when no chunk is left; nothing else counts offsets.
 * - `seen_recent` and `seen`: what must not be appended again; see `SeenIds`.
 */
const tables = `
  create table topics (
    id integer primary key,
    organization_id text not null,
    topic_name text not null,
    unique (organization_id, topic_name)
  ) strict;
  create table chunks (
    id integer primary key,
    topic integer not null,
    partition integer not null,
    last_offset integer not null,
    count integer not null,
    accepted_through real not null,
    records blob not null
  ) strict;
  create unique index chunk_positions on chunks (topic, partition, last_offset);
  create table partitions (
    topic integer not null,
    partition integer not null,
    trimmed_through integer not null,
    primary key (topic, partition)
  ) strict, without rowid;
  create table seen_recent (
    id integer primary key autoincrement,
    bucket integer not null,
    digests blob not null
  ) strict;
  create table seen (
    bucket integer not null,
    digest blob not null,
    primary key (bucket, digest)
  ) strict, without rowid;
`;

const version = 1;

/** Makes the tables in a new file; refuses one that a newer version has written. */
export function prepareSchema(database: DatabaseSync): void {
  const found = Number(database.prepare('pragma user_version').get()?.user_version);
  if (found > version) {
    throw new Error(`The event log was written by a newer version: its format is ${found}`);
  }
  if (found === version) return;
  database.exec(`begin immediate; ${tables} pragma user_version = ${version}; commit`);
}
