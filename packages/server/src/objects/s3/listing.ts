import { ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3';
import { parseKey } from '../key.ts';
import { type ListedObject, type ObjectPage, pageSize } from '../objects.ts';

/**
 * One page of a bucket. S3 lists in byte order and starts right after a key, so a page costs the same
 * wherever it begins. Whatever others keep in the bucket under names that are no keys is passed over.
 */
export async function listBucket(
  where: { client: S3Client; bucket: string; prefix: string },
  request: { prefix: string; after: string; limit: number },
): Promise<ObjectPage> {
  const limit = pageSize(request.limit);
  const objects: ListedObject[] = [];
  let after = where.prefix + request.after;
  for (;;) {
    const answer = await where.client.send(
      new ListObjectsV2Command({
        Bucket: where.bucket,
        Prefix: where.prefix + request.prefix,
        MaxKeys: limit - objects.length,
        ...(after === '' ? {} : { StartAfter: after }),
      }),
    );
    const contents = answer.Contents ?? [];
    for (const content of contents) {
      const parse = parseKey((content.Key ?? '').slice(where.prefix.length));
      if (!parse.ok) continue;
      objects.push({
        key: parse.key,
        size: content.Size ?? 0,
        lastModified: content.LastModified?.getTime() ?? 0,
      });
    }
    const reached = contents.at(-1)?.Key;
    if (answer.IsTruncated !== true || reached === undefined) return { objects };
    const last = objects.at(-1);
    if (objects.length >= limit && last !== undefined) return { objects, next: last.key };
    after = reached;
  }
}
