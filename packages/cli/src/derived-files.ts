import { buildContract } from '@millrace/contract';
import { commands } from './commands/index.ts';
import { projectSchema } from './project-schema.ts';
import { referenceOf } from './reference.ts';

/** The files of the repository that are made from this code, by path; `node tools/derive.ts` writes them. */
export function derivedFiles(): Readonly<Record<string, string>> {
  const { types } = buildContract();
  const schema = projectSchema({ topic: types.Topic, deployRequest: types.DeployRequest });
  return {
    'docs/cli.md': referenceOf(commands),
    'packages/cli/millrace.schema.json': `${JSON.stringify(schema, null, 2)}\n`,
  };
}
