import type { FileHandle } from 'node:fs/promises';
import { RandomAccessReader } from 'yauzl';

const windowBytes = 256 * 1024;

/**
 * Reads an archive in windows, because the parser asks for a few bytes at a time, and refuses positions
 * that are not in the file: an archive may claim any, up to some that no file system takes.
 */
export class ArchiveReader extends RandomAccessReader {
  readonly #file: FileHandle;
  readonly #size: number;
  #window: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  #windowStart = 0;

  constructor(file: FileHandle, size: number) {
    super();
    this.#file = file;
    this.#size = size;
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    this.#copy(buffer, offset, length, position).then(
      () => callback(null),
      (error: Error) => callback(error),
    );
  }

  async #copy(buffer: Buffer, offset: number, length: number, position: number): Promise<void> {
    if (!Number.isSafeInteger(position) || position < 0 || position + length > this.#size) {
      throw new Error('a position is not in the file');
    }
    if (length > windowBytes) {
      await this.#file.read(buffer, offset, length, position);
      return;
    }
    const isAtHand = position >= this.#windowStart && position + length <= this.#windowEnd;
    if (!isAtHand) await this.#moveWindow(position);
    const start = position - this.#windowStart;
    if (start + length > this.#window.length) throw new Error('the file became shorter');
    this.#window.copy(buffer, offset, start, start + length);
  }

  get #windowEnd(): number {
    return this.#windowStart + this.#window.length;
  }

  async #moveWindow(position: number): Promise<void> {
    const window = Buffer.allocUnsafe(Math.min(windowBytes, this.#size - position));
    const { bytesRead } = await this.#file.read(window, 0, window.length, position);
    this.#window = window.subarray(0, bytesRead);
    this.#windowStart = position;
  }
}
