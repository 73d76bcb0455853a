import { Socket } from 'node:net';
import { countColumns, readColumns } from '../columns.ts';
import { type EngineOptions, withEngine } from './engine.ts';
import { BatchReader } from './frames.ts';
import { mergeFiles } from './parquet.ts';
import { type ConverterAnswer, type ConverterRequest, readRequest, recordsDescriptor } from './protocol.ts';
import { surveyFiles } from './survey.ts';
import { WriteJob } from './write-job.ts';

/**
 * The converter's program: a process of its own, so that neither the engine's work nor its faults are the
 * server's. It does one thing at a time, and ends when the server lets go of it.
 */

let options: EngineOptions | undefined;
let job: WriteJob | undefined;
let batches = 0;
let fault: unknown;
let arrived = (): void => {};

const records = new Socket({ fd: recordsDescriptor, readable: true, writable: false });
const reader = new BatchReader((batch) => {
  try {
    if (fault === undefined) job?.take(batch);
  } catch (error) {
    // Said when the job is sealed; until then the records are taken and thrown away.
    fault = error;
  }
  batches++;
  arrived();
});
records.on('data', (piece: Buffer) => reader.push(piece));
records.on('error', () => process.exit(1));

function engineOptions(): EngineOptions {
  if (options === undefined) throw new Error('The converter was asked to work before it was opened.');
  return options;
}

async function batchesReach(count: number): Promise<void> {
  while (batches < count) {
    await new Promise<void>((resolve) => {
      arrived = resolve;
    });
  }
}

async function seal(count: number): Promise<ConverterAnswer> {
  await batchesReach(count);
  const sealed = job;
  job = undefined;
  if (sealed === undefined) throw new Error('There is nothing to seal.');
  if (fault !== undefined) throw fault;
  const outcome = await sealed.seal();
  return { kind: 'written', ...outcome, files: [...outcome.files] };
}

async function answer(request: ConverterRequest): Promise<ConverterAnswer> {
  switch (request.kind) {
    case 'open':
      options = request;
      return { kind: 'opened' };
    case 'begin':
      job = new WriteJob({ ...request, columns: readColumns(request.columns) }, engineOptions());
      batches = 0;
      fault = undefined;
      return { kind: 'begun' };
    case 'seal':
      return await seal(request.batches);
    case 'merge': {
      const { select, output } = request;
      const columns = readColumns(request.columns);
      const file = await withEngine(engineOptions(), countColumns(columns), (connection) =>
        mergeFiles(connection, select, columns, output),
      );
      return { kind: 'merged', file };
    }
    case 'survey': {
      const { files, samples } = request;
      const survey = await withEngine(engineOptions(), 0, (connection) =>
        surveyFiles(connection, files, samples),
      );
      return { kind: 'surveyed', survey };
    }
  }
}

async function serve(value: unknown): Promise<void> {
  let outcome: ConverterAnswer;
  try {
    outcome = await answer(readRequest(value));
  } catch (error) {
    outcome = { kind: 'failed', message: error instanceof Error ? error.message : String(error) };
  }
  process.send?.(outcome);
}

process.on('disconnect', () => process.exit(0));
process.on('message', (value) => void serve(value));
